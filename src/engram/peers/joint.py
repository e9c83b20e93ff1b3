"""Joint training: keep everything, and train anew on all of it whenever a task comes. The upper bound."""

from dataclasses import dataclass, replace

from torch import Tensor

from engram.learners.base import About, require
from engram.paper.adapter import Adapter
from engram.paper.layout import samples
from engram.paper.learner import Task
from engram.paper.tensors import Layout, with_samples
from engram.peers.softmax import SoftmaxConfig, SoftmaxLearner


@dataclass(frozen=True)
class JointConfig(SoftmaxConfig):
    """Every setting."""

    samples: int | None = None  # kept in all, as many of every class; None: every one

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, self.samples is None or self.samples > 0, "samples", "a number above 0, or None")


class Joint(SoftmaxLearner):
    """The offline network, after every task: each is a base task that holds all there has been."""

    method = "joint"
    about = About(
        title="Joint training",
        paper="Caruana: Multitask Learning, 1997",
        per_class="every training feature vector",
        keeps_samples=True,
        given="all old samples; trained anew on them with every task",
    )
    config_type = JointConfig
    config: JointConfig
    only_for_learning = ("samples.",)

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        most, random = self.config.samples, self.task_generator("cpu")
        kept = with_samples(self.tensors, task.features, task.targets, most, random)
        everything = replace(task, features=kept["samples.features"], targets=kept["samples.targets"], known=0)
        return super()._tensors_after(everything) | kept

    def _layout(self, classes: int, features: int) -> Layout:
        return super()._layout(classes, features) | samples(classes, features)


class Method(Adapter):
    """The method, as it is registered."""

    kind = Joint
