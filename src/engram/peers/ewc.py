"""EWC: what the Fisher information calls important is held still, by a spring to where it was.

Kirkpatrick et al.: "Overcoming Catastrophic Forgetting in Neural Networks", 2017. One spring to the last task's weights
with the Fisher informations of all tasks added up (Huszár's note on that paper), not one spring per task: that would
keep a copy of the network for each.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from engram.learners.base import About
from engram.paper.adapter import Adapter
from engram.paper.engine import Penalty
from engram.paper.learner import Task
from engram.paper.tensors import Layout, with_rows
from engram.peers import growing
from engram.peers.softmax import SoftmaxConfig, SoftmaxLearner


@dataclass(frozen=True)
class EWCConfig(SoftmaxConfig):
    """Every setting."""

    increment_epochs: int = 5
    increment_rate: float = 1e-4
    lambda_ewc: float = 100.0


class EWC(SoftmaxLearner):
    """Cross-entropy + λ/2 Σ_k F_k (θ_k - θ̃_k)²."""

    method = "ewc"
    about = About(
        title="EWC",
        paper="Kirkpatrick et al.: Overcoming Catastrophic Forgetting in Neural Networks, 2017",
        per_class="one read-out row and its Fisher information",
        copies_network=True,
    )
    config_type = EWCConfig
    config: EWCConfig
    only_for_learning = ("consolidation.",)

    def _penalty(self, parameters: Mapping[str, Tensor]) -> Penalty | None:
        # Zero rows for the classes that are new: there is nothing yet to hold on to.
        importance = {n: with_rows(self.tensors[_fisher_of(n)], len(theta)) for n, theta in parameters.items()}
        anchor = {n: with_rows(self.tensors[n], len(theta)) for n, theta in parameters.items()}
        return Penalty(importance, anchor, self.config.lambda_ewc / 2)

    def _keep(self, task: Task, network: growing.Network) -> dict[str, Tensor]:
        kept = {_fisher_of(name): value for name, value in fisher(network, task.features).items()}
        if task.known:
            for name, value in kept.items():
                value += with_rows(self.tensors[name], len(value))
        return kept

    def _layout(self, classes: int, features: int) -> Layout:
        network = super()._layout(classes, features)
        trained = {name: kept for name, kept in network.items() if name not in (growing.MEAN, growing.SCALE)}
        return network | {_fisher_of(name): kept for name, kept in trained.items()}


@torch.no_grad()
def fisher(network: growing.Network, features: Tensor) -> dict[str, Tensor]:
    """The mean over samples of E[(∂ log p(c|x) / ∂θ)²], c drawn from the network's own answer p.

    A linear layer's gradient is δ aᵀ, so the mean of its squares is the product of the squares. With c drawn from p,
    the head's δ = p - e_c has E[δ²] = p(1 - p), and the hidden layer's, Hᵀδ, the variance of H's rows under p.
    """
    inputs = growing.standardise(network, features)
    active = growing.hidden(network, features)
    p = growing.logits(network, features).softmax(dim=1)
    head = network[growing.HEAD]
    of_logits = p * (1 - p)
    of_hidden = (p @ head.square() - (p @ head).square()).clamp(min=0) * (active > 0)
    n = len(features)
    return {
        growing.HEAD: of_logits.T @ active.square() / n,
        growing.HEAD_BIAS: of_logits.mean(dim=0),
        growing.BODY: of_hidden.T @ inputs.square() / n,
        growing.BODY_BIAS: of_hidden.mean(dim=0),
    }


def _fisher_of(name: str) -> str:
    return name.replace("network.", "consolidation.fisher.", 1)


class Method(Adapter):
    """The method, as it is registered."""

    kind = EWC
