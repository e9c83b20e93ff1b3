"""What is told while a model learns, and what came of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
Examples = Mapping[str, Array]  # name of a class -> features of images that it was not taught with


@dataclass(frozen=True)
class Learned:
    """One class that was learned; `seconds` are those of the increment it was learned in."""

    name: str
    pictures: int
    held_back: int
    increment: int
    seconds: float


@dataclass(frozen=True)
class Step:
    """What a progress callback is told about one class, or about "the base".

    `done` of `total` counts images in the stages "look" and "check", epochs in "train" and, once something is "saved",
    classes. `learned` are the classes just saved; `loss` is told by training.
    """

    name: str
    stage: Literal["look", "train", "saved", "check"]
    done: int
    total: int
    learned: tuple[Learned, ...] = ()
    loss: float | None = None


Tell = Callable[[Step], None]


@dataclass(frozen=True)
class Check:
    """Answers on images that were held back: how many, and how many were right."""

    pictures: int = 0
    right: int = 0

    @property
    def accuracy(self) -> float | None:
        """The share that was right; None if nothing could be checked."""
        return self.right / self.pictures if self.pictures else None


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
    classes that could not be learned, `unreadable` images that could not be read, both with the reason. `check_before`
    and `check_known` ask about the same images of classes known before, before and after learning; `held` are features
    of the images held back of the new classes. `misfits` are images that look like another class than they were
    learned as, the surest first. On a cluster, `workers_lost` are processes that died, and `blocks_retried` blocks of
    images that others had to do again. `drift` warns of a network that has come away from earlier classes.
    """

    learned: list[Learned] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    more: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    misfits: list[Suspect] = field(default_factory=list)
    check_new: Check = Check()
    check_before: Check = Check()
    check_known: Check = Check()
    held: dict[str, Array] = field(default_factory=dict)
    seconds: float = 0.0
    workers_lost: int = 0
    blocks_retried: int = 0
    drift: str | None = None
