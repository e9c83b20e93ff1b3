"""Methods by name: those of the product, and what packages register in the entry-point group `engram.methods`.

A method is imported when it is used, so that a name costs nothing.
"""

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

from engram import plugins

if TYPE_CHECKING:
    from engram.learner import Learner

GROUP = "engram.methods"
_BUILT_IN = {
    "whitened": "engram.methods.whitened:Whitened",
    "imagenet": "engram.methods.imagenet:BesideImageNet",
    "ncm": "engram.methods.ncm:NCM",
    "slda": "engram.methods.slda:SLDA",
    "1nn": "engram.methods.nearest_neighbour:NearestNeighbour",
}


class MissingMethodError(ValueError):
    """There is no method of that name here, or it cannot be imported."""


def find_method(method: "str | type[Learner]") -> "type[Learner]":
    """The learner of that name; a class is its own. MissingMethodError if there is none."""
    if isinstance(method, str):
        return _load(method)
    if isinstance(method, type):
        from engram.learner import Learner  # not before: it takes torch

        if issubclass(method, Learner):
            return method
    raise MissingMethodError(f"no method is called {method!r}; there are {', '.join(METHODS)}")


def _load(name: str) -> "type[Learner]":
    entry = EntryPoint(name, _BUILT_IN[name], GROUP) if name in _BUILT_IN else _others().get(name)
    if entry is None:
        raise MissingMethodError(f"no method is called {name!r}; there are {', '.join(METHODS)}")
    try:
        kind: type[Learner] = entry.load()
    except (ImportError, AttributeError) as error:
        raise MissingMethodError(f"the method {name!r} cannot be imported: {error}") from error
    return kind


def _others() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in reversed(plugins.registered(GROUP))}  # the first of a name counts


class _Methods(Mapping[str, "type[Learner]"]):
    """Every method by name; the class is imported when it is asked for."""

    def __getitem__(self, name: str) -> "type[Learner]":
        try:
            return _load(name)
        except MissingMethodError as error:
            raise KeyError(name) from error

    def __contains__(self, name: object) -> bool:
        return name in _BUILT_IN or name in _others()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*_BUILT_IN, *reversed(_others())]))

    def __len__(self) -> int:
        return len(list(iter(self)))


METHODS: "Mapping[str, type[Learner]]" = _Methods()
