"""Run an encoder's graph by ONNX Runtime: one session with one thread inside, asked by as many threads as there are."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from threading import Lock
from typing import Any

import numpy as np

from engram.encoders.base import EncoderError, Features, Identity, Pixels
from engram.encoders.efficientnet import EfficientNetLite
from engram.encoders.graph import Graph

# As soon as it is imported, ONNX Runtime reports to its makers, unless this is set; so it is imported here alone.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
import onnxruntime

INPUT, OUTPUT = "pictures", "features"

# In float32 also where a GPU could be faster with less: features are to be the same everywhere.
_PROVIDERS: dict[str, tuple[str, dict[str, Any]]] = {
    "cuda": ("CUDAExecutionProvider", {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}),
    "directml": ("DmlExecutionProvider", {}),
    "coreml": ("CoreMLExecutionProvider", {"ModelFormat": "MLProgram"}),
    "cpu": ("CPUExecutionProvider", {}),
}
_AUTO = ("cuda", "directml", "cpu")  # CoreML computes in 16 bits where it sees fit, so it has to be asked for

# Measured: two pictures of 224×224 a core keep a layer's activations in its cache; a GPU wants enough to be busy.
_CPU_PIXELS, _GPU_BATCH = 110_000, 64


def devices() -> list[str]:
    """What the installed ONNX Runtime can compute on, for `device`."""
    available = set(onnxruntime.get_available_providers())
    return [device for device, (provider, _) in _PROVIDERS.items() if provider in available]


class OnnxEncoder:
    """A network, on a device: one of `devices()`, or ``"auto"``. `name` is what makes it again, if that is enough.

    `read` gives the network whenever its weights are wanted: once it runs, only ONNX Runtime holds them.
    """

    def __init__(self, read: Callable[[], EfficientNetLite], name: str | None = None, device: str = "auto") -> None:
        network = read()
        self.read, self.preprocess, self.dim = read, network.preprocess, network.dim
        self.identity, graph = Identity(network.identity, name), _graph(network)
        pixels = network.size**2 * (2 if network.mirror else 1)
        del network  # before ONNX Runtime makes a copy of its own
        self._session = open_graph(graph, device)
        on_cpu = self._session.get_providers()[0] == _PROVIDERS["cpu"][0]
        self._turn = nullcontext() if on_cpu else Lock()  # DirectML takes one call at a time
        self.batch = max(1, _CPU_PIXELS // pixels) if on_cpu else _GPU_BATCH

    def graph(self) -> bytes:
        """The ONNX file that it runs: `pictures`, uint8 (batch, size, size, 3), in and `features` out."""
        return _graph(self.read())

    def encode(self, pictures: Pixels) -> Features:
        """Features (n, dim) of uint8 pictures (n, size, size, 3)."""
        size = self.preprocess.size
        if pictures.dtype != np.uint8 or pictures.shape[1:] != (size, size, 3):
            raise EncoderError(
                f"{self.identity.text} takes uint8 pictures (n, {size}, {size}, 3), "
                f"got {pictures.dtype} {pictures.shape}; preprocess.image makes one"
            )
        with self._turn:
            (features,) = self._session.run([OUTPUT], {INPUT: pictures})
        return features  # type: ignore[no-any-return]


def _graph(network: EfficientNetLite) -> bytes:
    graph, size = Graph(network.name), network.size
    pictures = graph.input(INPUT, np.uint8, ["batch", size, size, 3])
    graph.output(network.add_to(graph, pictures), OUTPUT, np.float32, ["batch", network.dim])
    return graph.to_bytes()


def open_graph(graph: bytes, device: str = "cpu") -> Any:
    """An ONNX Runtime session of one thread on a device; EncoderError says what is in the way."""
    if device != "auto" and device not in _PROVIDERS:
        raise EncoderError(f"unknown device {device!r}; use auto, {', '.join(_PROVIDERS)}")
    available = devices()
    if device not in ("auto", *available):
        raise EncoderError(
            f"device {device!r} was asked for, and the installed ONNX Runtime has {', '.join(available)}; "
            "cuda takes onnxruntime-gpu in its place, directml onnxruntime-directml, coreml a Mac"
        )
    chosen = [one for one in _AUTO if one in available] if device == "auto" else [device]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_mem_pattern = "directml" not in chosen  # which cannot have it
    options.log_severity_level = 4  # what goes wrong is raised; nobody reads the rest
    try:
        session = onnxruntime.InferenceSession(graph, options, providers=[_PROVIDERS[one] for one in chosen])
    except Exception as error:  # every part of ONNX Runtime has an exception of its own
        raise EncoderError(f"ONNX Runtime does not open the graph: {error}") from None
    if device not in ("auto", "cpu") and session.get_providers()[0] != _PROVIDERS[device][0]:
        raise EncoderError(f"device {device!r} was asked for, and cannot be used here: is its driver installed?")
    return session
