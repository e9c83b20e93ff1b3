"""Methods that no package has: one that trains for as many epochs as it is told, and one that says what it is run with.

They are registered as any package would register them, so that servers and their workers know them too.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from engram.images.stream import cores
from engram.learners.base import About, Array, Features, Label, Learner, Progress, Scores, State, Tell, quiet
from engram.learners.ncm import NCM, unit_rows

EPOCH = 0.005  # seconds
ENTRY_POINTS = "[engram.methods]\ndrilled = drilled:Drilled\ncounts-cores = drilled:CountsCores\n"


def install(folder: Path) -> None:
    """Write into a folder what pip writes of a package that registers them."""
    about = folder / "drilled-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: drilled\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)


@dataclass(frozen=True)
class Settings:
    """How long the first lesson is trained, and each that follows; an epoch takes five milliseconds."""

    epochs: int = 12
    more_epochs: int = 4


@dataclass(frozen=True, eq=False)
class Drilled(Learner):
    """Class means, as of a method with a network of its own: it needs two classes, counts nothing, leaves none out."""

    method: ClassVar[str] = "drilled"
    about: ClassVar[About] = About("Drilled", "", "one mean")
    settings_type: ClassVar[type[Any]] = Settings
    first_classes: ClassVar[int] = 2

    labels: tuple[Label, ...] = ()
    means: Array | None = None

    def learn(self, x: Features, y: Sequence[Label], tell: Tell = quiet) -> Self:
        epochs = self.settings.more_epochs if self.labels else self.settings.epochs
        for epoch in range(1, epochs + 1):
            time.sleep(EPOCH)
            tell(Progress("train", epoch, epochs, 1 / epoch))
        known = dict(zip(self.labels, self.means if self.means is not None else (), strict=True))
        known |= {label: x[[one == label for one in y]].mean(axis=0) for label in dict.fromkeys(y)}
        return replace(self._of(known), updates=self.updates + 1, n_features=x.shape[1])

    def _of(self, known: dict[Label, Array]) -> Self:
        return replace(self, labels=tuple(known), means=np.stack(list(known.values())))

    def score(self, x: Features) -> Scores:
        return Scores(unit_rows(x) @ unit_rows(self.means).T, None, 0.1)

    def forget(self, label: Label) -> Self:
        known = dict(zip(self.labels, self.means, strict=True))
        del known[label]
        return self._of(known)

    def rename(self, old: Label, new: Label) -> Self:
        return replace(self, labels=tuple(new if label == old else label for label in self.labels))

    def _arrays(self) -> dict[str, Array]:
        return {"classes.means": self.means}

    @classmethod
    def from_state(cls, state: State) -> Self:
        meta = state.meta
        plain = cls(cls.configure(meta["config"]), meta["seed"], meta["tasks_learned"], meta["n_features"])
        return replace(plain, labels=tuple(meta["labels"]), means=state.arrays["classes.means"])


class CountsCores(NCM):
    """Learns nothing: its lesson fails, and says how many threads there are for it."""

    method: ClassVar[str] = "counts-cores"

    def learn(self, x: Features, y: Sequence[Label], tell: Tell = quiet) -> NoReturn:
        raise ValueError(f"{cores()} threads")
