"""A learner in torch whose whole knowledge is a table of named tensors: what the paper's method and the peers are.

A method says how a task changes the table (`_tensors_after`) and how the table scores a sample (`_scores`). Forgetting
and counting bytes follow from the names: tensors called `classes.…` and `….head.…` have one row per class, tensors
called `samples.…` one row per stored sample, and `samples.targets` says whose it is. `engram.paper.adapter` makes a
learner as the rest of the package knows it of this.
"""

import contextlib
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.learners.base import About, Features, Label, Progress, State, has_row_per_class
from engram.learners.layout import Layout as Layout
from engram.learners.layout import read_state, require_description
from engram.paper import statistics
from engram.paper.device import resolve_device
from engram.paper.learner import Task, require_finite
from engram.paper.statistics import with_rows as with_rows
from engram.stats.sums import index

CHUNK = 4096  # samples scored at a time, at most
TABLE = 2**24  # scores in memory at a time

Tensors = Mapping[str, Tensor]


class TensorLearner(ABC):
    """Learns by making a new table of tensors out of the old one and a task, so a failure leaves the old one.

    Nothing in a table is changed in place: a copy of the learner may share it. Randomness depends on `seed` and the
    number of tasks learned, on nothing else, so going on after a reload draws what going on would have drawn.
    """

    method: ClassVar[str]
    about: ClassVar[About]
    config_type: ClassVar[type[Any]]  # a frozen dataclass with every setting
    few_samples: ClassVar[Mapping[str, Any]] = {}  # settings for some dozens of samples per class
    only_for_learning: ClassVar[tuple[str, ...]] = ()  # beginnings of the names that answering does without
    temperature: ClassVar[float] = 1.0  # what scores are divided by before a softmax

    config: Any

    def __init__(self, config: Any = None, *, seed: int = 0, device: str | torch.device = "auto") -> None:
        self.config = self.config_type() if config is None else config
        self.seed = seed
        self.device = resolve_device(device)
        self.tasks_learned = 0
        self.n_features: int | None = None
        self.labels: list[Label] = []  # in the order they were learned
        self.tensors: dict[str, Tensor] = {}
        self.slim = False  # of a file of before that was saved without what only learning needs

    @abstractmethod
    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        """The table after a task; `self.tensors`, the table before it, is not to be changed."""

    @abstractmethod
    def _scores(self, features: Tensor) -> Tensor:
        """(n, classes), the largest is the answer."""

    @abstractmethod
    def _layout(self, classes: int, features: int) -> Layout:
        """What each of its tensors has to be once it is taught: nothing else is loaded."""

    def learn(
        self, X: Features | Tensor, y: Sequence[Label], progress: Callable[[Progress], None] | None = None
    ) -> None:
        """Learn one task, all or nothing."""
        if self.slim:
            raise ValueError("this model was saved slim, without what further learning needs; load the full model file")
        features, (names, own) = self._features(X), index(y)
        labels = [*self.labels, *(name for name in names if name not in self.labels)]
        row = {label: at for at, label in enumerate(labels)}
        targets = torch.from_numpy(np.array([row[name] for name in names], dtype=np.int64)[own]).to(self.device)
        with self._own_randomness():
            after = self._tensors_after(Task(features, targets, labels, len(self.labels), progress))
        tensors = {name: tensor.detach() for name, tensor in after.items()}
        require_finite(tensors)
        self.tensors, self.labels, self.n_features = tensors, labels, features.shape[1]
        self.tasks_learned += 1

    def task_generator(self, device: torch.device | str) -> torch.Generator:
        """The random numbers of the task at hand."""
        entropy = np.random.SeedSequence([self.seed, self.tasks_learned]).generate_state(1)
        return torch.Generator(device).manual_seed(int(entropy[0]))

    @contextlib.contextmanager
    def _own_randomness(self) -> Iterator[None]:
        """Seed torch's global generators for the task at hand, and leave them as they were."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(self.task_generator("cpu").initial_seed())
            yield

    def _add_to_statistics(self, task: Task) -> statistics.Update:
        """Add a task's samples to the counts and means in the table."""
        counts, means = self.tensors.get("classes.counts"), self.tensors.get("classes.means")
        return statistics.update(counts, means, task.features, task.targets, task.classes)

    def scores(self, X: Features | Tensor) -> NDArray[np.float32]:
        """How well each sample fits each class, (n, classes), columns as `labels`; the largest is the answer."""
        if not self.labels:
            raise ValueError("no class is known; call learn first")
        parts = self._features(X).split(max(1, min(CHUNK, TABLE // len(self.labels))))
        with torch.no_grad():
            found = torch.cat([self._scores(part) for part in parts]).float()
        if not found.isfinite().all():
            raise ValueError("a score is not finite: the features are too large for this model; scale them")
        scores: NDArray[np.float32] = found.cpu().numpy()
        return scores

    def predict(self, X: Features | Tensor) -> NDArray[Any]:
        """The label of each sample."""
        labels: NDArray[Any] = np.asarray(self.labels)[self.scores(X).argmax(axis=1)]
        return labels

    def _features(self, X: Features | Tensor) -> Tensor:
        return torch.as_tensor(X, dtype=torch.float32, device=self.device)

    @classmethod
    def passes(cls, config: Any, first: bool) -> int:
        """How often a task's data is gone through, so that the time left can be told."""
        return int(getattr(config, "base_epochs" if first else "increment_epochs", 1))

    def sample_growth(self, classes: int) -> float:
        """The number of stored samples with that many classes, divided by the number stored now."""
        growth, most = classes / max(1, len(self.labels)), getattr(self.config, "samples", None)
        return growth if most is None else min(growth, max(most, classes) / len(self.tensors["samples.targets"]))

    def counts(self) -> Tensor | None:
        """How many samples each class was learned from, where the method counts them."""
        return self.tensors.get("classes.counts")

    def class_vectors(self) -> Tensor | None:
        """The class means, where the method keeps them."""
        return self.tensors.get("classes.means")

    def stray(self) -> list[float] | None:
        """How far a network that goes on training has come away from each class, in parts of the way to another one.

        It is not 0 when a class has just been learned; what tells is how much it has grown since. None for a method
        whose network stands still, or that cannot tell.
        """
        return None

    def forget(self, row: int) -> None:
        """Remove a class: its rows, and its samples. What a network has learned from it stays in its weights."""
        rest = torch.tensor([i for i in range(len(self.labels)) if i != row], dtype=torch.int64, device=self.device)
        tensors = {name: t[rest] if has_row_per_class(name) else t for name, t in self.tensors.items()}
        if "samples.targets" in tensors:
            others = tensors["samples.targets"] != row
            tensors |= {name: t[others] for name, t in tensors.items() if name.startswith("samples.")}
            tensors["samples.targets"] -= (tensors["samples.targets"] > row).long()
        self.tensors, self.labels = tensors, self.labels[:row] + self.labels[row + 1 :]

    def to(self, device: str | torch.device) -> Self:
        """The same learner on a device."""
        moved = copy.copy(self)
        moved.device = resolve_device(device)
        moved.tensors = {name: tensor.to(moved.device) for name, tensor in self.tensors.items()}
        return moved

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The table in numpy."""
        return {name: tensor.cpu().numpy() for name, tensor in self.tensors.items()}

    @classmethod
    def from_state(cls, state: State, config: Any) -> Self:
        """The learner a state was taken from, bit for bit; ValueError says what no state of this method has."""
        meta = state.meta
        require_description(state)
        learner = cls(config, seed=meta["seed"])
        learner.tasks_learned, learner.n_features = meta["tasks_learned"], meta["n_features"]
        learner.labels, learner.slim = list(meta["labels"]), meta["slim"]
        learner.tensors = {name: torch.from_numpy(array.copy()) for name, array in state.arrays.items()}
        learner.tensors = learner._checked(state)
        return learner.to(learner.device)

    def _checked(self, state: State) -> dict[str, Tensor]:
        """The tensors, if they fit the classes, the number of features and the settings."""
        layout = self._layout(len(self.labels), self.n_features or 0)
        left_out = self.only_for_learning if self.slim else ()
        arrays = read_state(state, {name: kept for name, kept in layout.items() if not name.startswith(left_out)})
        alone = "samples.targets" in arrays and not any(map(has_row_per_class, arrays))
        if alone and len(np.unique(arrays["samples.targets"])) != len(self.labels):
            raise ValueError("its classes and the samples kept of them do not fit together")
        return {name: tensor for name, tensor in self.tensors.items() if name in arrays}


def with_samples(
    tensors: Tensors, features: Tensor, targets: Tensor, most: int | None = None, random: torch.Generator | None = None
) -> dict[str, Tensor]:
    """The stored samples and these, under their names in the state; `most` in all, as `share_evenly` has them."""
    added = {"samples.features": features.clone(), "samples.targets": targets.clone()}
    kept = {name: torch.cat([tensors[name], new]) if name in tensors else new for name, new in added.items()}
    return kept if most is None else share_evenly(kept, targets, most, random)


def share_evenly(kept: Tensors, new: Tensor, most: int, random: torch.Generator | None) -> dict[str, Tensor]:
    """At most so many stored samples, as many of every class, at least one; those of the `new` targets drawn at random.

    They stay in the order they were drawn in, so that to make room for a further class is to truncate the others.
    """
    targets = kept["samples.targets"]
    drawn = torch.randperm(len(targets), generator=random).to(targets.device)
    is_new = torch.isin(targets, new)
    order = torch.cat([torch.nonzero(~is_new).flatten(), drawn[is_new[drawn]]])
    classes = targets.unique().tolist()
    own = max(1, most // len(classes))
    chosen = torch.cat([order[targets[order] == row][:own] for row in classes])
    return {name: tensor[chosen] for name, tensor in kept.items()}
