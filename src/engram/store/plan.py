"""How to learn from folders, what is told on the way, and what came of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from engram.methods import find_method

Array = np.ndarray[Any, Any]
Examples = Mapping[str, Array]  # name of a class -> features of pictures that it was not taught with


@dataclass(frozen=True)
class Plan:
    """How to learn. `backbone`, `method`, `settings` and `seed` are for a new model; an existing one says itself."""

    more: bool = False
    holdout: float = 0.1
    keep: int | None = None
    backbone: str = "efficientnet_lite0"
    method: str = "prototypes"
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.holdout < 1:
            raise ValueError(f"holdout must be at least 0 and below 1, not {self.holdout}")
        find_method(self.method).configure(self.settings)  # names a setting that there is not
        if self.keep is not None and self.keep < 0:
            raise ValueError(f"keep must be at least 0, not {self.keep}")


@dataclass(frozen=True)
class Step:
    """What a progress callback is told: which class (or the base), what is being done to it, and how far that is.

    `saved` is about the classes of the lesson: so many of so many are done and safe. Training tells its `loss`.
    """

    name: str
    stage: Literal["look", "train", "saved", "check"]
    done: int
    total: int
    learned: tuple["Learned", ...] = ()
    loss: float | None = None


Tell = Callable[[Step], None]


@dataclass(frozen=True)
class Learned:
    """One class that was learned; `seconds` are those of the increment it was learned in."""

    name: str
    pictures: int
    held_back: int
    increment: int
    seconds: float


@dataclass(frozen=True)
class Check:
    """Answers on pictures that were held back: how many, and how many were right."""

    pictures: int = 0
    right: int = 0

    @property
    def accuracy(self) -> float | None:
        """The share that was right; None if nothing could be checked."""
        return self.right / self.pictures if self.pictures else None


@dataclass
class Report:
    """What came of a folder.

    `changed` are known classes whose folder holds other pictures than were learned, `known` the other known ones.
    `skipped` are classes that could not be learned, `unreadable` pictures that could not be read, both with the reason.
    `check_before` and `check_known` ask about the same pictures of classes known before, before and after learning;
    `held` are the features of the pictures held back of the classes that were learned.
    """

    learned: list[Learned] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    check_new: Check = Check()
    check_before: Check = Check()
    check_known: Check = Check()
    held: dict[str, Array] = field(default_factory=dict)
    seconds: float = 0.0
