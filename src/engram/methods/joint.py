"""Joint training: keep everything, and train anew on all of it whenever a task comes. The upper bound."""

from dataclasses import replace

from torch import Tensor

from engram.methods.base import About
from engram.methods.nearest_neighbour import with_samples
from engram.methods.softmax import SoftmaxLearner
from engram.methods.tensors import Lesson


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
    only_for_learning = ("samples.",)

    def _learned(self, lesson: Lesson) -> dict[str, Tensor]:
        kept = with_samples(self.tensors, lesson.features, lesson.targets)
        everything = replace(lesson, features=kept["samples.features"], targets=kept["samples.targets"], known=0)
        return super()._learned(everything) | kept
