"""What is measured: Kemker's Ψ, the confusions, and the bytes a method keeps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.bench.learners import answers_with, sample_growth
from engram.bench.protocol import Samples, TaskResult
from engram.learners.base import Label, Learner, has_row_per_class


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
    return Psi(
        base=fmean(r.alpha_base for r in later) / alpha_ideal,
        new=fmean(r.alpha_new for r in later),
        all=fmean(r.alpha_all for r in later) / alpha_ideal,
    )


def confusion(found: NDArray[Any], test: Samples, classes: Sequence[Label]) -> dict[str, Any]:
    """Rows are the truth, columns the answers, both in the order of learning."""
    position = {label: i for i, label in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    for truth, answer in zip(test.y.tolist(), found.tolist(), strict=True):
        counts[position[truth], position[answer]] += 1
    return {"labels": list(classes), "counts": counts.tolist()}


def memory_at(learner: Learner, classes: Sequence[int]) -> dict[str, dict[str, int]]:
    """Bytes beside the network that answers, from the real arrays, for numbers of classes.

    The paper counts the vectors kept of classes and samples. Between two increments the consolidation state, what the
    network needs for learning alone, and the numbers that say which vector is whose are kept as well; while the next
    one is learned, some methods need the network as it was, too. What has a row per class grows with the classes,
    samples as the method says, all else is fixed.
    """
    arrays = learner.state().arrays
    answering = {name for name in arrays if answers_with(learner, name)}
    floating = {name for name, array in arrays.items() if array.dtype.kind == "f"}
    held = {name for name in arrays if name.startswith(("classes.", "samples."))}

    def at(n: int, names: Iterable[str]) -> int:
        growth = {name: n / len(learner.labels) for name in names if has_row_per_class(name)}
        growth |= {name: sample_growth(learner, n) for name in names if name.startswith("samples.")}
        return sum(round(arrays[name].nbytes * growth.get(name, 1)) for name in names)

    kept = arrays.keys() - answering
    copy = answering if learner.about.copies_network else set()
    return {
        "as_the_paper_counts": {str(n): at(n, held & floating) for n in classes},
        "kept_between_increments": {str(n): at(n, kept) for n in classes},
        "all_the_next_increment_needs": {str(n): at(n, kept) + at(n, copy) for n in classes},
    }
