"""Backbones by name: a table of plain functions."""

import inspect
from collections.abc import Callable
from typing import Any, get_args

from engram.backbones.base import Backbone, BackboneError, Identity
from engram.backbones.weights import Weights

Builder = Callable[..., Backbone]

_BUILDERS: dict[str, Builder] = {}


def register(name: str) -> Callable[[Builder], Builder]:
    """Enter a function ``(weights, **options) -> Backbone`` under a name.

    A name ending in a colon is a prefix: the function also takes the rest of the name, as `model`.
    """

    def enter(builder: Builder) -> Builder:
        if name in _BUILDERS:
            raise ValueError(f"backbone {name!r} is registered already")
        _BUILDERS[name] = builder
        return builder

    return enter


def names() -> list[str]:
    """List the names :func:`create` knows; one ending in a colon wants a model's name behind it (``timm:NAME``)."""
    return sorted(_BUILDERS)


def parse(name: str) -> tuple[str, dict[str, Any]]:
    """Split ``NAME:LAYER:mirror`` into the registered name and the options that the rest stands for.

    >>> parse("resnet50:joined:mirror")
    ('resnet50', {'mirror': True, 'layer': 'joined'})
    >>> parse("timm:resnet18")
    ('timm:', {'model': 'resnet18'})
    """
    registered, *rest = name.split(":")
    options: dict[str, Any] = {}
    if rest[-1:] == ["mirror"]:
        options["mirror"] = True
        rest.pop()
    if f"{registered}:" in _BUILDERS:
        registered += ":"
        options["model"] = ":".join(rest)
    elif rest:
        options["layer"] = ":".join(rest)
    if registered not in _BUILDERS or "" in options.values():
        raise BackboneError(f"no backbone is called {name!r}; there are {', '.join(names())}")
    return registered, options


def create(name: str, weights: Weights = None, **options: Any) -> Backbone:
    """Make a frozen, pretrained backbone.

    Parameters
    ----------
    name : one of :func:`names`, for instance ``"efficientnet_lite0"``, ``"vgg19"`` or ``"timm:resnet18"``. `layer` and
        `mirror` may be part of it, so that a name alone says which features: ``"resnet50:joined"``,
        ``"efficientnet_lite0:mirror"``, ``"vgg16:fc1:mirror"``.
    weights : a ``.safetensors``, ``.pth`` or ``.pt`` file, or a dictionary of tensors. Without it the folder named by
        the environment variable ``ENGRAM_WEIGHTS`` is searched, then the backbone's own source is asked
        (see :mod:`engram.backbones.weights`).
    options : the backbone's own, for instance ``layer`` and ``size``; see the function registered under the name.
        ``mirror=True`` goes with every one that takes pictures: it averages the features of each picture with those of
        its mirror image, for twice the work.

    Examples
    --------
    >>> backbone = create("efficientnet_lite0")
    >>> backbone.dim
    1280
    """
    registered, named = parse(name)
    builder = _BUILDERS[registered]
    parameters = inspect.signature(builder).parameters
    for option in options:
        if option in named:
            raise BackboneError(f"{name} says {option} already; give it once")
    options |= named
    for option in options:
        if option not in parameters and option != "mirror":
            choices = [choice for choice in (*parameters, "mirror") if choice not in ("model", "weights")]
            raise BackboneError(f"{name} has no option {option!r}; it takes {', '.join(choices)}")
    layers = get_args(parameters["layer"].annotation) if "layer" in options else ()
    if layers and options["layer"] not in layers:
        raise BackboneError(
            f"{registered} has no layer {options['layer']!r}; choose one of {', '.join(layers)} (and end the name "
            "in :mirror to average mirrored pictures in)"
        )
    mirror = options.pop("mirror", False)
    backbone = builder(weights=weights, **options)
    if mirror:
        backbone.average_mirrored()
    return backbone


@register("identity")
def identity(weights: Weights = None, dim: int | None = None) -> Backbone:
    """Pass feature vectors through; `dim`, where given, is checked."""
    if weights is not None:
        raise BackboneError("the identity backbone has no weights; leave weights out")
    return Identity(dim)
