"""One mini-batch on several processes, as `torchrun` starts them: each evaluates the network on a part of its rows.

Every process then has what the network made of the whole batch, and the one loss that one process would have: Eq. 3
compares any two samples of a batch, so that the losses of its parts do not add up to its own. After a step all have
the same parameters. torch's DistributedDataParallel averages losses of parts, and gradients only where they are added
up in `.grad`; the engines take them from `torch.autograd.grad`, to trace |∂L/∂θ| of the whole batch (Eq. 11).

Every process has all samples, the same seeds, and calls the same things in the same order. Losses that know nothing of
all this are right, too: all processes do the same work then, and the average of equal gradients is that gradient.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

from engram.paper.engine.interface import Network, Samples, select


def processes() -> int:
    """How many there are; one, unless `torch.distributed` was initialised."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def in_parts(function: Callable[..., Tensor], *columns: Samples) -> Tensor:
    """`function` of columns of a batch, which gives a row for each of theirs; every process computes some of the rows.

    Of a batch with fewer rows than there are processes, some compute none.
    """
    if processes() == 1:
        return function(*columns)
    first = columns[0] if isinstance(columns[0], Tensor) else columns[0][0]
    n, number, among = len(first), dist.get_rank(), processes()
    rows = slice(n * number // among, n * (number + 1) // among)
    part = function(*(select(column, rows) for column in columns))
    return cast(Tensor, _Together.apply(part, rows, n))  # type: ignore[no-untyped-call]


class _Together(torch.autograd.Function):
    """The rows of all processes. Each uses all of them, so the gradient of a row is what all of them have for it."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, rows: slice, n: int) -> Tensor:
        ctx.rows = rows
        whole = part.new_zeros(n, *part.shape[1:])
        whole[rows] = part
        dist.all_reduce(whole)
        return whole

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        total = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total[ctx.rows], None, None


def average(gradients: Sequence[Tensor]) -> Sequence[Tensor]:
    """The gradients of the loss: all processes have it, so what they found is as many times too much together."""
    if processes() == 1:
        return gradients
    row = torch.cat([gradient.flatten() for gradient in gradients])  # one message instead of many
    dist.all_reduce(row)
    parts = row.div_(processes()).split([gradient.numel() for gradient in gradients])
    return [part.view_as(gradient) for part, gradient in zip(parts, gradients, strict=True)]


def split_rows(network: Network) -> Network:
    """The network as it is, or, where there are several processes, with the rows of a batch split among them."""
    return network if processes() == 1 else _SplitRows(network)


class _SplitRows:
    def __init__(self, network: Network) -> None:
        self.network = network

    def encode(self, x: Any) -> Tensor:
        """h(x)."""
        return in_parts(self.network.encode, x)

    def error(self, codes: Tensor, x: Any) -> Tensor:
        """Eq. 2, averaged over a batch: the mean of each part counts for each of its rows."""
        return in_parts(self._error_of_part, codes, x).mean()

    def _error_of_part(self, codes: Tensor, x: Any) -> Tensor:
        return self.network.error(codes, x).expand(len(codes))
