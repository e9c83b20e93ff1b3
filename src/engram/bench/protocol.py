"""Base classes first, then a few at a time; after every task, how much is known (Kemker et al. 2018)."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.bench.learners import bytes_kept, device_of
from engram.learners.base import GROUPS, Label, Learner, LeavesOut, Progress, Tell, quiet
from engram.paper.adapter import Adapter


@dataclass(frozen=True)
class Samples:
    """Feature vectors and their labels. `X` lies where it is used: moved to a GPU once, not for every task."""

    X: Any  # torch's, or numpy's for a learner in numpy
    y: NDArray[Any]

    def of(self, labels: Sequence[Label]) -> "Samples":
        """The samples of some classes."""
        return self.at(np.flatnonzero(np.isin(self.y, np.asarray(labels))))

    def at(self, rows: NDArray[np.int64]) -> "Samples":
        """The samples at some positions."""
        at = torch.from_numpy(rows).to(self.X.device) if isinstance(self.X, Tensor) else rows
        return Samples(self.X[at], self.y[rows])

    def for_learner(self, learner: Learner) -> "Samples":
        """The samples as a learner takes them: of those in numpy, arrays."""
        if isinstance(learner, Adapter) or not isinstance(self.X, Tensor):
            return self
        return Samples(self.X.cpu().numpy(), self.y)


@dataclass(frozen=True)
class TaskResult:
    """What was measured after one task. Accuracies are always against all classes seen so far."""

    task: int
    classes_seen: int
    alpha_base: float
    alpha_new: float
    alpha_all: float
    forgetting: float = 0.0  # mean over earlier tasks of the best accuracy each ever had, less the one it has now
    seconds: float = 0.0
    peak_memory_bytes: int = 0  # of the device on a GPU, of the process so far on a CPU; 0 where it is not known
    kept_bytes: dict[str, int] = field(default_factory=dict)
    best: Sequence[float] = ()  # the best accuracy of every task so far


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
    best: Sequence[float] = (),
) -> Iterator[tuple[Learner, TaskResult]]:
    """Learn task after task, seeing only its own data, and measure after each.

    Goes on after the tasks the learner has already learned; `best` is then that of the last result.
    """
    train, test, device = train.for_learner(learner), test.for_learner(learner), device_of(learner)
    for number in range(learner.updates, len(tasks)):
        own = train.of(tasks[number])
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        start = time.perf_counter()
        learner = _taught(learner, own, partial(progress, number) if progress else quiet)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds = time.perf_counter() - start
        now, overall = accuracies(learner, test, tasks[: number + 1])
        result = TaskResult(
            task=number,
            classes_seen=len(learner.labels),
            alpha_base=now[0],
            alpha_new=now[-1],
            alpha_all=overall,
            forgetting=fmean(b - n for b, n in zip(best, now[:-1], strict=True)) if number else 0.0,
            seconds=seconds,
            peak_memory_bytes=_peak_memory(device),
            kept_bytes=_kept_bytes(learner),
            best=(best := [max(b, n) for b, n in zip([*best, 0.0], now, strict=True)]),
        )
        yield learner, result


def _taught(learner: Learner, own: Samples, tell: Tell) -> Learner:
    """Having learned, and calibrated, as a model of it would be."""
    labels = own.y.tolist()
    after = learner.learn(own.X, labels, tell)
    return after.judged(own.X, labels)[0] if isinstance(after, LeavesOut) and after.to_calibrate else after


def accuracies(learner: Learner, test: Samples, tasks: Sequence[Sequence[Label]]) -> tuple[list[float], float]:
    """The accuracy on the classes of each task, and on all of them."""
    seen = np.flatnonzero(np.isin(test.y, np.asarray([label for task in tasks for label in task])))
    found = answers(learner, test.at(seen), tasks)
    names, which = np.unique(test.y[seen], return_inverse=True)
    right = np.bincount(which, weights=found == test.y[seen])
    total = np.bincount(which)
    rows = {name: row for row, name in enumerate(names.tolist())}
    of_tasks = [[rows[label] for label in task] for task in tasks]
    return [float(right[own].sum() / total[own].sum()) for own in of_tasks], float(right.sum() / total.sum())


def answers(learner: Learner, test: Samples, tasks: Sequence[Sequence[Label]]) -> NDArray[Any]:
    """The label of each sample; a learner that has to be told a sample's task chooses among that task's classes."""
    test = test.for_learner(learner)
    if not learner.about.told_the_task:
        return _best(learner, test)
    found = np.empty_like(test.y)
    for task in tasks:
        own = np.flatnonzero(np.isin(test.y, np.asarray(task)))
        found[own] = _best(learner, test.at(own), task)
    return found


def _best(learner: Learner, test: Samples, candidates: Sequence[Label] | None = None) -> NDArray[Any]:
    rows = learner.answer(test.X, 1, candidates).rows[:, 0]
    labels: NDArray[Any] = np.asarray(learner.labels)[rows]
    return labels


def _kept_bytes(learner: Learner) -> dict[str, int]:
    """By group."""
    kept = bytes_kept(learner)
    groups = {GROUPS[one]: one for one in ("network", "classes", "samples", "consolidation")}
    return {title: sum(n for name, n in kept.items() if name.split(".")[0] == one) for title, one in groups.items()}


def _peak_memory(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    try:
        import resource
    except ImportError:  # Windows does not have it: nothing is known
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
