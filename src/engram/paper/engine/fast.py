"""The fast engine: the numbers of `engram.paper.engine.plain`, sooner.

On a CPU the update of a parameter tensor is done in blocks that fit into the processor's cache, or compiled where the
run is long enough to pay for it. On a GPU it is always compiled, and the whole step is replayed as a CUDA graph. In
both cases the network is evaluated as `engram.paper.engine.layers` has it.
"""

import functools
from typing import NamedTuple

import torch
from torch import Tensor

from engram.paper.engine.interface import Engine, Loss, Samples, Schedule, Step, TrainingLoop, select
from engram.paper.engine.layers import view
from engram.paper.engine.parallel import average, processes
from engram.paper.engine.update import Compiled, Slot, Update, compiled_update, correct_rates, descend, update_in_blocks

# Compiling for a CPU takes half a minute; below this many parameter updates in a run that does not pay.
WORTH_COMPILING = 5_000_000_000


class Trainer(TrainingLoop):
    """Trains named parameters; how depends on the device and on how many updates there are to do."""

    def _start(self, loss: Loss, samples: Samples, labels: Tensor, schedule: Schedule) -> Step:
        rates = correct_rates(schedule, self._steps(labels), next(iter(self.parameters.values())))
        updates = sum(theta.numel() for theta in self.parameters.values()) * len(rates)
        captures = labels.is_cuda and processes() == 1  # several have to wait for each other
        chosen = compiled_update if captures or updates >= WORTH_COMPILING else update_in_blocks
        if schedule.optimizer == "sgd":
            chosen = descend
        if captures:
            return CapturedStep(self, loss, samples, labels, rates, chosen, self.pure and updates >= WORTH_COMPILING)
        return FastStep(self, loss, samples, labels, rates, chosen)


FAST = Engine(Trainer, view)


class FastStep:
    """One mini-batch: forward, backward, update."""

    def __init__(
        self, trainer: TrainingLoop, loss: Loss, samples: Samples, labels: Tensor, rates: Tensor, update: Update
    ) -> None:
        self.loss, self.samples, self.labels, self.rates, self.update = loss, samples, labels, rates, update
        self.rule, penalty = trainer.rule, trainer.penalty
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

    def __call__(self, batch: Tensor, pairs: Tensor | None, number: int) -> Tensor:
        """Take the step on the samples at the positions `batch`."""
        return self.train(select(self.samples, batch), self.labels[batch], pairs, self.rates[number])

    def train(self, x: Samples, labels: Tensor, pairs: Tensor | None, rates: Tensor) -> Tensor:
        """The loss of a batch before the step that is taken on it."""
        loss = self.evaluate(x, labels, pairs)
        gradients = average(torch.autograd.grad(loss, self.thetas))
        with torch.no_grad():
            rate, root_correction = _scalar(rates, 0), _scalar(rates, 1)
            for slot, gradient in zip(self.slots, gradients, strict=True):
                rule = self.rule if slot.trace is not None else None
                self.update(slot, _flat(gradient.contiguous()), rate, root_correction, rule, self.strength)
        return loss.detach()

    def evaluate(self, x: Samples, labels: Tensor, pairs: Tensor | None) -> Tensor:
        """The loss of a batch."""
        return self.loss(x, labels, pairs)


def _flat(tensor: Tensor) -> Tensor:
    """The same memory as one row. Not a view in autograd's books, so the compiler sees one kind of tensor only."""
    row = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return row.set_(tensor.untyped_storage(), tensor.storage_offset(), (tensor.numel(),), (1,))


def _scalar(row: Tensor, position: int) -> Tensor:
    """One number of a row, likewise: neither a view nor a copy, which on a GPU would be one more thing to launch."""
    number = torch.empty(0, dtype=row.dtype, device=row.device)
    return number.set_(row.untyped_storage(), row.storage_offset() + position, (), ())


def evaluate(loss: Loss, x: Samples, labels: Tensor, pairs: Tensor | None) -> Tensor:
    """The loss of a batch, as one function to compile for all losses."""
    return loss(x, labels, pairs)


compiled_loss = Compiled(evaluate, evaluate, dynamic=False)


class _Graph(NamedTuple):
    """A captured step of one batch size and the memory it reads and writes."""

    graph: torch.cuda.CUDAGraph
    x: Samples
    labels: Tensor
    pairs: Tensor | None
    rates: Tensor
    loss: Tensor


@functools.cache
def _side_stream() -> torch.cuda.Stream:
    """One for all, because cuBLAS keeps working memory for every stream that was ever used."""
    return torch.cuda.Stream()


class CapturedStep(FastStep):
    """The same step on a GPU: the update compiled into one kernel, the whole step replayed as a CUDA graph.

    Launching a hundred small kernels costs more than the arithmetic of 64 samples; a graph launches once, and compiled
    losses have few. Compiling a loss takes seconds for every size, so only whole batches are worth it. The first steps
    of each batch size run plainly (they train as any other, and warm up what may not happen under capture).
    """

    warm_up = 2

    def __init__(
        self,
        trainer: TrainingLoop,
        loss: Loss,
        samples: Samples,
        labels: Tensor,
        rates: Tensor,
        update: Update,
        compiles_loss: bool,
    ) -> None:
        super().__init__(trainer, loss, samples, labels, rates, update)
        self.compiled_size = trainer.batch_size if compiles_loss else None
        self.side = _side_stream()
        self.pool = torch.cuda.graph_pool_handle()  # one for all batch sizes: only one graph runs at a time
        self.calls: dict[int, int] = {}
        self.graphs: dict[int, _Graph] = {}

    def evaluate(self, x: Samples, labels: Tensor, pairs: Tensor | None) -> Tensor:
        """The loss of a batch, compiled if batches of its size are."""
        if len(labels) == self.compiled_size:
            return compiled_loss(self.loss, x, labels, pairs)
        return self.loss(x, labels, pairs)

    def __call__(self, batch: Tensor, pairs: Tensor | None, number: int) -> Tensor:
        """Take the step: plainly at first, then as a graph."""
        size = len(batch)
        if size not in self.graphs:
            self.calls[size] = self.calls.get(size, 0) + 1
            if self.calls[size] <= self.warm_up:
                self.side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(self.side):
                    loss = super().__call__(batch, pairs, number)
                torch.cuda.current_stream().wait_stream(self.side)
                return loss
            self.graphs[size] = self._capture(batch, pairs, number)
        held = self.graphs[size]
        for place, column in zip(_columns(held.x), _columns(self.samples), strict=True):
            torch.index_select(column, 0, batch, out=place)
        torch.index_select(self.labels, 0, batch, out=held.labels)
        held.rates.copy_(self.rates[number])
        if held.pairs is not None and pairs is not None:
            held.pairs.copy_(pairs)
        held.graph.replay()
        return held.loss

    def _capture(self, batch: Tensor, pairs: Tensor | None, number: int) -> _Graph:
        graph, x, labels = torch.cuda.CUDAGraph(), select(self.samples, batch), self.labels[batch]
        pairs, rates = None if pairs is None else pairs.clone(), self.rates[number].clone()
        with torch.cuda.graph(graph, pool=self.pool):
            loss = self.train(x, labels, pairs, rates)
        return _Graph(graph, x, labels, pairs, rates, loss)


def _columns(samples: Samples) -> tuple[Tensor, ...]:
    return samples if isinstance(samples, tuple) else (samples,)
