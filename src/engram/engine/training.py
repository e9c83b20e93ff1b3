"""The one training loop: index batches, AMSGrad, the consolidation penalty and the importance trace."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor

from engram.device import threads_for
from engram.engine.large import LargeLayers, is_large
from engram.learner import Progress
from engram.nn.consolidation import Rule
from engram.nn.losses import draw_pairs

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8

BLOCK = 2**16  # numbers of each tensor that fit into a processor's cache together
# Compiling for a CPU takes half a minute; below this many parameter updates in a run that does not pay.
WORTH_COMPILING = 5_000_000_000

# (features, labels, pairs) of one mini-batch -> its loss; pairs is None unless the loop was told to draw them.
Loss = Callable[[Tensor, Tensor, Tensor | None], Tensor]


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


# How a step is taken: `update`, or something faster that does the same.
Update = Callable[[Slot, Tensor, Tensor, Tensor, Rule | None, float], None]


def _rates(schedule: Schedule, steps: int, device: torch.device) -> Tensor:
    """AMSGrad's bias-corrected rate and root of the second correction for every step, (epochs, steps, 2)."""
    t = torch.arange(1, schedule.epochs * steps + 1, dtype=torch.float64).view(schedule.epochs, steps)
    rate = torch.tensor([[schedule.rate_at(epoch)] for epoch in range(schedule.epochs)], dtype=torch.float64)
    table = torch.stack([rate.view(-1, 1) / (1 - BETA1**t), (1 - BETA2**t).sqrt()], dim=2)
    return table.to(device=device, dtype=torch.float32)


def _update_in_blocks(
    slot: Slot, gradient: Tensor, rate: Tensor, root_correction: Tensor, rule: Rule | None, strength: float
) -> None:
    """`update`, on a CPU so many numbers at a time that they stay in its cache from one operation to the next."""
    size = BLOCK if gradient.device.type == "cpu" else len(gradient)
    for start in range(0, len(gradient), size):
        part = slice(start, start + size)
        block = Slot._make(tensor if tensor is None else tensor[part] for tensor in slot)
        update(block, gradient[part], rate, root_correction, rule, strength)


P = ParamSpec("P")
R = TypeVar("R")


class _Compiled(Generic[P, R]):
    """A function compiled when it is first called; `instead` is for where nothing can compile it."""

    def __init__(self, plain: Callable[P, R], instead: Callable[P, R], *, dynamic: bool) -> None:
        self.plain, self.instead, self.dynamic = plain, instead, dynamic
        self.function: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        self.function = self.function or torch.compile(self.plain, dynamic=self.dynamic)
        try:
            return self.function(*args, **kwargs)
        except Exception as error:  # compiling comes before computing: nothing has been changed yet
            if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
                raise
            self.function = self.instead
            return self.function(*args, **kwargs)


def _evaluate(loss: Loss, features: Tensor, labels: Tensor, pairs: Tensor | None) -> Tensor:
    return loss(features, labels, pairs)


_compiled_update = _Compiled(update, _update_in_blocks, dynamic=True)
_compiled_loss = _Compiled(_evaluate, _evaluate, dynamic=False)


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
    to the next; optimiser moments belong to a run and start at zero.

    On a GPU, a trainer that runs the same loss again replays the step it has captured: refill the tensors it was
    given, in place, to train something else. `pure` says that losses draw no random numbers; there they are compiled.
    """

    parameters: Mapping[str, Tensor]
    batch_size: int
    generator: torch.Generator
    rule: Rule | None = None
    penalty: Penalty | None = None
    trace: Mapping[str, Tensor] = field(default_factory=dict)
    progress: Callable[[Progress], None] | None = None
    pure: bool = False
    _captured: dict[Loss, "_CapturedStep"] = field(default_factory=dict, init=False, repr=False)

    def run(self, phase: str, loss: Loss, features: Tensor, labels: Tensor, schedule: Schedule, pairs: bool) -> None:
        """Train for `schedule`, reshuffling every epoch; `pairs` draws as many random pairs as a batch has samples."""
        n, device = len(features), features.device
        steps = math.ceil(n / self.batch_size)
        size = sum(theta.numel() for theta in self.parameters.values())
        rates = _rates(schedule, steps, device)
        with threads_for(size, device), self._step(loss, device, size * steps * schedule.epochs) as step:
            for epoch in range(schedule.epochs):
                batches = torch.randperm(n, generator=self.generator, device=device).split(self.batch_size)
                drawn = self._draw_pairs(n) if pairs else [None] * steps
                total = torch.zeros((), device=device)
                for batch, batch_pairs, batch_rates in zip(batches, drawn, rates[epoch], strict=True):
                    total.add_(step(features, labels, batch, batch_pairs, batch_rates), alpha=len(batch))
                if self.progress is not None:
                    self.progress(Progress(phase, epoch + 1, schedule.epochs, float(total) / n))

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

    @contextlib.contextmanager
    def _step(self, loss: Loss, device: torch.device, updates: int) -> Iterator["_Step"]:
        """The step of a run. One captured before is taken up again, unless a run with it was broken off."""
        if device.type != "cuda":
            yield _Step(self, loss, _compiled_update if updates >= WORTH_COMPILING else _update_in_blocks)
            return
        compiled_size = self.batch_size if self.pure and updates >= WORTH_COMPILING else None
        step = self._captured.pop(loss, None) or _CapturedStep(self, loss, _compiled_update, compiled_size)
        step.start()
        yield step
        step.forget_samples()
        self._captured[loss] = step


class _Step:
    """One mini-batch: forward, backward, update."""

    def __init__(self, trainer: Trainer, loss: Loss, update: Update) -> None:
        self.loss, self.update, self.rule, penalty = loss, update, trainer.rule, trainer.penalty
        self.strength = penalty.strength if penalty else 0.0
        self.thetas = [theta.requires_grad_(True) for theta in trainer.parameters.values()]
        self.layers = LargeLayers() if any(map(is_large, self.thetas)) else contextlib.nullcontext()
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

    def __call__(self, features: Tensor, labels: Tensor, batch: Tensor, pairs: Tensor | None, rates: Tensor) -> Tensor:
        return self.train(features[batch], labels[batch], pairs, rates)

    def train(self, features: Tensor, labels: Tensor, pairs: Tensor | None, rates: Tensor) -> Tensor:
        """The loss of a batch before the step that is taken on it."""
        loss = self.evaluate(features, labels, pairs)
        gradients = torch.autograd.grad(loss, self.thetas)
        with torch.no_grad():
            rate, root_correction = _scalar(rates, 0), _scalar(rates, 1)
            for slot, gradient in zip(self.slots, gradients, strict=True):
                rule = self.rule if slot.trace is not None else None
                self.update(slot, _flat(gradient.contiguous()), rate, root_correction, rule, self.strength)
        return loss.detach()

    def evaluate(self, features: Tensor, labels: Tensor, pairs: Tensor | None) -> Tensor:
        """The loss of a batch."""
        with self.layers:
            return self.loss(features, labels, pairs)


def _flat(tensor: Tensor) -> Tensor:
    """The same memory as one row. Not a view in autograd's books, so the compiler sees one kind of tensor only."""
    row = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return row.set_(tensor.untyped_storage(), tensor.storage_offset(), (tensor.numel(),), (1,))


