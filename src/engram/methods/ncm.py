"""Nearest class mean on the features as they are: the mean of every class, the nearest by cosine."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from engram.learner import About, Task
from engram.methods.tensors import Layout, Taught, TensorLearner, united
from engram.nn import distance
from engram.nn.layout import floats, whole


@dataclass(frozen=True)
class NCMConfig:
    """There is nothing to set."""


class NCM(TensorLearner):
    """Class means of raw features."""

    method = "ncm"
    about = About(
        title="Nearest class mean",
        paper="Mensink, Verbeek, Perronnin, Csurka: Distance-Based Image Classification, 2013",
        per_class="one mean feature vector",
        merges=True,
    )
    config_type = NCMConfig

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        now = self._add_to_statistics(task)
        return {"classes.means": now.means, "classes.counts": now.counts}

    def _layout(self, classes: int, features: int) -> Layout:
        return {"classes.means": floats(classes, features), "classes.counts": whole(classes, least=1)}

    def _tensors_merged(self, several: Sequence[Taught], classes: int) -> dict[str, Tensor]:
        counts, means, _ = united(several, classes)
        return {"classes.means": means, "classes.counts": counts}

    def _scores(self, features: Tensor) -> Tensor:
        return distance.similarity(features, self.tensors["classes.means"])

    def _nearest(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        return distance.nearest(features, self.tensors["classes.means"], k)
