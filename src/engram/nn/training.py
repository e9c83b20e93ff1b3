"""The one training loop: index batches, AMSGrad, the consolidation penalty and the importance trace."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import NamedTuple

import torch
from torch import Tensor

from engram.device import threads_for
from engram.nn.consolidation import Rule
from engram.nn.losses import draw_pairs

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8

# (features, labels, pairs) of one mini-batch -> its loss; pairs is None unless the loop was told to draw them.
Loss = Callable[[Tensor, Tensor, Tensor | None], Tensor]


@dataclass(frozen=True)
class Progress:
    """What a progress callback is told at the end of every epoch."""

    phase: str
    epoch: int
    epochs: int
    loss: float


@dataclass(frozen=True)
class Schedule:
    """How long and how fast: the rate is multiplied by `decay` every `decay_every` epochs."""

    epochs: int
    rate: float
    decay: float = 1.0
    decay_every: int = 25

    def rate_at(self, epoch: int) -> float:
        """The learning rate of an epoch, counted from 0."""
        return self.rate * self.decay ** (epoch // self.decay_every)


class Slot(NamedTuple):
    """One parameter tensor and all that its update reads and writes, as flat tensors of one length."""

    theta: Tensor
    first: Tensor  # AMSGrad's moments
    second: Tensor
    second_max: Tensor
    trace: Tensor | None  # None: its importance is not measured
    importance: Tensor | None  # Ω and θ̃; None: it is free to move
    anchor: Tensor | None


def update(
    slot: Slot, gradient: Tensor, rate: Tensor, root_correction: Tensor, rule: Rule | None, strength: float
) -> None:
    """One step of one parameter tensor: penalty, AMSGrad and trace in a single pass over memory.

    `gradient` is the task loss's. The penalty's gradient, 2·λ_reg·Ω·(θ - θ̃), is analytic. `rate` and
    `root_correction` are AMSGrad's, already corrected for the bias of step t (see `_rates`).
    """
    total = gradient
    if slot.importance is not None and slot.anchor is not None:
        total = gradient + 2 * strength * slot.importance * (slot.theta - slot.anchor)
    slot.first.mul_(BETA1).add_(total, alpha=1 - BETA1)
    slot.second.mul_(BETA2).addcmul_(total, total, value=1 - BETA2)
    torch.maximum(slot.second_max, slot.second, out=slot.second_max)
    change = -rate * slot.first / (slot.second_max.sqrt() / root_correction + EPSILON)
    slot.theta.add_(change)
    if rule is not None and slot.trace is not None:
        slot.trace.add_(rule.contribution(gradient, total, change))


def _rates(rate: float, start: int, steps: int, device: torch.device) -> Tensor:
    """AMSGrad's bias-corrected rate and root of the second correction for the next `steps` steps, (steps, 2)."""
    t = torch.arange(start + 1, start + steps + 1, dtype=torch.float64)
    table = torch.stack([rate / (1 - BETA1**t), (1 - BETA2**t).sqrt()], dim=1)
    return table.to(device=device, dtype=torch.float32)


@dataclass
class Penalty:
    """L_reg: the importance Ω and anchor θ̃ of every trained parameter, by name, and λ_reg."""

    importance: Mapping[str, Tensor]
    anchor: Mapping[str, Tensor]
    strength: float


@dataclass
class Trainer:
    """Trains named parameters on one task's data.

    `trace` holds one tensor for every parameter whose importance `rule` measures, and runs on from one call of `run`
    to the next; optimiser moments belong to a run and are gone with it.
    """

    parameters: Mapping[str, Tensor]
    batch_size: int
    generator: torch.Generator
    rule: Rule | None = None
    penalty: Penalty | None = None
    trace: Mapping[str, Tensor] = field(default_factory=dict)
    progress: Callable[[Progress], None] | None = None

    def run(self, phase: str, loss: Loss, features: Tensor, labels: Tensor, schedule: Schedule, pairs: bool) -> None:
        """Train for `schedule`, reshuffling every epoch; `pairs` draws as many random pairs as a batch has samples."""
        n, device = len(features), features.device
        steps = math.ceil(n / self.batch_size)
        step = _CapturedStep(self, loss) if device.type == "cuda" else _Step(self, loss)
        with threads_for(sum(theta.numel() for theta in self.parameters.values())):
            for epoch in range(schedule.epochs):
                order = torch.randperm(n, generator=self.generator, device=device).split(self.batch_size)
                rates = _rates(schedule.rate_at(epoch), epoch * steps, steps, device)
                total = torch.zeros((), device=device)
                for batch, batch_rates in zip(order, rates, strict=True):
                    size = len(batch)
                    drawn = draw_pairs(size, size, self.generator) if pairs and size > 1 else None
                    total += step(features[batch], labels[batch], drawn, batch_rates) * size
                if self.progress is not None:
                    self.progress(Progress(phase, epoch + 1, schedule.epochs, float(total) / n))


