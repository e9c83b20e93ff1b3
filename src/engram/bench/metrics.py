"""Kemker's Ψ: how much of what an offline model reaches survives learning one class after another."""

from collections.abc import Sequence
from dataclasses import dataclass

from engram.bench.protocol import TaskResult


@dataclass(frozen=True)
class Psi:
    """Means over the tasks after the base task; base and all are relative to the offline accuracy."""

    base: float
    new: float
    all: float


def psi(results: Sequence[TaskResult], alpha_ideal: float) -> Psi:
    """Ψ_base = mean α_base,i / α_ideal, Ψ_new = mean α_new,i, Ψ_all = mean α_all,i / α_ideal, over tasks 2..T."""
    later = [r for r in results if r.task > 0]
    if not later:
        raise ValueError("Ψ needs at least one task after the base task")
    n = len(later)
    return Psi(
        base=sum(r.alpha_base for r in later) / n / alpha_ideal,
        new=sum(r.alpha_new for r in later) / n,
        all=sum(r.alpha_all for r in later) / n / alpha_ideal,
    )
