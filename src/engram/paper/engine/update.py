"""One step of one parameter tensor: penalty, AMSGrad and trace in a single pass over memory."""

from collections.abc import Callable
from typing import Generic, NamedTuple, ParamSpec, TypeVar

import torch
from torch import Tensor

from engram.paper.consolidation import Rule
from engram.paper.engine.interface import Schedule

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8

BLOCK = 2**16  # numbers of each tensor that fit into a processor's cache together


class Slot(NamedTuple):
    """One parameter tensor and all that its update reads and writes, as flat tensors of one length."""

    theta: Tensor
    first: Tensor  # AMSGrad's moments
    second: Tensor
    second_max: Tensor
    trace: Tensor | None  # None: its importance is not measured
    importance: Tensor | None  # Ω and θ̃; None: it is free to move
    anchor: Tensor | None


# `update`, or something faster that does the same.
Update = Callable[[Slot, Tensor, Tensor, Tensor, Rule | None, float], None]


def update(
    slot: Slot, gradient: Tensor, rate: Tensor, root_correction: Tensor, rule: Rule | None, strength: float
) -> None:
    """Take the step.

    `gradient` is the task loss's. The penalty's gradient, 2·λ_reg·Ω·(θ - θ̃), is analytic. `rate` and
    `root_correction` are AMSGrad's, already corrected for the bias of step t (see `correct_rates`).
    """
    total = _with_penalty(slot, gradient, strength)
    slot.first.mul_(BETA1).add_(total, alpha=1 - BETA1)
    slot.second.mul_(BETA2).addcmul_(total, total, value=1 - BETA2)
    torch.maximum(slot.second_max, slot.second, out=slot.second_max)
    change = -rate * slot.first / (slot.second_max.sqrt() / root_correction + EPSILON)
    slot.theta.add_(change)
    if rule is not None and slot.trace is not None:
        slot.trace.add_(rule.contribution(gradient, change))


def descend(
    slot: Slot, gradient: Tensor, rate: Tensor, root_correction: Tensor, rule: Rule | None, strength: float
) -> None:
    """Plain gradient descent in `update`'s place; moments and `root_correction` are not used."""
    change = -rate * _with_penalty(slot, gradient, strength)
    slot.theta.add_(change)
    if rule is not None and slot.trace is not None:
        slot.trace.add_(rule.contribution(gradient, change))


def _with_penalty(slot: Slot, gradient: Tensor, strength: float) -> Tensor:
    if slot.importance is None or slot.anchor is None:
        return gradient
    return gradient + 2 * strength * slot.importance * (slot.theta - slot.anchor)


def correct_rates(schedule: Schedule, steps: int, like: Tensor) -> Tensor:
    """The rate of every step, and AMSGrad's root of the second correction; (epochs x steps, 2).

    AMSGrad's rate is corrected for the bias of its first moment; gradient descent has none.
    """
    rate = torch.tensor([schedule.rate_at(epoch) for epoch in range(schedule.epochs)], dtype=torch.float64)
    rate = rate.to(like.device).repeat_interleave(steps)
    t = torch.arange(1, len(rate) + 1, dtype=torch.float64, device=like.device)
    first = torch.zeros_like(t) if schedule.optimizer == "sgd" else BETA1**t
    return torch.stack([rate / (1 - first), (1 - BETA2**t).sqrt()], dim=1).to(like.dtype)


def update_in_blocks(
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


class Compiled(Generic[P, R]):
    """A function compiled when it is first called; `instead` is for where nothing can compile it."""

    def __init__(self, plain: Callable[P, R], instead: Callable[P, R], *, dynamic: bool) -> None:
        self.plain, self.instead, self.dynamic = plain, instead, dynamic
        self.function: Callable[P, R] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call it."""
        self.function = self.function or torch.compile(self.plain, dynamic=self.dynamic)
        try:
            return self.function(*args, **kwargs)
        except Exception as error:  # compiling comes before computing: nothing has been changed yet
            if not type(error).__module__.startswith(("torch._dynamo", "torch._inductor")):
                raise
            self.function = self.instead
            return self.function(*args, **kwargs)


compiled_update = Compiled(update, update_in_blocks, dynamic=True)
