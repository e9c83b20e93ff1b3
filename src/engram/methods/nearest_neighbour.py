"""1-NN: every training feature is kept, the class of the nearest one is the answer."""

from dataclasses import dataclass

from torch import Tensor

from engram.learner import About, Task
from engram.methods.tensors import TensorLearner, with_samples
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
    )
    config_type = NearestNeighbourConfig

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        return with_samples(self.tensors, task.features, task.targets)

    def _scores(self, features: Tensor) -> Tensor:
        stored, targets = self.tensors["samples.features"], self.tensors["samples.targets"]
        return -nearest_per_class(features, stored, targets, len(self.labels))
