"""FeCAM: every class has its own covariance; the nearest mean by Mahalanobis distance.

Goswami, Liu, Twardowski, van de Weijer: "FeCAM: Exploiting the Heterogeneity of Class Distributions in Exemplar-Free
Continual Learning", 2023. Equation numbers are theirs.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import normalize

from engram.learners.base import About
from engram.paper.adapter import Adapter
from engram.paper.layout import floats, whole
from engram.paper.learner import Task, require_numbers
from engram.paper.tensors import Layout, TensorLearner


@dataclass(frozen=True)
class FeCAMConfig:
    """Every setting; the values are the paper's for networks trained on many samples."""

    power: float = 0.5  # Tukey's λ, Eq. 9
    shrink_diagonal: float = 1.0  # γ₁ and γ₂, Eq. 8
    shrink_rest: float = 1.0

    def __post_init__(self) -> None:
        require_numbers(self, positive=("power", "shrink_diagonal", "shrink_rest"))


class FeCAM(TensorLearner):
    """Kept of a class: its mean, the inverse of its shrunk and normalised covariance, the deviations it was divided by.

    The inverse takes the room of the covariance, and the covariance can be had back from it when more samples come.
    """

    method = "fecam"
    about = About(
        title="FeCAM",
        paper="Goswami, Liu, Twardowski, van de Weijer: FeCAM, 2023",
        per_class="one mean and one full covariance of the features",
    )
    config_type = FeCAMConfig
    config: FeCAMConfig

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        had = self.tensors
        now = self._add_to_statistics(replace(task, features=self._transform(task.features)))
        d = task.features.shape[1]
        precisions = torch.empty(task.classes, d, d, device=self.device)
        deviations = torch.empty(task.classes, d, device=self.device)
        if had:
            precisions[: task.known], deviations[: task.known] = had["classes.precisions"], had["classes.deviations"]
        for row in task.new_rows().tolist():
            own = torch.cat([now.centred[task.targets == row], now.between[row : row + 1]]).double()
            scatter = own.T @ own
            if row < task.known:
                before = self._covariance(precisions[row].double(), deviations[row].double())
                scatter += before * (had["classes.counts"][row] - 1).clamp(min=1)
            covariance = scatter / (now.counts[row] - 1).clamp(min=1)
            precisions[row], deviations[row] = self._precision(covariance)
        return {
            "classes.means": now.means,
            "classes.counts": now.counts,
            "classes.precisions": precisions,
            "classes.deviations": deviations,
        }

    def _layout(self, classes: int, features: int) -> Layout:
        return {
            "classes.means": floats(classes, features),
            "classes.counts": whole(classes, least=1),
            "classes.precisions": floats(classes, features, features),
            "classes.deviations": floats(classes, features),
        }

    def _transform(self, features: Tensor) -> Tensor:
        """Eq. 9, Tukey's ladder of powers, for features that are not negative; the sign of others is kept."""
        return features.sign() * features.abs().pow(self.config.power)

    def _precision(self, covariance: Tensor) -> tuple[Tensor, Tensor]:
        """Eq. 8: Σ + γ₁V₁I + γ₂V₂(1 - I), V₁ and V₂ the mean (co)variance; Eq. 7: divided by its deviations."""
        d = len(covariance)
        variance, rest = _means(covariance)
        diagonal = self.config.shrink_diagonal * variance + (variance <= 0)  # one sample alone: the identity
        around = self.config.shrink_rest * rest
        covariance = covariance + around
        covariance += torch.eye(d, dtype=covariance.dtype, device=covariance.device) * (diagonal - around)
        deviations = covariance.diagonal().sqrt()
        normal = covariance / deviations[:, None] / deviations[None, :]
        return torch.cholesky_inverse(torch.linalg.cholesky(normal)).float(), deviations.float()

    def _covariance(self, precision: Tensor, deviations: Tensor) -> Tensor:
        """The inverse of `_precision`."""
        shrunk = torch.cholesky_inverse(torch.linalg.cholesky(precision)) * deviations[:, None] * deviations[None, :]
        variance, rest = _means(shrunk)
        variance, rest = variance / (1 + self.config.shrink_diagonal), rest / (1 + self.config.shrink_rest)
        identity = torch.eye(len(shrunk), dtype=shrunk.dtype, device=shrunk.device)
        around = self.config.shrink_rest * rest
        return shrunk - around - identity * (self.config.shrink_diagonal * variance - around)

    def _scores(self, features: Tensor) -> Tensor:
        """Eq. 6: the squared Mahalanobis distance of directions, class by class."""
        x = normalize(self._transform(features), dim=1)
        means = normalize(self.tensors["classes.means"], dim=1)
        distances = []
        for mean, precision in zip(means, self.tensors["classes.precisions"], strict=True):
            gap = x - mean
            distances.append(((gap @ precision) * gap).sum(dim=1))
        return -torch.stack(distances, dim=1)


def _means(covariance: Tensor) -> tuple[Tensor, Tensor]:
    """The mean of the diagonal and of all else."""
    d = len(covariance)
    trace = covariance.trace()
    return trace / d, (covariance.sum() - trace) / max(1, d * (d - 1))


class Method(Adapter):
    """The method, as it is registered."""

    kind = FeCAM
