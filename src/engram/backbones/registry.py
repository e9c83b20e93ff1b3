"""Backbones by name: a table of plain functions."""

import inspect
from collections.abc import Callable
from typing import Any

from engram.backbones.base import Backbone, BackboneError, Identity
from engram.backbones.weights import Weights

Builder = Callable[..., Backbone]

_BUILDERS: dict[str, Builder] = {}


def register(name: str) -> Callable[[Builder], Builder]:
    """Enter a function ``(weights, **options) -> Backbone`` under a name.

    A name ending in a colon is a prefix: the function is then called as ``(rest_of_the_name, weights, **options)``.
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


def create(name: str, weights: Weights = None, **options: Any) -> Backbone:
    """Make a frozen, pretrained backbone.

    Parameters
    ----------
    name : one of :func:`names`, for instance ``"efficientnet_lite0"``, ``"vgg19"`` or ``"timm:resnet18"``.
    weights : a ``.safetensors``, ``.pth`` or ``.pt`` file, or a dictionary of tensors. Without it the folder named by
        the environment variable ``ENGRAM_WEIGHTS`` is searched, then the backbone's own source is asked
        (see :mod:`engram.backbones.weights`).
    options : the backbone's own, for instance ``layer`` and ``size``; see the function registered under the name.

    >>> backbone = create("efficientnet_lite0")
    >>> backbone.dim
    1280
    """
    prefix, colon, rest = name.partition(":")
    builder = _BUILDERS.get(prefix + colon)
    if builder is None or (colon and not rest):
        raise BackboneError(f"no backbone is called {name!r}; there are {', '.join(names())}")
    accepted = [p for p in inspect.signature(builder).parameters if p not in ("model", "weights")]
    for option in options:
        if option not in accepted:
            raise BackboneError(f"{name} has no option {option!r}; it takes {', '.join(accepted)}")
    return builder(rest, weights, **options) if colon else builder(weights, **options)


@register("identity")
def identity(weights: Weights = None, dim: int | None = None) -> Backbone:
    """Pass feature vectors through; `dim`, where given, is checked."""
    if weights is not None:
        raise BackboneError("the identity backbone has no weights; leave weights out")
    return Identity(dim)
