"""Learners that keep sums of classes: what all of them do alike."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Self

import numpy as np
from numpy.typing import NDArray

from engram.learners.base import Array, Features, Label, LeavesOut, Subtracts, Tell, quiet
from engram.stats.sums import Sums


@dataclass(frozen=True, eq=False)
class SumsLearner(Subtracts, LeavesOut):
    """Keeps counts and means, with or without a scatter: they are added, taken away, and asked what they would say."""

    sums: Sums | None = None  # None: nothing was learned

    def _sums_of(self, x: Features, y: Sequence[Label]) -> Sums:
        return Sums.of(x, y)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The classes known, in the order they were learned."""
        return () if self.sums is None else self.sums.labels

    def learn(self, x: Features, y: Sequence[Label], tell: Tell = quiet) -> Self:
        """The learner that has learned one task more."""
        self._require_learning()
        return self._with(self._sums_of(x, y), x.shape[1])

    def _with(self, new: Sums, n_features: int) -> Self:
        """The learner that has learned one task more, whose sums these are."""
        sums = new if self.sums is None else self.sums + new
        return replace(self, sums=sums, updates=self.updates + 1, n_features=n_features)

    def _require_learning(self) -> None:
        if not self.can_learn:
            raise ValueError("this model was saved slim, without what further learning needs; load the full model file")

    def merge(self, *others: Self) -> Self:
        """The learner that had learned what all of them have; adding has no order, but for that of the classes."""
        several = (self, *others)
        first = next((one for one in several if one.n_features is not None), self)
        for one in several:
            first.require_mergeable(one)
        taught = [one.sums for one in several if one.sums is not None]
        sums, updates = reduce(add, taught) if taught else None, sum(one.updates for one in several)
        return replace(self, sums=sums, updates=updates, n_features=first.n_features, seed=first.seed)

    def subtract(self, other: Self) -> Self:
        """The learner that knows what was known before `other` was merged."""
        self.require_mergeable(other)
        if other.sums is None or self.sums is None:
            return self
        rest = self.sums - other.sums
        if not rest.labels:
            raise ValueError("no class would be left; for that, remove the model")
        return replace(self, sums=rest, updates=self.updates + 1)

    def empty(self) -> Self:
        """A learner of the same settings and the same space that knows nothing."""
        self.require_mergeable(self)
        return replace(self, sums=None, updates=0)

    def forget(self, label: Label) -> Self:
        """Drop count and mean of a class."""
        self.rows([label])
        assert self.sums is not None
        return replace(self, sums=self.sums.without(label))

    def rename(self, old: Label, new: Label) -> Self:
        """The learner with another name for a class."""
        self.row_to_rename(old, new)
        assert self.sums is not None
        return replace(self, sums=self.sums.renamed(old, new))

    def counts(self) -> NDArray[np.int64] | None:
        """How many samples each class was learned from."""
        return None if self.sums is None else self.sums.counts

    def class_vectors(self) -> Array | None:
        """The class means."""
        return None if self.sums is None else self.sums.means.astype(np.float32)

    def _own(self, y: Sequence[Label]) -> NDArray[np.int64]:
        """The row of each sample's class."""
        assert self.sums is not None
        row = self.sums.row
        return np.array([row[label] for label in y], dtype=np.int64)

    def _kept(self) -> dict[str, Array]:
        """Counts and means, by name."""
        assert self.sums is not None
        return {"classes.counts": self.sums.counts, "classes.means": self.sums.means.astype(np.float32)}
