"""HAT: every task learns which hidden units it needs; the weights of units an earlier task needs are frozen.

Serrà, Surís, Miron, Karatzoglou: "Overcoming Catastrophic Forgetting with Hard Attention to the Task", 2018. HAT has to
be told the task of a sample, also when it is asked. So it is asked among that task's classes only, and a task of one
class is always answered right: read its row with that in mind.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, dropout, linear, relu

from engram.learners.base import About, Progress, require
from engram.paper.adapter import Adapter
from engram.paper.engine import Loss
from engram.paper.layout import floats
from engram.paper.learner import Task
from engram.paper.tensors import Layout, with_rows
from engram.peers import growing
from engram.peers.softmax import SoftmaxConfig, SoftmaxLearner

EMBEDDING, USED = "network.embedding", "consolidation.used"


@dataclass(frozen=True)
class HATConfig(SoftmaxConfig):
    """Every setting; s_max and c are the paper's."""

    hardness: float = 400.0  # s_max
    lambda_sparse: float = 0.75  # c

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self, self.hardness >= 1, "hardness", "at least 1")


class HAT(SoftmaxLearner):
    """Hidden activity is multiplied by a gate σ(s·e), e the task's embedding; s grows with the epochs up to s_max."""

    method = "hat"
    about = About(
        title="HAT",
        paper="Serrà, Surís, Miron, Karatzoglou: Overcoming Catastrophic Forgetting with Hard Attention, 2018",
        per_class="one gate per hidden unit, one read-out row",
        given="the task of every test sample: a one-class task cannot be answered wrong",
        told_the_task=True,
    )
    config_type = HATConfig
    config: HATConfig
    only_for_learning = ("consolidation.",)

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        self._hardness = torch.full((), 1 / self.config.hardness, device=self.device)
        try:
            learned = super()._tensors_after(replace(task, progress=self._harden_with(task)))
        finally:
            del self._hardness
        del learned[EMBEDDING]  # what is left of it is the gates
        return learned

    def _harden_with(self, task: Task) -> Callable[[Progress], None]:
        """A progress callback that raises s after every epoch, in place: a captured step reads it where it lies."""

        def harden(progress: Progress) -> None:
            least, most = 1 / self.config.hardness, self.config.hardness
            self._hardness.fill_(least + (most - least) * min(1.0, progress.epoch / max(1, progress.epochs - 1)))
            if task.progress:
                task.progress(progress)

        return harden

    def _network(self, task: Task) -> dict[str, Tensor]:
        embedding = torch.randn(self.config.width, generator=self.task_generator("cpu"))
        return {**super()._network(task), EMBEDDING: embedding.to(self.device)}

    def _parameters(self, network: growing.Network) -> dict[str, Tensor]:
        return {**super()._parameters(network), EMBEDDING: network[EMBEDDING]}

    def _loss(self, network: growing.Network, task: Task) -> Loss:
        config, s = self.config, self._hardness
        used = self.tensors[USED] if task.known else torch.zeros(config.width, device=self.device)
        free = 1 - used
        absent = torch.ones(task.classes, dtype=torch.bool, device=self.device)
        absent[task.targets] = False

        def loss(x: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
            e = network[EMBEDDING]
            # Eq. 4-5: the gate's gradient would vanish as s grows; this gives it back.
            back = config.hardness / s * (torch.cosh((s * e).clamp(-50, 50)) + 1) / (torch.cosh(e) + 1)
            gate = torch.sigmoid(s * scale_gradient(e, back.detach()))
            # Eq. 2: the gradient of what an earlier task uses is multiplied by 1 - used.
            body = scale_gradient(network[growing.BODY], free[:, None])
            bias = scale_gradient(network[growing.BODY_BIAS], free)
            active = relu(linear(growing.standardise(network, x), body, bias)) * gate
            answers = linear(dropout(active, config.dropout), network[growing.HEAD], network[growing.HEAD_BIAS])
            sparsity = (gate * free).sum() / free.sum().clamp(min=1)  # Eq. 6
            return cross_entropy(answers.masked_fill(absent, -torch.inf), y) + config.lambda_sparse * sparsity

        return loss

    def _keep(self, task: Task, network: growing.Network) -> dict[str, Tensor]:
        gate = torch.sigmoid(self.config.hardness * network[EMBEDDING])
        had = self.tensors if task.known else {"classes.gates": gate[None, :0], USED: torch.zeros_like(gate)}
        gates = with_rows(had["classes.gates"].reshape(task.known, len(gate)), task.classes)
        gates[task.targets] = gate
        return {"classes.gates": gates, USED: torch.maximum(had[USED], gate)}

    def _layout(self, classes: int, features: int) -> Layout:
        width = self.config.width
        gates = {"classes.gates": floats(classes, width), USED: floats(width)}
        return super()._layout(classes, features) | gates

    def _scores(self, features: Tensor) -> Tensor:
        """Every class's row sees the units that its task needs."""
        rows = self.tensors[growing.HEAD] * self.tensors["classes.gates"]
        return linear(growing.hidden(self.tensors, features), rows, self.tensors[growing.HEAD_BIAS])


def scale_gradient(tensor: Tensor, factor: Tensor) -> Tensor:
    """The same values; the gradient is multiplied by `factor`."""
    fixed = tensor.detach()
    return fixed + factor * (tensor - fixed)


class Method(Adapter):
    """The method, as it is registered."""

    kind = HAT
