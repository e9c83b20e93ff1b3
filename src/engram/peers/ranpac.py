"""RanPAC: a frozen random projection with a ReLU, then ridge regression from its second moments.

McDonnell, Gong, Parvaneh, Abbasnejad, van den Hengel: "RanPAC: Random Projections and Pre-trained Models for Continual
Learning", 2023. The ridge is searched for on the base session alone: on a session of one class a search means nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engram.learners.base import About, require
from engram.paper.adapter import Adapter
from engram.paper.layout import floats
from engram.paper.learner import Task, require_numbers
from engram.paper.tensors import Layout, TensorLearner, with_rows

# Times the mean of the Gram matrix's diagonal; smaller ones would drown in single precision.
RIDGES = [10.0**power for power in range(-4, 3)]


@dataclass(frozen=True)
class RanPACConfig:
    """Every setting."""

    width: int = 5000
    held_out: float = 0.2

    def __post_init__(self) -> None:
        require_numbers(self, positive=("width",))
        require(self, 0 < self.held_out < 1, "held_out", "above 0 and below 1")


class RanPAC(TensorLearner):
    """W = (G + λI)⁻¹ Q, with G = Σ h hᵀ over all samples, Q a column Σ h for every class, h = ReLU(projection of x)."""

    method = "ranpac"
    about = About(
        title="RanPAC",
        paper="McDonnell, Gong, Parvaneh, Abbasnejad, van den Hengel: RanPAC, 2023",
        per_class="one sum of projected features, one read-out row (and one Gram matrix for all)",
    )
    config_type = RanPACConfig
    config: RanPACConfig
    only_for_learning = ("classes.", "consolidation.")

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        had, width = self.tensors, self.config.width
        if had:
            projection, ridge = had["network.projection"], had["consolidation.ridge"]
        else:
            projection = torch.randn(task.features.shape[1], width, generator=self.task_generator("cpu"))
            projection = projection.to(self.device)
            ridge = self._choose_ridge(task, projection)
        nothing = torch.zeros(width, width, device=self.device)
        gram = had.get("consolidation.gram", nothing).clone()
        sums = with_rows(had.get("classes.sums", nothing[:0]), task.classes)
        for x, y in zip(task.features.split(4096), task.targets.split(4096), strict=True):
            h = torch.relu(x @ projection)
            gram.addmm_(h.T, h)
            sums.index_add_(0, y, h)
        return {
            "network.projection": projection,
            "network.head.weight": solve(gram, sums, ridge),
            "classes.sums": sums,
            "consolidation.gram": gram,
            "consolidation.ridge": ridge,
        }

    def _layout(self, classes: int, features: int) -> Layout:
        width = self.config.width
        return {
            "network.projection": floats(features, width),
            "network.head.weight": floats(classes, width),
            "classes.sums": floats(classes, width),
            "consolidation.gram": floats(width, width),
            "consolidation.ridge": floats(1),
        }

    def _choose_ridge(self, task: Task, projection: Tensor) -> Tensor:
        """The ridge with the smallest squared error on samples held out of the base session."""
        order = torch.randperm(len(task.features), generator=self.task_generator("cpu")).to(self.device)
        held, rest = order.tensor_split([max(1, int(len(order) * self.config.held_out))])
        rest = rest if len(rest) else held  # of a single sample nothing can be held out
        h = torch.relu(task.features[rest] @ projection)
        sums = torch.zeros(task.classes, self.config.width, device=self.device)
        sums.index_add_(0, task.targets[rest], h)
        gram = h.T @ h
        shown = torch.relu(task.features[held] @ projection)
        wanted = torch.nn.functional.one_hot(task.targets[held], task.classes).float()
        errors = {}
        for share in RIDGES:
            ridge = share * gram.diagonal().mean().clamp(min=1e-12)
            errors[float((shown @ solve(gram, sums, ridge).T - wanted).square().mean())] = ridge
        return errors[min(errors)].reshape(1)

    def _scores(self, features: Tensor) -> Tensor:
        return torch.relu(features @ self.tensors["network.projection"]) @ self.tensors["network.head.weight"].T


def solve(gram: Tensor, sums: Tensor, ridge: Tensor) -> Tensor:
    """The read-out, one row per class; a ridge that drowns in the rounding of a wide Gram matrix is made larger."""
    regular, diagonal = gram.double(), gram.diagonal().double()
    for times in (1, 10, 100, 1000):
        regular.diagonal().copy_(diagonal + times * ridge.double())
        factor, negative = torch.linalg.cholesky_ex(regular)
        if not negative:
            break
    return torch.cholesky_solve(sums.T.double(), factor).T.float().contiguous()


class Method(Adapter):
    """The method, as it is registered."""

    kind = RanPAC
