"""Encoders in torch by name; registered in the entry-point group `engram.encoders`, where the product finds them."""

import inspect
from collections.abc import Callable
from typing import Any, get_args

from engram.backbones.base import Network, TorchEncoder
from engram.backbones.resnet import resnet50
from engram.backbones.timm_models import timm_model
from engram.backbones.vgg import vgg16, vgg19
from engram.encoders.base import EncoderError

_BUILDERS: dict[str, Callable[..., Network]] = {
    "resnet50": resnet50,
    "vgg16": vgg16,
    "vgg19": vgg19,
    "timm": timm_model,
}


def parse(name: str) -> tuple[str, dict[str, Any]]:
    """Split ``NAME:LAYER:mirror`` or ``timm:MODEL:mirror`` into the registered name and what the rest stands for.

    >>> parse("resnet50:joined:mirror")
    ('resnet50', {'mirror': True, 'layer': 'joined'})
    >>> parse("timm:resnet18")
    ('timm', {'model': 'resnet18'})
    """
    registered, *rest = name.split(":")
    options: dict[str, Any] = {}
    if rest[-1:] == ["mirror"]:
        options["mirror"] = True
        rest.pop()
    if registered == "timm":
        options["model"] = ":".join(rest)
    elif rest:
        options["layer"] = ":".join(rest)
    if registered not in _BUILDERS or "" in options.values():
        raise EncoderError(f"no encoder is called {name!r}; in torch there are {', '.join(_BUILDERS)} (timm:MODEL)")
    return registered, options


def make(name: str, device: str = "auto", **options: Any) -> TorchEncoder:
    """Make a frozen, pretrained encoder; see `engram.encoders.registry.create`.

    `options` are those of the network, for instance ``layer`` and ``size``, and for all of them ``weights``, a
    ``.safetensors``, ``.pth`` or ``.pt`` file or a dictionary of tensors, and ``mirror``.
    """
    registered, named = parse(name)
    parameters = inspect.signature(_BUILDERS[registered]).parameters
    alone = all(value is None for value in options.values())
    for option in options:
        if option in named:
            raise EncoderError(f"{name} says {option} already; give it once")
    options = {**options, **named}
    for option in options:
        if option not in parameters and option != "mirror":
            choices = [choice for choice in (*parameters, "mirror") if choice != "model"]
            raise EncoderError(f"{name} has no option {option!r}; it takes {', '.join(choices)}")
    layers = get_args(parameters["layer"].annotation) if "layer" in options else ()
    if layers and options["layer"] not in layers:
        raise EncoderError(
            f"{registered} has no layer {options['layer']!r}; choose one of {', '.join(layers)} (and end the name "
            "in :mirror to average mirrored pictures in)"
        )
    mirror = bool(options.pop("mirror", False))
    return TorchEncoder(_BUILDERS[registered](**options), name if alone else None, device, mirror=mirror)
