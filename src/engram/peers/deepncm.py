"""DeepNCM: a network trained so that the nearest class mean of its codes is right; a new class is one more mean.

Guerriero, Caputo, Mensink: "DeepNCM: Deep Nearest Class Mean Classifiers", 2018. The network learns on the base classes
and is then left as it is, which is what makes adding a class free.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear, one_hot

from engram.learners.base import About, require
from engram.paper import statistics
from engram.paper.adapter import Adapter
from engram.paper.engine import Loss
from engram.paper.layout import whole
from engram.paper.learner import Task, require_numbers
from engram.paper.tensors import Layout
from engram.peers import growing
from engram.peers.softmax import SoftmaxConfig, SoftmaxLearner


@dataclass(frozen=True)
class DeepNCMConfig(SoftmaxConfig):
    """Every setting."""

    increment_epochs: int = 0
    mean_decay: float = 0.9  # of the class means, from one mini-batch to the next

    def __post_init__(self) -> None:
        super().__post_init__()
        require_numbers(self, fractions=("mean_decay",))
        require(self, self.increment_epochs == 0, "increment_epochs", "0: the network is trained once")


class DeepNCM(SoftmaxLearner):
    """The growing softmax whose head is the class means: h·μ - ½‖μ‖² is largest where ‖h - μ‖² is smallest."""

    method = "deepncm"
    about = About(
        title="DeepNCM",
        paper="Guerriero, Caputo, Mensink: DeepNCM: Deep Nearest Class Mean Classifiers, 2018",
        per_class="one mean code",
    )
    config_type = DeepNCMConfig
    config: DeepNCMConfig
    only_for_learning = ("classes.",)

    def _parameters(self, network: growing.Network) -> dict[str, Tensor]:
        """The head is computed, not trained."""
        return {name: network[name] for name in (growing.BODY, growing.BODY_BIAS)}

    def _loss(self, network: growing.Network, task: Task) -> Loss:
        config = self.config
        means = torch.zeros_like(network[growing.HEAD])

        def loss(x: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
            codes = growing.hidden(network, x, growing.draw_kept(network, len(x), config.dropout))
            with torch.no_grad():
                members = one_hot(y, len(means)).T.float()
                counts = members.sum(dim=1, keepdim=True)
                means.add_((1 - config.mean_decay) * (counts > 0) * (members @ codes / counts.clamp(min=1) - means))
            return cross_entropy(linear(codes, means, _bias(means)), y)

        return loss

    def _keep(self, task: Task, network: growing.Network) -> dict[str, Tensor]:
        counts, means = self.tensors.get("classes.counts"), self.tensors.get(growing.HEAD)
        codes = growing.hidden(network, task.features)
        now = statistics.update(counts, means, codes, task.targets, task.classes)
        return {growing.HEAD: now.means, growing.HEAD_BIAS: _bias(now.means), "classes.counts": now.counts}

    def _layout(self, classes: int, features: int) -> Layout:
        return super()._layout(classes, features) | {"classes.counts": whole(classes, least=1)}


def _bias(means: Tensor) -> Tensor:
    return -0.5 * means.square().sum(dim=1)


class Method(Adapter):
    """The method, as it is registered."""

    kind = DeepNCM
