"""Methods by name: those of the product, and what packages register in the entry-point group `engram.methods`.

A method is imported when it is used, so that a name costs nothing.
"""

from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engram.learners.base import Learner

GROUP = "engram.methods"
BUILT_IN = {
    "whitened": "engram.learners.whitened:Whitened",
    "imagenet": "engram.learners.imagenet:BesideImageNet",
    "mas": "engram.learners.codes:MAS",
    "si": "engram.learners.codes:SI",
    "mas-lof": "engram.learners.codes:MASLOF",
    "si-lof": "engram.learners.codes:SILOF",
    "prototypes": "engram.learners.codes:Codes",
    "ncm": "engram.learners.ncm:NCM",
    "slda": "engram.learners.slda:SLDA",
    "1nn": "engram.learners.nearest_neighbour:NearestNeighbour",
}


class MissingMethodError(ValueError):
    """There is no method of that name here, or it cannot be imported."""


def names() -> list[str]:
    """Every method's name, the product's first."""
    return list(dict.fromkeys([*BUILT_IN, *_others()]))


def find(name: str) -> "type[Learner]":
    """The learner of that name."""
    return _load(EntryPoint(name, BUILT_IN[name], GROUP)) if name in BUILT_IN else find_teacher(name)


def find_teacher(name: str) -> "type[Learner]":
    """The learner of that name that was registered: of the paper's method, the one that can be taught."""
    if name not in (others := _others()):
        raise MissingMethodError(f"no method is called {name!r}; there are {', '.join(names())}")
    return _load(others[name])


def _load(entry: EntryPoint) -> "type[Learner]":
    try:
        kind: type[Learner] = entry.load()
    except ImportError as error:
        missing = f"the method {entry.name!r} needs the extra `paper`: pip install 'engram-learn[paper]' ({error})"
        raise MissingMethodError(missing) from error
    return kind


def _others() -> dict[str, EntryPoint]:
    from engram import plugins

    found: dict[str, EntryPoint] = {}
    for entry in plugins.registered(GROUP):
        found.setdefault(entry.name, entry)  # the first of a name counts
    return found
