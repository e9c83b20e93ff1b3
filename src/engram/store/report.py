"""What is told while a model learns, and what came of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Learned:
    """One class that was learned; `seconds` are those of the increment it was learned in."""

    name: str
    pictures: int
    increment: int
    seconds: float


@dataclass(frozen=True)
class Step:
    """What a progress callback is told about one class, or about "the base".

    `done` of `total` counts images in the stage "look", epochs in "train" and, once something is "saved",
    classes. `learned` are the classes just saved; `loss` is told by training.
    """

    name: str
    stage: Literal["look", "train", "saved"]
    done: int
    total: int
    learned: tuple[Learned, ...] = ()
    loss: float | None = None


Tell = Callable[[Step], None]


@dataclass(frozen=True)
class Suspect:
    """An image that was just learned and looks like another class, as the others say: likely a wrong label."""

    picture: str
    name: str
    answer: str
    probability: float


@dataclass
class Report:
    """What came of learning.

    `names` are all classes the model knows now, `more` those of `learned` that it knew before. `known` are classes of
    the folder that need nothing, `changed` those whose folder holds other images than were learned. `skipped` are
    classes that could not be learned, `unreadable` images that could not be read, both with the reason. `misfits` are
    images that look like another class than they were learned as, the surest first. On a cluster, `workers_lost` are
    processes that died, and `blocks_retried` blocks of images that others had to do again. `drift` warns of a network
    that has come away from earlier classes.
    """

    learned: list[Learned] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    more: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    misfits: list[Suspect] = field(default_factory=list)
    seconds: float = 0.0
    workers_lost: int = 0
    blocks_retried: int = 0
    drift: str | None = None
