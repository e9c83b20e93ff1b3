"""1-NN: every training feature is kept, the class of the nearest one is the answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engram.learner import About, Task
from engram.methods.tensors import Layout, Taught, TensorLearner, with_samples
from engram.nn.layout import samples
from engram.nn.neighbours import nearest_per_class


@dataclass(frozen=True)
class NearestNeighbourConfig:
    """There is nothing to set."""


class NearestNeighbour(TensorLearner):
    """Euclidean nearest neighbour over all stored samples."""

    method = "1nn"
    about = About(
        title="1-NN",
        paper="Cover, Hart: Nearest Neighbor Pattern Classification, 1967",
        per_class="every training feature vector",
        keeps_samples=True,
        given="all old samples",
        merges=True,
    )
    config_type = NearestNeighbourConfig

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        return with_samples(self.tensors, task.features, task.targets)

    def _layout(self, classes: int, features: int) -> Layout:
        return samples(classes, features)

    def _tensors_merged(self, several: Sequence[Taught], classes: int) -> dict[str, Tensor]:
        return {
            "samples.features": torch.cat([each.tensors["samples.features"] for each in several]),
            "samples.targets": torch.cat([each.rows[each.tensors["samples.targets"]] for each in several]),
        }

    def _scores(self, features: Tensor) -> Tensor:
        stored, targets = self.tensors["samples.features"], self.tensors["samples.targets"]
        return -nearest_per_class(features, stored, targets, len(self.labels))
