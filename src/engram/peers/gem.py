"""GEM: a step may not make the loss on any earlier task's stored samples worse.

Lopez-Paz, Ranzato: "Gradient Episodic Memory for Continual Learning", 2017. With g the gradient of the new data and G
the gradients of the memories, one row per task, the step is g + Gᵀv, v ≥ 0 the answer of their dual program (Eq. 11).
g + Gᵀv is the gradient of L_new + Σ v_t L_t, and the program needs G only in products: so nothing of G is ever stored.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

from engram.learners.base import About, require
from engram.paper.adapter import Adapter
from engram.paper.engine import Loss, Optimizer, Schedule
from engram.paper.layout import SAMPLES, samples, whole
from engram.paper.learner import Task, require_numbers
from engram.paper.tensors import Layout
from engram.peers import growing
from engram.peers.softmax import SoftmaxConfig, SoftmaxLearner

ITERATIONS = 300  # of the dual program: a fixed number, so that a GPU never waits for the answer


@dataclass(frozen=True)
class GEMConfig(SoftmaxConfig):
    """Every setting; as many stored samples as iCaRL has.

    Plain SGD is the paper's step. AMSGrad scales every weight's step by itself, and a step so scaled may make a
    memory's loss worse even if g + Gᵀv does not.
    """

    increment_rate: float = 1e-3
    memories: int = 2000
    optimizer: Optimizer = "sgd"  # of the increments

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, self.optimizer in ("amsgrad", "sgd"), "optimizer", "'amsgrad' or 'sgd'")
        require_numbers(self, positive=("memories",))


class GEM(SoftmaxLearner):
    """Kept in `samples.…`: the last samples of every class, and the task each was learned in."""

    method = "gem"
    about = About(
        title="GEM",
        paper="Lopez-Paz, Ranzato: Gradient Episodic Memory for Continual Learning, 2017",
        per_class="stored samples, 2,000 in all, and one read-out row",
        keeps_samples=True,
        given="2,000 old samples",
    )
    config_type = GEMConfig
    config: GEMConfig
    only_for_learning = ("samples.",)

    def _schedule(self, task: Task) -> Schedule:
        schedule = super()._schedule(task)
        return replace(schedule, optimizer=self.config.optimizer) if task.known else schedule

    def sample_growth(self, classes: int) -> float:
        """The classes share one memory. Where it is full, fewer of them would have had more samples each."""
        stored, known = len(self.tensors["samples.targets"]), len(self.labels)
        share = self._share(classes)
        each = share if stored == known * self._share(known) else min(share, stored / known)
        return classes * each / stored

    def _share(self, classes: int) -> int:
        """How many samples of every class there is room for."""
        return max(1, self.config.memories // classes)

    def _loss(self, network: growing.Network, task: Task) -> Loss:
        if not task.known:
            return super()._loss(network, task)
        stored, targets = self.tensors["samples.features"], self.tensors["samples.targets"]
        tasks = self.tensors["samples.tasks"].unique(return_inverse=True)[1]
        shares = one_hot(tasks).T.float()
        shares /= shares.sum(dim=1, keepdim=True)  # a row per task: the mean over its memory

        def loss(x: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
            new = cross_entropy(growing.logits(network, x), y)
            with torch.no_grad():
                products = gradient_products(
                    network,
                    torch.cat([stored, x]),
                    torch.cat([targets, y]),
                    torch.block_diag(shares, torch.full((1, len(x)), 1 / len(x), device=x.device)),
                )
                v = solve_dual(products[:-1, :-1], products[:-1, -1])
            old = cross_entropy(growing.logits(network, stored), targets, reduction="none")
            return new + v @ (shares @ old)

        return loss

    def _keep(self, task: Task, network: growing.Network) -> dict[str, Tensor]:
        """Keep the latest samples of every class, of each as many as the memory has room for."""
        had = self.tensors
        features, targets = task.features, task.targets
        tasks = torch.full_like(targets, self.tasks_learned)
        if task.known:
            features = torch.cat([had["samples.features"], features])
            targets, tasks = torch.cat([had["samples.targets"], targets]), torch.cat([had["samples.tasks"], tasks])
        most = self._share(task.classes)
        kept = torch.cat([torch.nonzero(targets == row).flatten()[-most:] for row in range(task.classes)])
        return {"samples.features": features[kept], "samples.targets": targets[kept], "samples.tasks": tasks[kept]}

    def _layout(self, classes: int, features: int) -> Layout:
        stored = samples(classes, features) | {"samples.tasks": whole(SAMPLES)}
        return super()._layout(classes, features) | stored


def gradient_products(network: growing.Network, features: Tensor, targets: Tensor, shares: Tensor) -> Tensor:
    """The scalar products of the gradients of several mean losses; a row of `shares` weighs the samples of one.

    A sample's gradient of a linear layer is δ aᵀ, of its bias δ. So two samples' product is (δ·δ')(a·a' + 1).
    """
    inputs, active = growing.standardise(network, features), growing.hidden(network, features)
    p = growing.logits(network, features).softmax(dim=1)
    of_logits = p - one_hot(targets, p.shape[1])
    of_hidden = (of_logits @ network[growing.HEAD]) * (active > 0)
    pairs = (of_logits @ of_logits.T) * (active @ active.T + 1) + (of_hidden @ of_hidden.T) * (inputs @ inputs.T + 1)
    return shares @ pairs @ shares.T


def solve_dual(products: Tensor, with_new: Tensor) -> Tensor:
    """Eq. 11: min_v ½ vᵀGGᵀv + (Gg)ᵀv, v ≥ 0, by accelerated projected gradient; gradients have length 1."""
    lengths = products.diagonal().clamp(min=1e-24).sqrt()
    products = (products / lengths[:, None] / lengths[None, :]).double()
    with_new = (with_new / lengths).double()
    step = 1 / torch.linalg.matrix_norm(products)  # at least the largest eigenvalue
    v = ahead = torch.zeros_like(with_new)
    momentum = 1.0
    for _ in range(ITERATIONS):
        following = (ahead - step * (products @ ahead + with_new)).clamp(min=0)
        faster = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = following + (momentum - 1) / faster * (following - v)
        v, momentum = following, faster
    return (v / lengths).float()


class Method(Adapter):
    """The method, as it is registered."""

    kind = GEM
