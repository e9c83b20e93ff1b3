"""Base classes first, then a few at a time; after every task, how much is known (Kemker et al. 2018)."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.methods.base import Learner
from engram.nn.prototypes import Label
from engram.nn.training import Progress


@dataclass(frozen=True)
class Samples:
    """Feature vectors and their labels. `X` lies where it is used: moved to a GPU once, not for every task."""

    X: Tensor
    y: NDArray[Any]

    def of(self, labels: Sequence[Label]) -> "Samples":
        """The samples of some classes."""
        return self.at(np.flatnonzero(np.isin(self.y, np.asarray(labels))))

    def at(self, rows: NDArray[np.int64]) -> "Samples":
        """The samples at some positions."""
        return Samples(self.X[torch.from_numpy(rows).to(self.X.device)], self.y[rows])


@dataclass(frozen=True)
class TaskResult:
    """Accuracy after one task, always against all classes seen so far."""

    task: int
    classes_seen: int
    alpha_base: float
    alpha_new: float
    alpha_all: float
    seconds: float


def class_order(labels: Sequence[Label], seed: int) -> list[Label]:
    """A seeded permutation of the classes."""
    names = sorted(set(labels), key=str)
    return [names[i] for i in np.random.default_rng(seed).permutation(len(names))]


def split_tasks(order: Sequence[Label], base: int, step: int = 1) -> list[list[Label]]:
    """The first `base` classes as one task, then `step` at a time."""
    if not 0 < base <= len(order) or step < 1:
        raise ValueError(f"cannot split {len(order)} classes into a base of {base} and steps of {step}")
    return [list(order[:base])] + [list(order[i : i + step]) for i in range(base, len(order), step)]


def run(
    learner: Learner,
    train: Samples,
    test: Samples,
    tasks: Sequence[Sequence[Label]],
    progress: Callable[[int, Progress], None] | None = None,
) -> Iterator[TaskResult]:
    """Learn task after task, seeing only its own data, and measure after each.

    Goes on after the tasks the learner has already learned.
    """
    for number in range(learner.tasks_learned, len(tasks)):
        own = train.of(tasks[number])
        start = time.perf_counter()
        learner.learn(own.X, own.y, partial(progress, number) if progress else None)
        seconds = time.perf_counter() - start
        yield TaskResult(number, len(learner.labels), *measure(learner, test, tasks, number), seconds)


def measure(
    learner: Learner, test: Samples, tasks: Sequence[Sequence[Label]], number: int
) -> tuple[float, float, float]:
    """α_base, α_new and α_all after task `number`, counted from 0."""
    seen = test.of([label for task in tasks[: number + 1] for label in task])
    right = learner.predict(seen.X) == seen.y

    def accuracy(labels: Sequence[Label]) -> float:
        return float(right[np.isin(seen.y, np.asarray(labels))].mean())

    return accuracy(tasks[0]), accuracy(tasks[number]), float(right.mean())
