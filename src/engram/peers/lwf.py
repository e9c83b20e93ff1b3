"""LwF: on the new data, the old classes are to be answered as the old network would.

Li, Hoiem: "Learning without Forgetting", 2016.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engram.learners.base import About
from engram.paper.adapter import Adapter
from engram.paper.engine import Loss
from engram.paper.learner import Task, require_numbers
from engram.peers import growing
from engram.peers.softmax import SoftmaxConfig, SoftmaxLearner


@dataclass(frozen=True)
class LwFConfig(SoftmaxConfig):
    """Every setting; the temperature is the paper's."""

    increment_epochs: int = 5
    increment_rate: float = 3e-5
    lambda_old: float = 1.0
    temperature: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_numbers(self, positive=("temperature",))


class LwF(SoftmaxLearner):
    """Cross-entropy on the new labels + λ · cross-entropy with the old network's softened answers."""

    method = "lwf"
    about = About(
        title="LwF",
        paper="Li, Hoiem: Learning without Forgetting, 2016",
        per_class="one read-out row",
        copies_network=True,
    )
    config_type = LwFConfig
    config: LwFConfig

    def _loss(self, network: growing.Network, task: Task) -> Loss:
        plain, config, old = super()._loss(network, task), self.config, self.tensors

        def loss(x: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
            with torch.no_grad():
                wanted = (growing.logits(old, x) / config.temperature).softmax(dim=1)
            answers = growing.logits(network, x)[:, : task.known] / config.temperature
            return plain(x, y, pairs) + config.lambda_old * cross_entropy(answers, wanted)

        return loss if task.known else plain


class Method(Adapter):
    """The method, as it is registered."""

    kind = LwF
