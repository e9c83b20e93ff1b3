"""1-NN: every training feature is kept, the class of the nearest one is the answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from engram.learners.base import (
    About,
    Array,
    Features,
    Label,
    LeavesOut,
    Mergeable,
    Scores,
    State,
    Tell,
    quiet,
    require,
)
from engram.learners.layout import SAMPLES, Kept, read_state, whole
from engram.stats.sums import index


@dataclass(frozen=True)
class NearestNeighbourSettings:
    """How much there is room for."""

    samples: int | None = None  # kept in all, as many of every class; None: every one

    def __post_init__(self) -> None:
        require(self, self.samples is None or self.samples > 0, "samples", "a number above 0, or None")


@dataclass(frozen=True, eq=False)
class NearestNeighbour(Mergeable, LeavesOut):
    """Euclidean nearest neighbour over all stored samples."""

    method: ClassVar[str] = "1nn"
    about: ClassVar[About] = About(
        title="1-NN",
        paper="Cover, Hart: Nearest Neighbor Pattern Classification, 1967",
        per_class="every training feature vector",
        keeps_samples=True,
        given="all old samples",
        merges=True,
    )
    settings_type: ClassVar[type[Any]] = NearestNeighbourSettings

    settings: NearestNeighbourSettings
    labels: tuple[Label, ...] = ()
    stored: Array | None = None  # (n, d)
    targets: NDArray[np.int64] | None = None  # whose they are: rows of `labels`

    def learn(self, x: Features, y: Sequence[Label], tell: Tell = quiet) -> Self:
        """Store them."""
        names, own = index(y)
        labels = (*self.labels, *(name for name in names if name not in self.labels))
        row = {label: at for at, label in enumerate(labels)}
        rows = np.array([row[name] for name in names], dtype=np.int64)[own]
        after = replace(self, labels=labels, updates=self.updates + 1, n_features=x.shape[1])
        return after._with(x.astype(np.float32), rows, set(rows.tolist()))

    def _with(self, x: Array, rows: NDArray[np.int64], new: set[int]) -> Self:
        if self.stored is not None and self.targets is not None:
            x, rows = np.concatenate([self.stored, x]), np.concatenate([self.targets, rows])
        kept = slice(None) if self.settings.samples is None else self._share(rows, self.settings.samples, new)
        return replace(self, stored=x[kept], targets=rows[kept])

    def _share(self, rows: NDArray[np.int64], most: int, new: set[int]) -> NDArray[np.int64]:
        """Positions of `most` samples, as many of every class, at least one; those of `new` classes drawn at random.

        They stay in the order they were drawn in, so that to make room for a further class is to truncate the others.
        """
        is_new = np.isin(rows, list(new))
        drawn = self.random().permutation(np.flatnonzero(is_new))
        order = np.concatenate([np.flatnonzero(~is_new), drawn])
        classes = np.unique(rows)
        own = max(1, most // len(classes))
        return np.concatenate([order[rows[order] == row][:own] for row in classes])

    def score(self, x: Features) -> Scores:
        """Less the distance to the nearest sample of each class."""
        return Scores(-self._distances(x)[0], None, 1.0)

    def judged(self, x: Features, y: Sequence[Label]) -> tuple[Self, Scores]:
        """The nearest of the own class is the sample itself: the second nearest counts. Infinite where none is left."""
        own = self.rows(y)
        nearest, second = self._distances(x, own)
        n = np.flatnonzero(self._are_stored(x, own))
        nearest[n, own[n]] = np.minimum(second[n], np.finfo(np.float32).max)
        return self, Scores(-nearest, None, 1.0)

    def _are_stored(self, x: Features, own: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which samples there was room for."""
        if self.settings.samples is None or self.stored is None or self.targets is None:
            return np.ones(len(x), bool)
        stored = {(row, sample.tobytes()) for row, sample in zip(self.targets.tolist(), self.stored, strict=True)}
        return np.array([(row, sample.tobytes()) in stored for row, sample in zip(own.tolist(), x, strict=True)])

    def _distances(self, x: Features, own: NDArray[np.int64] | None = None) -> tuple[Array, Array]:
        """To the nearest sample of each class, (n, classes), and to the second nearest of the classes `own`."""
        if self.stored is None or self.targets is None or not self.labels:
            raise ValueError("no class is known; call learn first")
        middle = self.stored.mean(axis=0)  # seen from there vectors are short: small differences are not rounded away
        order = np.argsort(self.targets, kind="stable")
        points, queries, starts = self.stored[order] - middle, x - middle, np.bincount(self.targets).cumsum()
        squares = np.einsum("nd,nd->n", queries, queries)[:, None] - 2 * (queries @ points.T)
        squares += np.einsum("nd,nd->n", points, points)
        np.sqrt(np.maximum(squares, 0, out=squares), out=squares)
        starts = np.r_[0, starts[:-1]]
        nearest = np.minimum.reduceat(squares, starts, axis=1)
        second = np.empty(0)
        if own is not None:
            stops = np.r_[starts[1:], len(points)]
            parts = (squares[i, starts[row] : stops[row]] for i, row in enumerate(own.tolist()))
            second = np.array([np.partition(part, 1)[1] if len(part) > 1 else np.inf for part in parts], np.float32)
        return nearest, second

    def merge(self, *others: Self) -> Self:
        """All samples of all."""
        merged = replace(self, updates=sum(one.updates for one in (self, *others)))
        for other in others:
            merged.require_mergeable(other)
            if other.stored is not None and other.targets is not None:
                labels = (*merged.labels, *(name for name in other.labels if name not in merged.labels))
                row = {label: at for at, label in enumerate(labels)}
                rows = np.array([row[name] for name in other.labels], dtype=np.int64)[other.targets]
                merged = replace(merged, labels=labels, n_features=other.n_features)
                merged = merged._with(other.stored, rows, set(range(len(labels))))
        return merged

    def empty(self) -> Self:
        """A learner of the same settings that knows nothing."""
        return replace(self, labels=(), stored=None, targets=None, updates=0)

    def forget(self, label: Label) -> Self:
        """Drop the samples of a class."""
        (row,) = self.rows([label]).tolist()
        assert self.stored is not None
        assert self.targets is not None
        rest, labels = self.targets != row, tuple(name for name in self.labels if name != label)
        targets = self.targets[rest]
        return replace(self, labels=labels, stored=self.stored[rest], targets=targets - (targets > row))

    def rename(self, old: Label, new: Label) -> Self:
        """The learner with another name for a class."""
        row = self.row_to_rename(old, new)
        return replace(self, labels=(*self.labels[:row], new, *self.labels[row + 1 :]))

    def _arrays(self) -> dict[str, Array]:
        if self.stored is None or self.targets is None:
            return {}
        return {"samples.features": self.stored, "samples.targets": self.targets}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The learner a state was taken from."""
        meta, labels = state.meta, tuple(state.meta["labels"])
        layout = {
            "samples.features": Kept((SAMPLES, meta["n_features"] or 0)),
            "samples.targets": whole(SAMPLES, most=len(labels) - 1),
        }
        arrays = read_state(state, layout)
        learner = cls(cls.configure(meta["config"]), meta["seed"], meta["tasks_learned"], meta["n_features"], labels)
        if not arrays:
            return learner
        targets = arrays["samples.targets"]
        if len(np.unique(targets)) != len(labels):
            raise ValueError("its classes and the samples kept of them do not fit together")
        return replace(learner, stored=arrays["samples.features"], targets=targets)
