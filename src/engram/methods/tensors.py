"""A learner whose whole knowledge is a table of named tensors: what most methods are built on.

A method says how a task changes the table (`_tensors_after`) and how the table scores a sample (`_scores`). Saving,
loading, forgetting, renaming and counting bytes follow from the names: tensors called `classes.…` and `….head.…` have
one row per class, tensors called `samples.…` one row per stored sample, and `samples.targets` says whose it is.
"""

import contextlib
import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from engram.learner import (
    Label,
    Learner,
    LeftOut,
    State,
    Task,
    has_row_per_class,
    index_labels,
    is_finite,
    require_description,
    require_finite,
)
from engram.methods.subtracting import Subtracting
from engram.nn import calibration, statistics
from engram.nn.layout import Layout as Layout
from engram.nn.layout import require_layout
from engram.nn.statistics import with_rows as with_rows
from engram.snapshots import change, read

CHUNK = 4096  # samples scored at a time, at most
TABLE = 2**24  # scores in memory at a time

Tensors = Mapping[str, Tensor]


class Taught(NamedTuple):
    """The table of one of several learners, and the rows its classes get in all of them."""

    tensors: Tensors
    rows: Tensor


class TensorLearner(Subtracting):
    """Learns by making a new table of tensors out of the old one and a task, so a failure leaves the old one."""

    only_for_learning: ClassVar[tuple[str, ...]] = ()  # beginnings of the names that prediction does without

    def __init__(self, config: Any = None, *, seed: int = 0, device: str = "auto") -> None:
        super().__init__(config, seed=seed, device=device)
        self.slim = False
        self.calibrating = True  # while it learns

    @property
    def labels(self) -> list[Label]:
        """The classes known, in the order they were learned."""
        return list(self._labels)

    @abstractmethod
    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        """The table after a task; `self.tensors`, the table before it, is not to be changed."""

    @abstractmethod
    def _scores(self, features: Tensor) -> Tensor:
        """(n, classes), the largest is the answer."""

    def _layout(self, classes: int, features: int) -> Layout | None:
        """What each of its tensors has to be once it is taught: nothing else is loaded. None if that is open."""
        return None

    def _nearest(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The `k` best scores of each sample and their rows; overridden where that needs no table of all scores."""
        return self._scores(features).topk(k, dim=1)

    def _add_to_statistics(self, task: Task) -> statistics.Update:
        """Add a task's samples to the counts and means in the table."""
        counts, means = self.tensors.get("classes.counts"), self.tensors.get("classes.means")
        return statistics.update(counts, means, task.features, task.targets, task.classes)

    def _learn(self, task: Task) -> None:
        if self.slim:
            raise ValueError("this model was saved slim, without what further learning needs; load the full model file")
        with self._own_randomness():
            tensors = self._tensors_after(task)
        self.tensors, self.scratch = {name: tensor.detach() for name, tensor in tensors.items()}, {}
        self._labels = task.labels

    def _held(self) -> dict[str, Tensor]:
        return super()._held() | {f"scratch.{name}": tensor for name, tensor in dict(self.scratch).items()}

    @contextlib.contextmanager
    def _own_randomness(self) -> Iterator[None]:
        """Seed torch's global generators for the task at hand, and leave them as they were."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            torch.manual_seed(self.task_generator("cpu").initial_seed())
            yield

    @read
    def scores(self, X: ArrayLike | Tensor) -> NDArray[np.float32]:
        """How well each sample fits each class."""
        with torch.no_grad():
            return _finite(torch.cat([self._scores(part) for part in self._chunks(X)]).float())

    @read
    def nearest(
        self, X: ArrayLike | Tensor, k: int = 1, among: Sequence[Label] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The `k` best classes of each sample, best first."""
        found = []
        with torch.no_grad():
            for part in self._chunks(X):
                if among is None:
                    found.append(self._nearest(part, min(k, len(self.labels))))
                else:
                    rows = self._rows(among)
                    best, at = self._scores(part)[:, rows].topk(min(k, len(rows)), dim=1)
                    found.append((best, rows[at]))
        scores, rows = (torch.cat(parts) for parts in zip(*found, strict=True))
        return _finite(scores.float()), rows.cpu().numpy()

    @read
    def log_sum(self, X: ArrayLike | Tensor, temperature: float) -> NDArray[np.float64]:
        """log Σ_c exp(score_c / temperature) of each sample."""
        with torch.no_grad():
            sums = [(self._scores(part).double() / temperature).logsumexp(dim=1) for part in self._chunks(X)]
            return _finite(torch.cat(sums))

    @read
    def familiarity(self, X: ArrayLike | Tensor) -> NDArray[np.float32]:
        """How much each sample looks like any known class."""
        with torch.no_grad():
            return _finite(torch.cat([self._familiarity(part) for part in self._chunks(X)]).float())

    def _familiarity(self, features: Tensor) -> Tensor:
        return self._nearest(features, 1)[0][:, 0]

    @read
    def leave_one_out(self, X: ArrayLike | Tensor, y: Iterable[Any]) -> LeftOut | None:
        """What the learner would say to samples it has just learned had it not; None for a method that cannot tell."""
        targets, parts = self._targets(y), self._chunks(X)
        rows, probabilities = [], []
        for x, own in zip(parts, targets.split([len(part) for part in parts]), strict=True):
            found = self._left_out(x, own)
            if found is None:
                return None
            best = (found[0].double() / self.temperature).softmax(dim=1).max(dim=1)
            rows.append(best.indices)
            probabilities.append(best.values)
        return LeftOut(torch.cat(rows).cpu().numpy(), torch.cat(probabilities).cpu().numpy())

    @classmethod
    def leaves_out(cls) -> bool:
        """Whether `_left_out` tells."""
        return cls._left_out is not TensorLearner._left_out

    @change
    def calibrate(self, X: ArrayLike | Tensor, y: Iterable[Any]) -> None:
        """Measure, on samples that were learned, what scores say about probabilities; for methods that can tell."""
        features, targets, counts = self._features(X), self._targets(y), self.tensors["classes.counts"]
        several = counts[targets] > 1  # without its only sample a class would be gone
        if len(self._labels) > 1 and several.any():
            own = targets[several]
            found, before = self._left_out(features[several], own), self.tensors.get("consolidation.calibration")
            if found is not None:
                fit = calibration.pool(before, int(counts.sum()), *found, own)
                self.tensors = self.tensors | {"consolidation.calibration": fit}
                require_finite({"consolidation.calibration": fit})

    def _left_out(self, x: Tensor, targets: Tensor) -> tuple[Tensor, Tensor] | None:
        """Scores and familiarity of learned samples, had each in turn not been learned."""
        return None

    def _targets(self, y: Iterable[Any]) -> Tensor:
        """The rows of known labels."""
        names, positions = index_labels(y)
        return self._rows(names)[torch.from_numpy(positions).to(self.device)]

    def _chunks(self, X: ArrayLike | Tensor) -> tuple[Tensor, ...]:
        """Checked samples, few enough at a time that a table of their scores stays small."""
        features = self._features(X)
        if not self.labels:
            raise ValueError("no class is known; call learn first")
        parts: tuple[Tensor, ...] = features.split(max(1, min(CHUNK, TABLE // len(self.labels))))
        return parts

    def sample_growth(self, classes: int) -> float:
        """In proportion to the classes, up to `samples`, which some methods have among their settings."""
        growth, most = super().sample_growth(classes), getattr(self.config, "samples", None)
        return growth if most is None else min(growth, max(most, classes) / len(self.tensors["samples.targets"]))

    @property
    def can_learn(self) -> bool:
        """Whether the model was not saved slim."""
        return not self.slim

    def counts(self) -> list[int] | None:
        """How many samples each class was learned from, where the method counts them."""
        kept = self.tensors.get("classes.counts")
        return None if kept is None else [int(n) for n in kept.tolist()]

    @read
    def class_vectors(self) -> NDArray[np.float32] | None:
        """The class means, where the method keeps them."""
        return self._class_vectors()

    def _class_vectors(self) -> NDArray[np.float32] | None:
        means = self.tensors.get("classes.means")
        return None if means is None else means.float().cpu().numpy()

    @read
    def stray(self) -> list[float] | None:
        """How far the network has come away from each class mean; see `Learner`."""
        return self._stray() if self._labels else None

    def _stray(self) -> list[float] | None:
        return None

    @change
    def forget(self, label: Label) -> None:
        """Remove a class: its rows, and its samples. What a network has learned from it stays in its weights."""
        row = self._row(label)
        self.tensors, self.scratch = self._tensors_without(row), {}
        self._labels = [name for name in self._labels if name != label]

    def _tensors_without(self, row: int) -> dict[str, Tensor]:
        rest = torch.tensor([i for i in range(len(self._labels)) if i != row], dtype=torch.int64, device=self.device)
        tensors = {name: t[rest] if has_row_per_class(name) else t for name, t in self.tensors.items()}
        if "samples.targets" in tensors:
            others = tensors["samples.targets"] != row
            tensors |= {name: t[others] for name, t in tensors.items() if name.startswith("samples.")}
            tensors["samples.targets"] -= (tensors["samples.targets"] > row).long()
        return tensors

    @change
    def rename(self, old: Label, new: Label) -> None:
        """Give a class another name."""
        row = self._row(old)
        index_labels([new], known=self._labels)
        if new != old and new in self._labels:
            raise ValueError(f"cannot rename {old!r} to {new!r}: a class of that name exists; forget it first")
        self._labels = [*self._labels[:row], new, *self._labels[row + 1 :]]

    @change
    def merge(self, *others: Learner) -> None:
        """Know what others of this method know, too."""
        super().merge(*others)
        alike = [self, *(copy.copy(other) for other in others if isinstance(other, TensorLearner))]
        labels = list(dict.fromkeys(label for each in alike for label in each._labels))
        index_labels(labels)
        position = {label: row for row, label in enumerate(labels)}
        taught = [
            Taught(
                {name: tensor.to(self.device) for name, tensor in each.tensors.items()},
                torch.tensor([position[label] for label in each._labels], dtype=torch.int64, device=self.device),
            )
            for each in alike
            if each.tasks_learned
        ]
        if taught:
            tensors = self._tensors_merged(taught, len(labels))
            self.tensors, self.scratch, self._labels = tensors, {}, labels
            self.n_features = next(each.n_features for each in alike if each.n_features is not None)
            self.tasks_learned = sum(each.tasks_learned for each in alike)
            require_finite(tensors)

    def _tensors_merged(self, several: Sequence[Taught], classes: int) -> dict[str, Tensor]:
        """The table of all, given every one's; methods that `about` says can be merged have it."""
        raise NotImplementedError

    def require_mergeable(self, other: Learner) -> None:
        """Refuse what cannot be merged, also networks that were drawn or trained apart."""
        super().require_mergeable(other)
        mine, theirs = self._frozen(), other._frozen() if isinstance(other, TensorLearner) else {}
        for name in sorted(mine.keys() & theirs.keys() - {"network.unit"}):  # from one unit to another is exact
            if not torch.equal(mine[name].cpu(), theirs[name].cpu()):
                raise ValueError(
                    f"models whose {name} differs cannot be merged; they were made with the seeds {self.seed} and "
                    f"{other.seed}, or on different first classes: merge copies of one model that learned on"
                )

    def _frozen(self) -> dict[str, Tensor]:
        """What is fixed before the first class or with it, and never learned again."""
        return {n: t for n, t in self.tensors.items() if n.startswith("network.") and not has_row_per_class(n)}

    def blank(self) -> Self:
        """A learner to teach elsewhere and to merge into this one."""
        self.require_mergeable(self)
        learner = type(self)(replace(self.config, **self.exact), seed=self.seed, device="cpu")
        learner.tensors = {name: tensor.cpu() for name, tensor in self._frozen().items()}
        learner.n_features, learner.calibrating = self.n_features, False
        return learner

    def _row(self, label: Label) -> int:
        return int(self._rows([label])[0])

    def _rows(self, labels: Iterable[Label]) -> Tensor:
        row = {label: row for row, label in enumerate(self.labels)}
        try:
            return torch.tensor([row[label] for label in labels], dtype=torch.int64, device=self.device)
        except KeyError as error:
            raise ValueError(f"unknown class {error.args[0]!r}; {len(row)} classes are known") from None

    @read
    def state(self) -> State:
        """The table."""
        meta = {
            "config": asdict(self.config),
            "seed": self.seed,
            "tasks_learned": self.tasks_learned,
            "n_features": self.n_features,
            "labels": list(self._labels),
            "slim": self.slim,
        }
        return State(dict(self.tensors), meta)

    @classmethod
    def from_state(cls, state: State, device: str = "auto") -> Self:
        """The learner a state was taken from, bit for bit; ValueError says what no state of this method has."""
        meta = state.meta
        require_description(meta)
        learner = cls(cls.configure(meta["config"]), seed=meta["seed"], device=device)
        learner.tasks_learned, learner.n_features = meta["tasks_learned"], meta["n_features"]
        learner._labels, learner.slim = list(meta["labels"]), meta["slim"]
        # Files of before may hold lessons that could be taken back.
        learner.tensors = {n: tensor for n, tensor in state.tensors.items() if not n.startswith("lessons.")}
        learner._require_whole()
        learner.tensors = {name: tensor.to(learner.device) for name, tensor in learner.tensors.items()}
        return learner

    def _require_whole(self) -> None:
        """Refuse tensors that do not fit the classes, the number of features and the settings."""
        classes = len(self._labels)
        rows = {len(tensor) for name, tensor in self.tensors.items() if has_row_per_class(name)}
        if not rows <= {classes}:
            raise ValueError("its classes and the rows kept of them do not fit together")
        layout = self._layout(classes, self.n_features or 0) if self.tasks_learned else {}
        if layout is not None:
            left_out = self.only_for_learning if self.slim else ()
            require_layout(self.tensors, {n: kept for n, kept in layout.items() if not n.startswith(left_out)})
        targets = self.tensors.get("samples.targets")
        if not rows and targets is not None and len(targets.unique()) != classes:
            raise ValueError("its classes and the samples kept of them do not fit together")


def _finite(answers: Tensor) -> NDArray[Any]:
    """Answers for those who asked; an infinite one is none."""
    if not is_finite(answers):
        raise ValueError("a score is not finite: the features are too large for this model; scale them")
    found: NDArray[Any] = answers.cpu().numpy()
    return found


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


def united(several: Sequence[Taught], classes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Counts and means of all, and what it adds to the scatter that means of one class lay apart."""
    first = several[0].tensors["classes.means"]
    counts, means = first.new_zeros(classes, dtype=torch.int64), first.new_zeros(classes, first.shape[1])
    between = first.new_zeros(first.shape[1], first.shape[1])
    for tensors, rows in several:
        n, mu = tensors["classes.counts"].long(), tensors["classes.means"].double()
        apart = statistics.unite(counts, means, rows, n, mu * n[:, None]).to(first.dtype)
        between += apart.T @ apart
    return counts, means, between
