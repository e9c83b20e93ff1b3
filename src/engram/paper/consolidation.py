"""What to hold still: how important each parameter was to what has been learned.

L_reg = Σ_k Ω_k (θ̃_k - θ_k)², θ̃ the parameters when the previous task ended. A rule says what one training step adds
to a parameter's trace, and how a task's trace becomes importance. Importance is added up over tasks, so Ω carries all
earlier ones; averaging old with new would erase the base within a few dozen tasks.
"""

from collections.abc import Mapping
from typing import Protocol

import torch
from torch import Tensor


class Rule(Protocol):
    """One way to measure importance."""

    def contribution(self, gradient: Tensor, change: Tensor) -> Tensor:
        """What one step adds to the trace, given the task loss's gradient before it and the change it made to θ."""

    def importance(self, trace: Tensor, moved: Tensor, n_samples: int) -> Tensor:
        """The task's share of Ω, given θ's whole change over the task and the number of its samples."""


class MAS:
    """Memory Aware Synapses, Eq. 11-12, with the task's whole loss as the function whose gradient is taken.

    The penalty is no part of it: its gradient, 2 λ_reg Ω (θ - θ̃), would make Ω feed on itself and grow without bound.
    """

    def contribution(self, gradient: Tensor, change: Tensor) -> Tensor:
        """Eq. 11: |∂L/∂θ|."""
        return gradient.abs()

    def importance(self, trace: Tensor, moved: Tensor, n_samples: int) -> Tensor:
        """Eq. 12: over the samples of the data set (not samples x epochs, which would leave nothing)."""
        return trace / n_samples


class SI:
    """Synaptic Intelligence, Eq. 8-10."""

    def __init__(self, damping: float) -> None:
        self.damping = damping

    def contribution(self, gradient: Tensor, change: Tensor) -> Tensor:
        """Eq. 8: the loss decrease this step owes to θ, -grad·Δθ; the penalty is no part of the task's loss."""
        return -gradient * change

    def importance(self, trace: Tensor, moved: Tensor, n_samples: int) -> Tensor:
        """Eq. 9: ω / (Δ² + ξ); a parameter that made things worse is not held."""
        return trace.clamp(min=0) / (moved.square() + self.damping)


def make_rule(name: str | None, damping: float) -> Rule | None:
    """The rule of that name; `damping` is SI's ξ."""
    return {"mas": MAS(), "si": SI(damping), None: None}[name]


@torch.no_grad()
def add_importance(
    rule: Rule,
    trace: Mapping[str, Tensor],
    start: Mapping[str, Tensor],
    end: Mapping[str, Tensor],
    n_samples: int,
    earlier: Mapping[str, Tensor],
) -> dict[str, Tensor]:
    """Ω after a task, by parameter name: the task's share, added to that of all earlier ones."""
    share = {name: rule.importance(traced, end[name] - start[name], n_samples) for name, traced in trace.items()}
    return {name: omega + earlier[name] if name in earlier else omega for name, omega in share.items()}
