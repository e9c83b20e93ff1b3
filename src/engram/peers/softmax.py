"""What the classifiers with a growing softmax share: one network, one loop, and the places where they differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from torch import Tensor
from torch.nn.functional import cross_entropy

from engram.paper.engine import Loss, Penalty, Schedule, Trainer, in_parts
from engram.paper.learner import Task, require_numbers
from engram.paper.tensors import Layout, TensorLearner
from engram.peers import growing


@dataclass(frozen=True)
class SoftmaxConfig:
    """Settings of the network and of its training."""

    width: int = 1024
    dropout: float = 0.5
    batch_size: int = 256
    base_epochs: int = 30
    base_rate: float = 1e-3
    base_decay: float = 0.3
    base_decay_every: int = 10
    increment_epochs: int = 20
    increment_rate: float = 1e-4

    def __post_init__(self) -> None:
        require_numbers(self, positive=("width", "batch_size", "base_decay_every"), fractions=("dropout",))


class SoftmaxLearner(TensorLearner):
    """Train the network on a task. A method overrides what it trains on, towards what, and what it holds still."""

    config_type = SoftmaxConfig
    config: SoftmaxConfig

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        network = self._network(task)
        parameters = self._parameters(network)
        features, targets = self._training_data(task)
        trainer = Trainer(
            parameters,
            self.config.batch_size,
            self.task_generator(self.device),
            penalty=self._penalty(parameters) if task.known else None,
            progress=task.progress,
        )
        loss = self._loss(network, task)
        trainer.run("increment" if task.known else "base", loss, features, targets, self._schedule(task), False)
        network = {name: tensor.detach() for name, tensor in network.items()}
        return network | self._keep(task, network)

    def _layout(self, classes: int, features: int) -> Layout:
        return growing.kept(classes, features, self.config.width)

    def _network(self, task: Task) -> dict[str, Tensor]:
        """The network to train: a copy of the one there is, with rows for the new classes."""
        generator = self.task_generator("cpu")
        before = self.tensors if task.known else growing.create(task.features, self.config.width, generator)
        return growing.grow(before, task.classes, generator)

    def _schedule(self, task: Task) -> Schedule:
        config = self.config
        if task.known:
            return Schedule(config.increment_epochs, config.increment_rate)
        return Schedule(config.base_epochs, config.base_rate, config.base_decay, config.base_decay_every)

    def _scores(self, features: Tensor) -> Tensor:
        return growing.logits(self.tensors, features)

    # --- where methods differ; `self.tensors` is the table of the last task, the old network among it --------------

    def _parameters(self, network: growing.Network) -> dict[str, Tensor]:
        """What is trained: everything."""
        return growing.parameters(network)

    def _training_data(self, task: Task) -> tuple[Tensor, Tensor]:
        """What a task is trained on: its own data."""
        return task.features, task.targets

    def _loss(self, network: growing.Network, task: Task) -> Loss:
        """What is minimised: the cross-entropy over all classes known."""
        dropout, answer = self.config.dropout, partial(growing.logits, network)

        def loss(x: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
            kept = growing.draw_kept(network, len(x), dropout)  # of the whole batch, also where processes share it
            return cross_entropy(in_parts(answer, x, kept), y)

        return loss

    def _penalty(self, parameters: Mapping[str, Tensor]) -> Penalty | None:
        """What an increment holds still: nothing."""
        return None

    def _keep(self, task: Task, network: growing.Network) -> dict[str, Tensor]:
        """What is kept beside the network, or instead of a part of it: nothing."""
        return {}
