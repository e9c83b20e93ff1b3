"""Nearest class mean on the features as they are: the mean of every class, the nearest by cosine."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import normalize

from engram.learner import About, Task
from engram.methods.tensors import TensorLearner


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
    )
    config_type = NCMConfig

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        now = self._add_to_statistics(task)
        return {"classes.means": now.means, "classes.counts": now.counts}

    def _scores(self, features: Tensor) -> Tensor:
        return normalize(features, dim=1) @ normalize(self.tensors["classes.means"], dim=1).T
