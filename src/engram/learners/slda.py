"""SLDA: streaming linear discriminant analysis, one covariance shared by all classes and one mean per class.

Hayes, Kanan: "Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis", 2020. Their running update
of one sample at a time and this one, of a task at a time, both give the covariance of all the data at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from engram.learners.base import About, Array, Features, Label, Scores, State, require
from engram.learners.layout import Kept, read_state, whole
from engram.learners.over_sums import SumsLearner
from engram.stats.linalg import cholesky, solve
from engram.stats.sums import Sums
from engram.stats.triangle import Triangle
from engram.stats.whitening import products_left_out


@dataclass(frozen=True)
class SLDASettings:
    """Every setting."""

    shrinkage: float = 1e-2

    def __post_init__(self) -> None:
        require(self, 0 < self.shrinkage <= 1, "shrinkage", "above 0 and at most 1")


@dataclass(frozen=True, eq=False)
class SLDA(SumsLearner):
    """Scores are Λμ·x - ½ μ·Λμ with Λ the inverse of the shrunk shared covariance."""

    method: ClassVar[str] = "slda"
    about: ClassVar[About] = About(
        title="SLDA",
        paper="Hayes, Kanan: Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis, 2020",
        per_class="one mean feature vector (and one covariance for all)",
        merges=True,
    )
    settings_type: ClassVar[type[Any]] = SLDASettings
    weighs_features: ClassVar[bool] = True

    settings: SLDASettings
    slim: tuple[tuple[Label, ...], Array, Array] | None = None  # of a file without sums: classes, Λμ and -½ μ·Λμ

    @property
    def labels(self) -> tuple[Label, ...]:
        """The classes known, in the order they were learned."""
        return super().labels if self.slim is None else self.slim[0]

    @property
    def can_learn(self) -> bool:
        """Whether there are sums."""
        return self.slim is None

    @cached_property
    def whitened(self) -> tuple[Array, Array, float]:
        """U with UᵀU = Σ, U⁻ᵀμ of every class, and the weight in Σ of one sample's deviation squared; in float64."""
        if self.sums is None or self.sums.scatter is None or not self.labels:
            raise ValueError("no class is known; call learn first")
        n, epsilon, scatter = int(self.sums.counts.sum()), self.settings.shrinkage, self.sums.scatter
        sphere = scatter.trace / scatter.width / n
        sigma = scatter.upper(np.float64, (1 - epsilon) / n)
        sigma[np.diag_indices_from(sigma)] += epsilon * sphere if sphere > 0 else 1.0
        factor = cholesky(sigma)
        return factor, solve(factor, self.sums.means.astype(np.float64)), (1 - epsilon) / n

    @cached_property
    def readout(self) -> tuple[Array, Array]:
        """Λμ and -½ μ·Λμ of every class."""
        if self.slim is not None:
            return self.slim[1:]
        if self.sums is not None and not self.labels:
            return np.zeros((0, self.sums.means.shape[1]), np.float32), np.zeros(0, np.float32)
        factor, means, _ = self.whitened
        weights = means @ solve(factor, np.eye(len(factor))).T
        bias = -0.5 * np.einsum("cd,cd->c", means, means)
        return weights.astype(np.float32), bias.astype(np.float32)

    def score(self, x: Features) -> Scores:
        """What is linear in x of the log-density of each class."""
        if not self.labels:
            raise ValueError("no class is known; call learn first")
        weight, bias = self.readout
        values = x @ weight.T
        values += bias
        return Scores(values, None, 1.0)

    def judged(self, x: Features, y: Sequence[Label]) -> tuple[Self, Scores]:
        """Without a sample its class mean, Σ and N change; how Σ's sphere does is left out, as for whitened ones."""
        factor, means, leverage = self.whitened
        assert self.sums is not None
        own = self._own(y)
        w = solve(factor, x.astype(np.float64))
        x_y, _, y_y, share = products_left_out(w, own, means, self.sums.counts, leverage, origin_moves=False)
        values = ((x_y - y_y / 2) * (1 - 1 / self.sums.counts.sum())).astype(np.float32)  # Σ is over N - 1
        values[(share > 0) & (self.sums.counts == 1)] = np.finfo(np.float32).min
        return self, Scores(values, None, 1.0)

    def _arrays(self) -> dict[str, Array]:
        if self.sums is None and self.slim is None:
            return {}
        head = {"network.head.weight": self.readout[0], "network.head.bias": self.readout[1]}
        if self.sums is None or self.sums.scatter is None:
            return head
        upper = self.sums.scatter.unpack(np.float32)
        return head | self._kept() | {"consolidation.scatter": upper + np.triu(upper, 1).T}

    def forget(self, label: Label) -> Self:
        """Drop a class. What the others are answered by stays until something is learned."""
        rest = np.delete(np.arange(len(self.labels)), self.rows([label]))
        labels, (weight, bias) = tuple(self.labels[row] for row in rest.tolist()), self.readout
        return self._answering_by(weight[rest], bias[rest], labels, self.sums and self.sums.without(label))

    def rename(self, old: Label, new: Label) -> Self:
        """The learner with another name for a class."""
        row = self.row_to_rename(old, new)
        labels = (*self.labels[:row], new, *self.labels[row + 1 :])
        return self._answering_by(*self.readout, labels, self.sums and self.sums.renamed(old, new))

    def _answering_by(self, weight: Array, bias: Array, labels: tuple[Label, ...], sums: Sums | None) -> Self:
        """With a read-out that need not be solved for, or, in a slim model, could not."""
        if sums is None:
            return replace(self, slim=(labels, weight, bias))
        made = replace(self, sums=sums)
        vars(made)["readout"] = (weight, bias)
        return made

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The learner a state was taken from; of a slim one, what it answers by."""
        meta, classes, d = state.meta, len(state.meta["labels"]), state.meta["n_features"] or 0
        layout = {"network.head.weight": Kept((classes, d)), "network.head.bias": Kept((classes,))}
        if not meta["slim"]:
            layout |= {
                "classes.means": Kept((classes, d)),
                "classes.counts": whole(classes, least=1),
                "consolidation.scatter": Kept((d, d)),
            }
        arrays = read_state(state, layout)
        learner = cls(cls.configure(meta["config"]), meta["seed"], meta["tasks_learned"], meta["n_features"])
        if not arrays:
            return learner
        labels, readout = tuple(meta["labels"]), (arrays["network.head.weight"], arrays["network.head.bias"])
        if meta["slim"]:
            return learner._answering_by(*readout, labels, None)
        counts, scatter = arrays["classes.counts"], Triangle.of(arrays["consolidation.scatter"])
        sums = Sums(labels, counts, arrays["classes.means"], scatter, int(counts.sum()))
        return learner._answering_by(*readout, labels, sums)
