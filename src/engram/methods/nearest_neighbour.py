"""1-NN: every training feature is kept, the class of the nearest one is the answer."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engram.learner import About, Task, require
from engram.methods.tensors import Layout, Taught, TensorLearner, share_evenly, with_samples
from engram.nn.layout import samples
from engram.nn.neighbours import nearest_per_class


@dataclass(frozen=True)
class NearestNeighbourConfig:
    """How much there is room for."""

    samples: int | None = None  # kept in all, as many of every class; None: every one

    def __post_init__(self) -> None:
        require(self, self.samples is None or self.samples > 0, "samples", "a number above 0, or None")


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
    config: NearestNeighbourConfig

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        random = self.task_generator("cpu")
        return with_samples(self.tensors, task.features, task.targets, self.config.samples, random)

    def _layout(self, classes: int, features: int) -> Layout:
        return samples(classes, features)

    def _tensors_merged(self, several: Sequence[Taught], classes: int) -> dict[str, Tensor]:
        targets = torch.cat([each.rows[each.tensors["samples.targets"]] for each in several])
        kept = {
            "samples.features": torch.cat([each.tensors["samples.features"] for each in several]),
            "samples.targets": targets,
        }
        most = self.config.samples
        return kept if most is None else share_evenly(kept, targets, most, self.task_generator("cpu"))

    def _scores(self, features: Tensor) -> Tensor:
        stored, targets = self.tensors["samples.features"], self.tensors["samples.targets"]
        return -nearest_per_class(features, stored, targets, len(self.labels))
