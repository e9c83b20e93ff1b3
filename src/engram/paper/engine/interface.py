"""What every engine shares: the order in which samples are gone through, and what a step is given."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import torch
from torch import Tensor

from engram.learners.base import Progress
from engram.paper.autoencoder import Autoencoder
from engram.paper.consolidation import Rule
from engram.paper.device import threads_for
from engram.paper.losses import draw_pairs

# What a loss is given of every sample: features, or several tensors of as many rows, as the network it uses wants them.
Samples = Tensor | tuple[Tensor, ...]
# (samples, labels, pairs) of one mini-batch -> its loss; pairs is None unless the loop was told to draw them.
Loss = Callable[[Any, Tensor, Tensor | None], Tensor]
# (positions of a mini-batch, its pairs, the number of the step from 0) -> the loss before the step that is taken.
Step = Callable[[Tensor, Tensor | None, int], Tensor]
Optimizer = Literal["amsgrad", "sgd"]


@dataclass(frozen=True)
class Schedule:
    """How long, how fast and by which steps: the rate is multiplied by `decay` every `decay_every` epochs."""

    epochs: int
    rate: float
    decay: float = 1.0
    decay_every: int = 25
    optimizer: Optimizer = "amsgrad"  # "sgd" is plain: no momentum

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        return self.rate * self.decay ** (epoch // self.decay_every)


@dataclass(frozen=True)
class Penalty:
    """L_reg: the importance Ω and anchor θ̃ of every trained parameter, by name, and λ_reg."""

    importance: Mapping[str, Tensor]
    anchor: Mapping[str, Tensor]
    strength: float


@dataclass
class TrainingLoop(ABC):
    """Trains named parameters on one task's data; an engine says how a step is taken.

    `trace` holds one tensor for every parameter whose importance `rule` measures, and runs on from one call of `run`
    to the next; optimiser moments belong to a run and start at zero. `pure` says that losses draw no random numbers,
    so that they may be compiled. Nothing outlives a run but what it was given.
    """

    parameters: Mapping[str, Tensor]
    batch_size: int
    generator: torch.Generator
    rule: Rule | None = None
    penalty: Penalty | None = None
    trace: Mapping[str, Tensor] = field(default_factory=dict)
    progress: Callable[[Progress], None] | None = None
    pure: bool = False

    @abstractmethod
    def _start(self, loss: Loss, samples: Samples, labels: Tensor, schedule: Schedule) -> Step:
        """Begin a run, with all moments zero."""

    def run(self, phase: str, loss: Loss, samples: Samples, labels: Tensor, schedule: Schedule, pairs: bool) -> None:
        """Train for `schedule`, reshuffling every epoch; `pairs` draws as many random pairs as a batch has samples."""
        n, device, number = len(labels), labels.device, 0
        with threads_for(sum(theta.numel() for theta in self.parameters.values()), device):
            step = self._start(loss, samples, labels, schedule)
            for epoch in range(schedule.epochs):
                batches = torch.randperm(n, generator=self.generator, device=device).split(self.batch_size)
                drawn = self._draw_pairs(n) if pairs else [None] * len(batches)
                total = torch.zeros((), device=device)
                for batch, batch_pairs in zip(batches, drawn, strict=True):
                    total.add_(step(batch, batch_pairs, number), alpha=len(batch))
                    number += 1
                if self.progress is not None:
                    self.progress(Progress(phase, epoch + 1, schedule.epochs, float(total) / n))

    def _steps(self, labels: Tensor) -> int:
        """Mini-batches of an epoch."""
        return math.ceil(len(labels) / self.batch_size)

    def _draw_pairs(self, n: int) -> list[Tensor | None]:
        """The pairs of every batch of an epoch; a batch of one sample has none."""
        full, rest = divmod(n, self.batch_size)
        drawn: list[Tensor | None] = []
        for size, batches in ((self.batch_size, full), (rest, 1)):
            if size > 1 and batches:
                drawn += draw_pairs(size, size * batches, self.generator).split(size)
            elif size == 1:
                drawn += [None] * batches
        return drawn


def select(samples: Samples, batch: Tensor | slice) -> Samples:
    """The samples at some positions."""
    return samples[batch] if isinstance(samples, Tensor) else tuple(column[batch] for column in samples)


class Network(Protocol):
    """An autoencoder as a loss sees it."""

    def encode(self, x: Any) -> Tensor:
        """h(x)."""

    def error(self, codes: Tensor, x: Any) -> Tensor:
        """Eq. 2, averaged over a batch."""


class Engine(NamedTuple):
    """How the paper's network is trained: who takes the steps, and how network and samples look to a loss.

    `view` takes a network, features, and whether the decoder stands still.
    """

    trainer: type[TrainingLoop]
    view: Callable[[Autoencoder, Tensor, bool], tuple[Network, Samples]]
