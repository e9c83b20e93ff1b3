"""SLDA: streaming linear discriminant analysis, one covariance shared by all classes and one mean per class.

Hayes, Kanan: "Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis", 2020. Their running update
of one sample at a time and this one, of a task at a time, both give the covariance of all the data at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engram.learner import About, Task, require
from engram.methods.tensors import Layout, Taught, TensorLearner, united
from engram.nn import statistics
from engram.nn.layout import floats, linear, whole


@dataclass(frozen=True)
class SLDAConfig:
    """Every setting."""

    shrinkage: float = 1e-2

    def __post_init__(self) -> None:
        require(self, 0 < self.shrinkage <= 1, "shrinkage", "above 0 and at most 1")


class SLDA(TensorLearner):
    """Scores are Λμ·x - ½ μ·Λμ with Λ the inverse of the shrunk shared covariance."""

    method = "slda"
    about = About(
        title="SLDA",
        paper="Hayes, Kanan: Lifelong Machine Learning with Deep Streaming Linear Discriminant Analysis, 2020",
        per_class="one mean feature vector (and one covariance for all)",
        merges=True,
    )
    config_type = SLDAConfig
    config: SLDAConfig
    weighs_features = True
    only_for_learning = ("classes.", "consolidation.")

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        now = self._add_to_statistics(task)
        scatter = now.scatter
        if "consolidation.scatter" in self.tensors:
            scatter += self.tensors["consolidation.scatter"]
        return self._with_readout(now.counts, now.means, scatter)

    def _layout(self, classes: int, features: int) -> Layout:
        return {
            **linear("network.head", features, classes),
            "classes.means": floats(classes, features),
            "classes.counts": whole(classes, least=1),
            "consolidation.scatter": floats(features, features),
        }

    def _tensors_merged(self, several: Sequence[Taught], classes: int) -> dict[str, Tensor]:
        counts, means, scatter = united(several, classes)
        for each in several:
            scatter += each.tensors["consolidation.scatter"]
        return self._with_readout(counts, means, scatter)

    def _tensors_of(self, rest: statistics.Rest) -> dict[str, Tensor]:
        scatter = self.tensors["consolidation.scatter"].double()
        scatter = scatter if rest.scatter is None else scatter - rest.scatter
        return self._with_readout(rest.counts, rest.means.float(), scatter.float())

    def _with_readout(self, counts: Tensor, means: Tensor, scatter: Tensor) -> dict[str, Tensor]:
        covariance = statistics.shrunk(scatter.double() / counts.sum(), self.config.shrinkage)
        exact = means.double()
        weights = torch.cholesky_solve(exact.T, torch.linalg.cholesky(covariance)).T
        return {
            "network.head.weight": weights.float(),
            "network.head.bias": (-0.5 * (exact * weights).sum(dim=1)).float(),
            "classes.means": means,
            "classes.counts": counts,
            "consolidation.scatter": scatter,
        }

    def _scores(self, features: Tensor) -> Tensor:
        return features @ self.tensors["network.head.weight"].T + self.tensors["network.head.bias"]