class _Step:
    """One mini-batch: forward, backward, update."""

    update = staticmethod(update)

    def __init__(self, trainer: Trainer, loss: Loss) -> None:
        self.loss, self.rule, penalty = loss, trainer.rule, trainer.penalty
        self.strength = penalty.strength if penalty else 0.0
        self.thetas = [theta.requires_grad_(True) for theta in trainer.parameters.values()]
        self.slots = [
            Slot(
                theta=_flat(theta),
                first=torch.zeros_like(_flat(theta)),
                second=torch.zeros_like(_flat(theta)),
                second_max=torch.zeros_like(_flat(theta)),
                trace=_flat(trainer.trace[name]) if name in trainer.trace else None,
                importance=_flat(penalty.importance[name]) if penalty else None,
                anchor=_flat(penalty.anchor[name]) if penalty else None,
            )
            for name, theta in trainer.parameters.items()
        ]

    def __call__(self, features: Tensor, labels: Tensor, pairs: Tensor | None, rates: Tensor) -> Tensor:
        loss = self.loss(features, labels, pairs)
        gradients = torch.autograd.grad(loss, self.thetas)
        with torch.no_grad():
            rate, root_correction = rates[0].clone(), rates[1].clone()  # no views: see `_flat`
            for slot, gradient in zip(self.slots, gradients, strict=True):
                rule = self.rule if slot.trace is not None else None
                self.update(slot, _flat(gradient.contiguous()), rate, root_correction, rule, self.strength)
        return loss.detach()


def _flat(tensor: Tensor) -> Tensor:
    """The same memory as one row. Not a view in autograd's books, so the compiler sees one kind of tensor only."""
    row = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return row.set_(tensor.untyped_storage(), tensor.storage_offset(), (tensor.numel(),), (1,))


class _CapturedStep(_Step):
    """The same step on a GPU: the update compiled into one kernel, the whole step replayed as a CUDA graph.

    Launching a hundred small kernels costs more than the arithmetic of 64 samples; a graph launches once. The first
    steps of each batch size run plainly (they train as any other, and warm up what may not happen under capture).
    """

    update = staticmethod(torch.compile(update, dynamic=True) if find_spec("triton") else update)
    warm_up = 3

    def __init__(self, trainer: Trainer, loss: Loss) -> None:
        super().__init__(trainer, loss)
        self.side = torch.cuda.Stream()
        self.calls: dict[int, int] = {}
        self.graphs: dict[int, tuple[torch.cuda.CUDAGraph, list[Tensor | None], Tensor]] = {}

    def __call__(self, features: Tensor, labels: Tensor, pairs: Tensor | None, rates: Tensor) -> Tensor:
        size = len(features)
        inputs = [features, labels, pairs, rates]
        if size not in self.graphs:
            self.calls[size] = self.calls.get(size, 0) + 1
            if self.calls[size] <= self.warm_up:
                self.side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(self.side):
                    loss = super().__call__(features, labels, pairs, rates)
                torch.cuda.current_stream().wait_stream(self.side)
                return loss
            graph, static = torch.cuda.CUDAGraph(), [None if x is None else x.clone() for x in inputs]
            with torch.cuda.graph(graph):
                output = super().__call__(*static)  # type: ignore[arg-type]
            self.graphs[size] = graph, static, output
        graph, static, output = self.graphs[size]
        for held, given in zip(static, inputs, strict=True):
            if held is not None and given is not None:
                held.copy_(given)
        graph.replay()
        return output