def _scalar(row: Tensor, position: int) -> Tensor:
    """One number of a row, likewise: neither a view nor a copy, which on a GPU would be one more thing to launch."""
    number = torch.empty(0, dtype=row.dtype, device=row.device)
    return number.set_(row.untyped_storage(), row.storage_offset() + position, (), ())


class _Graph(NamedTuple):
    """A captured step of one batch size and the memory it reads and writes."""

    graph: torch.cuda.CUDAGraph
    features: Tensor
    labels: Tensor
    pairs: Tensor | None
    rates: Tensor
    loss: Tensor


class _CapturedStep(_Step):
    """The same step on a GPU: the update compiled into one kernel, the whole step replayed as a CUDA graph.

    Launching a hundred small kernels costs more than the arithmetic of 64 samples; a graph launches once, and compiled
    losses have few. That takes seconds for every size, so only whole batches are worth it. The first steps of each
    batch size run plainly (they train as any other, and warm up what may not happen under capture).
    """

    warm_up = 3

    def __init__(self, trainer: Trainer, loss: Loss, update: Update, compiled_size: int | None) -> None:
        super().__init__(trainer, loss, update)
        self.compiled_size = compiled_size
        self.side = torch.cuda.Stream()
        self.pool = torch.cuda.graph_pool_handle()  # one for all batch sizes: only one graph runs at a time
        self.calls: dict[int, int] = {}
        self.graphs: dict[int, _Graph] = {}

    def start(self) -> None:
        """Moments begin at zero."""
        for slot in self.slots:
            for moment in (slot.first, slot.second, slot.second_max):
                moment.zero_()

    def forget_samples(self) -> None:
        """A graph outlives the task it was captured in; the last batch must not."""
        for graph in self.graphs.values():
            graph.features.zero_()

    def evaluate(self, features: Tensor, labels: Tensor, pairs: Tensor | None) -> Tensor:
        """The loss of a batch, compiled if batches of its size are."""
        if len(features) == self.compiled_size:
            return _compiled_loss(self.loss, features, labels, pairs)
        return self.loss(features, labels, pairs)

    def __call__(self, features: Tensor, labels: Tensor, batch: Tensor, pairs: Tensor | None, rates: Tensor) -> Tensor:
        size = len(batch)
        if size not in self.graphs:
            self.calls[size] = self.calls.get(size, 0) + 1
            if self.calls[size] <= self.warm_up:
                self.side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(self.side):
                    loss = super().__call__(features, labels, batch, pairs, rates)
                torch.cuda.current_stream().wait_stream(self.side)
                return loss
            self.graphs[size] = self._capture(features[batch], labels[batch], pairs, rates)
        held = self.graphs[size]
        torch.index_select(features, 0, batch, out=held.features)
        torch.index_select(labels, 0, batch, out=held.labels)
        held.rates.copy_(rates)
        if held.pairs is not None and pairs is not None:
            held.pairs.copy_(pairs)
        held.graph.replay()
        return held.loss

    def _capture(self, features: Tensor, labels: Tensor, pairs: Tensor | None, rates: Tensor) -> _Graph:
        graph, pairs, rates = torch.cuda.CUDAGraph(), None if pairs is None else pairs.clone(), rates.clone()
        with torch.cuda.graph(graph, pool=self.pool):
            loss = self.train(features, labels, pairs, rates)
        return _Graph(graph, features, labels, pairs, rates, loss)
