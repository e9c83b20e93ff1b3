"""Nearest class mean on the features as they are: the mean of every class, the nearest by cosine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from engram.learners.base import About, Array, Features, Label, Scores, State
from engram.learners.layout import Kept, read_state, whole
from engram.learners.over_sums import SumsLearner
from engram.stats.sums import Sums
from engram.stats.whitening import SMALL


@dataclass(frozen=True)
class NCMSettings:
    """There is nothing to set."""


@dataclass(frozen=True, eq=False)
class NCM(SumsLearner):
    """Class means of raw features."""

    method: ClassVar[str] = "ncm"
    about: ClassVar[About] = About(
        title="Nearest class mean",
        paper="Mensink, Verbeek, Perronnin, Csurka: Distance-Based Image Classification, 2013",
        per_class="one mean feature vector",
        merges=True,
    )
    settings_type: ClassVar[type[Any]] = NCMSettings

    def _sums_of(self, x: Features, y: Sequence[Label]) -> Sums:
        return Sums.of(x, y, scatter=False)

    def score(self, x: Features) -> Scores:
        """Cosines."""
        if self.sums is None or not self.labels:
            raise ValueError("no class is known; call learn first")
        means = self.sums.means
        products = unit_rows(x) @ means.T
        products /= np.maximum(np.linalg.norm(means, axis=1), SMALL).astype(products.dtype)
        return Scores(products, None, 1.0)

    def judged(self, x: Features, y: Sequence[Label]) -> tuple[Self, Scores]:
        """Cosines, the own class's mean without the sample: (n·μ - x)/(n - 1). Without its only one it is gone: -1."""
        assert self.sums is not None
        own, values = self._own(y), self.score(x).values
        n = self.sums.counts[own][:, None]
        means = (self.sums.means[own] * n - x) / np.maximum(n - 1, 1)
        alone = np.einsum("nd,nd->n", unit_rows(x), unit_rows(means))
        values[np.arange(len(x)), own] = np.where(n[:, 0] > 1, alone, -1.0)
        return self, Scores(values, None, 1.0)

    def _arrays(self) -> dict[str, Array]:
        return self._kept() if self.sums is not None else {}

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The learner a state was taken from."""
        meta, classes = state.meta, len(state.meta["labels"])
        layout = {
            "classes.means": Kept((classes, meta["n_features"] or 0)),
            "classes.counts": whole(classes, least=1),
        }
        arrays = read_state(state, layout)
        learner = cls(cls.configure(meta["config"]), meta["seed"], meta["tasks_learned"], meta["n_features"])
        if not arrays:
            return learner
        counts = arrays["classes.counts"]
        return replace(
            learner, sums=Sums(tuple(meta["labels"]), counts, arrays["classes.means"], None, int(counts.sum()))
        )


def unit_rows(x: Array) -> Array:
    """Every row at length 1."""
    rows: Array = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), SMALL)
    return rows.astype(np.float32)
