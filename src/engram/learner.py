"""What every method is: three verbs, `learn`, `predict`, `state`, and the names of what it knows."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array, check_consistent_length
from torch import Tensor

from engram.device import resolve_device
from engram.settings import plain, require_kind
from engram.snapshots import Shared, change, read

Label = str | int

# Methods sum the squares of features, in single precision: with these, over any data set, the sums are finite.
LARGEST_FEATURE = 1e12

MOST_EPOCHS = 100_000  # with a model file of anybody's, learning ends

# The first word of a tensor's name says what it is kept for.
GROUPS = {
    "network": "network",
    "classes": "class memory",
    "samples": "stored samples",
    "consolidation": "consolidation state",
    "scratch": "scratch memory",
}


def has_row_per_class(name: str) -> bool:
    """Whether the tensor of that name has one row for every class: the class memory, and read-outs called `head`."""
    return name.startswith("classes.") or ".head." in name


@dataclass(frozen=True)
class Progress:
    """What a progress callback is told at the end of every epoch."""

    phase: str
    epoch: int
    epochs: int
    loss: float


@dataclass(frozen=True)
class About:
    """What to know about a method before comparing it with others."""

    title: str
    paper: str
    per_class: str  # what it stores of a class
    keeps_samples: bool = False
    given: str = ""  # what it is told or allowed that the protocol gives to nobody else
    forgets: bool = False  # a lower bound: nothing is done to remember earlier tasks
    told_the_task: bool = False  # answers among the classes of the sample's own task only
    copies_network: bool = False  # needs the network as it was, beside the one being trained, while it learns
    merges: bool = False  # what it keeps is a sum over samples: two learners make the one that had all of them


@dataclass(frozen=True)
class State:
    """All that a learner is: named tensors, and a JSON-able description. A model file holds exactly this."""

    tensors: dict[str, Tensor]
    meta: dict[str, Any]


@dataclass(frozen=True)
class MemoryEntry:
    """One tensor a learner keeps."""

    name: str
    group: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int


class MemoryTable(dict[str, MemoryEntry]):
    """What is kept, tensor by tensor, name -> entry."""

    @property
    def total(self) -> int:
        """Bytes of everything."""
        return sum(entry.bytes for entry in self.values())

    @property
    def kept(self) -> int:
        """Bytes of what a model file has: everything but scratch memory."""
        return sum(entry.bytes for name, entry in self.items() if not name.startswith("scratch."))

    def by_group(self) -> dict[str, int]:
        """Bytes of each of `GROUPS`."""
        return {g: sum(e.bytes for e in self.values() if e.group == g) for g in GROUPS.values()}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> "MemoryTable":
        """The table of these tensors."""
        return cls(
            {
                name: MemoryEntry(
                    name,
                    GROUPS[name.split(".")[0]],
                    tuple(tensor.shape),
                    str(tensor.dtype).removeprefix("torch."),
                    tensor.numel() * tensor.element_size(),
                )
                for name, tensor in tensors.items()
            }
        )


@dataclass(frozen=True)
class LeftOut:
    """Answers to samples just learned, as they would be had each in turn not been learned: (n,) each."""

    rows: NDArray[np.int64]  # positions in `labels`
    probabilities: NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """One task, checked and on the device. `targets` are positions in `labels`: all classes, the known ones first."""

    features: Tensor
    targets: Tensor
    labels: list[Label]
    known: int
    progress: Callable[[Progress], None] | None = None

    @property
    def classes(self) -> int:
        """How many classes there are once this task is learned."""
        return len(self.labels)

    def new_rows(self) -> Tensor:
        """The positions of the classes this task holds samples of."""
        rows: Tensor = self.targets.unique()
        return rows


class Learner(Shared, ABC):
    """A class-incremental learner over feature vectors.

    `learn` takes one task: features and the labels they carry, any of them new. A failed or interrupted `learn`
    leaves the learner as it was, and nothing that is not finite is ever learned or answered. Threads may share a
    learner: changes take turns, and every answer is that of one moment. Randomness depends on `seed` and the number of
    tasks learned, on nothing else, so going on after a reload draws what going on would have drawn.
    """

    method: ClassVar[str]
    about: ClassVar[About]
    config_type: ClassVar[type[Any]]  # a frozen dataclass with every setting
    defaults: ClassVar[Mapping[str, Any]] = {}  # settings of this method that differ from its dataclass's
    weighs_features: ClassVar[bool] = False  # by how they vary, so that layers of unlike scale may be joined
    few_samples: ClassVar[Mapping[str, Any]] = {}  # settings for some dozens of samples per class
    exact: ClassVar[Mapping[str, Any]] = {}  # settings with which nothing that is kept is rounded

    config: Any

    def __init__(self, config: Any = None, *, seed: int = 0, device: str = "auto") -> None:
        given = {} if config is None else {field.name: getattr(config, field.name) for field in fields(config)}
        self.config = self.configure(given)
        self.seed = seed
        self.device = resolve_device(device)
        self.tasks_learned = 0
        self.n_features: int | None = None

    @classmethod
    def configure(cls, settings: Mapping[str, Any] | None = None) -> Any:
        """The method's configuration with some settings changed; ValueError names an unknown or impossible one."""
        known: dict[str, Any] = {field.name: field.type for field in fields(cls.config_type)}
        given = {name: plain(value) for name, value in (settings or {}).items()}
        for name, value in given.items():
            if name not in known:
                raise ValueError(f"{cls.method} has no setting {name!r}; it has {', '.join(known) or 'none'}")
            require_kind(name, value, known[name])
        try:
            return cls.config_type(**{**cls.defaults, **given})
        except TypeError as error:
            raise ValueError(f"impossible settings for {cls.method}: {error}") from error

    @classmethod
    def described(cls) -> dict[str, Any]:
        """What a model file says of the method, for those who have the file and not the method."""
        rules = {"trains": cls.trains(), "leaves_out": cls.leaves_out(), "tells_unknown": cls.tells_unknown()}
        return asdict(cls.about) | rules

    @property
    @abstractmethod
    def labels(self) -> list[Label]:
        """The classes known, in the order they were learned."""

    @abstractmethod
    def scores(self, X: ArrayLike | Tensor) -> NDArray[np.float32]:
        """How well each sample fits each class, (n, classes), columns as `labels`; the largest is the answer."""

    @abstractmethod
    def _scores(self, features: Tensor) -> Tensor:
        """`scores`, of checked features, in torch alone."""

    def scorer(self) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
        """Scores and familiarity as a function of tensors that torch can trace, for export.

        What is learned later does not reach it.
        """
        return copy.copy(self)._scorer()

    def _scorer(self) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
        return lambda features: (scores := self._scores(features), scores.amax(dim=1))

    @abstractmethod
    def nearest(
        self, X: ArrayLike | Tensor, k: int = 1, among: Sequence[Label] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The `k` best classes of each sample, best first: their scores and positions in `labels`, both (n, k).

        Never makes a table of all samples by all classes. With `among`, only those classes are considered.
        """

    @abstractmethod
    def log_sum(self, X: ArrayLike | Tensor, temperature: float) -> NDArray[np.float64]:
        """log Σ_c exp(score_c / temperature) of each sample: what makes probabilities of scores, without a table."""

    @property
    def temperature(self) -> float:
        """What scores are divided by before a softmax makes probabilities of them."""
        return 1.0

    @abstractmethod
    def familiarity(self, X: ArrayLike | Tensor) -> NDArray[np.float32]:
        """How much each sample looks like any known class: its best score, unless a method knows better."""

    def unknown_below(self, share: float = 0.05) -> float | None:
        """The familiarity that about this share of known samples does not reach; None if nothing is known of that."""
        return None

    @classmethod
    def tells_unknown(cls) -> bool:
        """Whether the method has a rule for that, once it has learned enough."""
        return cls.unknown_below is not Learner.unknown_below

    def leave_one_out(self, X: ArrayLike | Tensor, y: Iterable[Any]) -> LeftOut | None:
        """What the learner would say to samples it has just learned had it not; None for a method that cannot tell."""
        return None

    @classmethod
    def leaves_out(cls) -> bool:
        """Whether the method can tell that."""
        return False

    def calibrate(self, X: ArrayLike | Tensor, y: Iterable[Any]) -> None:
        """Measure, on samples that were learned, what scores say about probabilities; for methods that can tell.

        Learning does so by itself; this is for what was learned elsewhere and merged.
        """
        return None

    @property
    def built_in(self) -> list[Label]:
        """Those of `labels` that the backbone's own head knows, and nobody taught."""
        return []

    @property
    def can_learn(self) -> bool:
        """Whether all that further learning needs is there."""
        return True

    def counts(self) -> list[int] | None:
        """How many samples each class was learned from, in the order of `labels`; None if that is not kept."""
        return None

    def class_vectors(self) -> NDArray[np.float32] | None:
        """One vector per class that says where it lies among the others; None for a method that has none."""
        return None

    def stray(self) -> list[float] | None:
        """How far a network that goes on training has come away from each class, in parts of the way to another one.

        It is not 0 when a class has just been learned; what tells is how much it has grown since. None for a method
        whose network stands still, or that cannot tell.
        """
        return None

    @abstractmethod
    def state(self) -> State:
        """All that is needed to go on."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State, device: str = "auto") -> Self:
        """The learner a state was taken from."""

    @abstractmethod
    def forget(self, label: Label) -> None:
        """Remove a class; ValueError if it is not known."""

    @abstractmethod
    def rename(self, old: Label, new: Label) -> None:
        """Give a class another name."""

    def merge(self, *others: "Learner") -> None:
        """Know what others of this method know, too, as if all of it had been learned here. All or nothing.

        Classes of one name become one. ValueError says what is in the way; see `require_mergeable`.
        """
        for other in others:
            self.require_mergeable(other)

    @classmethod
    def subtracts(cls) -> bool:
        """Whether what is kept are counts, means and scatter, of which those of some samples can be taken away."""
        return False

    def subtract(self, other: "Learner") -> None:
        """Know what was known before `other` was merged, as if that had never been learned here. All or nothing.

        Classes of which no sample is left are gone. ValueError says what is in the way.
        """
        self.require_mergeable(other)
        if not self.subtracts():
            raise ValueError(
                f"a model of the method {self.method} cannot take anything back: what it keeps are not counts, means "
                "and scatter of samples"
            )
        if not self.can_learn:
            raise ValueError("a model that was saved slim cannot take anything back; take the full model file")

    def require_mergeable(self, other: "Learner") -> None:
        """Refuse what cannot be merged with this learner, in one line that names both sides of a mismatch."""
        if not self.about.merges:
            raise ValueError(
                f"models of the method {self.method} cannot be merged: what they keep is no sum over samples, "
                "but depends on what was learned together and in which order"
            )
        if type(other) is not type(self):
            raise ValueError(f"a model of the method {self.method} cannot be merged with one of {other.method}")
        for learner in (self, other):
            if not learner.can_learn:
                raise ValueError("a model that was saved slim cannot be merged; take the full model file")
        mine, theirs = self._common(), other._common()
        for name, value in mine.items():
            if value != theirs.get(name, value):
                raise ValueError(f"models with different {name} cannot be merged: {value} and {theirs[name]}")

    def _common(self) -> dict[str, Any]:
        """What two learners need to have in common to be merged, by name."""
        settings = {name: value for name, value in asdict(self.config).items() if name not in self.exact}
        return settings if self.n_features is None else {"numbers of features": self.n_features, **settings}

    def blank(self) -> Self:
        """A learner to teach elsewhere and to merge into this one.

        It knows no class, rounds nothing, and leaves calibrating to this one.
        """
        raise ValueError(f"models of the method {self.method} cannot be merged")

    @abstractmethod
    def _learn(self, task: Task) -> None:
        """Learn one task, all or nothing."""

    @change
    def learn(
        self, X: ArrayLike | Tensor, y: Iterable[Any], progress: Callable[[Progress], None] | None = None
    ) -> None:
        """Learn one task."""
        features = self._features(X)
        known = self.labels
        names, targets = index_labels(y, known=known)
        check_consistent_length(features, targets)
        position = {label: row for row, label in enumerate(known)}
        labels = known + [name for name in names if name not in position]
        position = {label: row for row, label in enumerate(labels)}
        rows = np.array([position[name] for name in names], dtype=np.int64)[targets]
        self._learn(Task(features, torch.from_numpy(rows).to(self.device), labels, len(known), progress))
        self.n_features = features.shape[1]
        self.tasks_learned += 1
        require_finite(self.state().tensors)

    @read
    def predict(self, X: ArrayLike | Tensor, among: Sequence[Label] | None = None) -> NDArray[Any]:
        """The label of each sample; with `among`, the best of those."""
        _, rows = self.nearest(X, 1, among)
        labels: NDArray[Any] = np.asarray(self.labels)[rows[:, 0]]
        return labels

    @classmethod
    def passes(cls, config: Any, first: bool) -> int:
        """How often a task's data is gone through, so that the time left can be told."""
        return int(getattr(config, "base_epochs" if first else "increment_epochs", 1))

    @classmethod
    def trains(cls) -> bool:
        """Whether a network is trained on the first classes, to tell them apart: then there have to be two."""
        return any(field.name == "base_epochs" for field in fields(cls.config_type))

    def sample_growth(self, classes: int) -> float:
        """The number of stored samples with that many classes, divided by the number stored now."""
        return classes / max(1, len(self.labels))

    def _held(self) -> dict[str, Tensor]:
        """Every tensor in memory: the state, and scratch memory that can be made again from it."""
        return self.state().tensors

    def memory(self) -> MemoryTable:
        """What is kept, exactly; scratch memory, which no file has, is a group of its own."""
        return MemoryTable.of(self._held())

    def task_generator(self, device: torch.device | str) -> torch.Generator:
        """The random numbers of the task at hand."""
        entropy = np.random.SeedSequence([self.seed, self.tasks_learned]).generate_state(1)
        return torch.Generator(device).manual_seed(int(entropy[0]))

    def _features(self, X: ArrayLike | Tensor) -> Tensor:
        if isinstance(X, Tensor):  # already where it is needed, perhaps: no way through numpy
            checked = X.to(self.device, torch.float32)
            if checked.ndim != 2 or not checked.numel() or not checked.isfinite().all():
                raise ValueError(f"X must be a table of finite numbers with at least one row, not {tuple(X.shape)}")
        else:
            checked = torch.from_numpy(check_array(X, dtype=np.float32, order="C")).to(self.device)
        if self.n_features is not None and checked.shape[1] != self.n_features:
            raise ValueError(
                f"X has {checked.shape[1]} features per sample, but the model was trained on {self.n_features}; "
                f"extract them with the same backbone"
            )
        low, high = (float(value) for value in checked.aminmax())
        if max(-low, high) > LARGEST_FEATURE:
            raise ValueError(
                f"X holds {high if high > -low else low:g}; features may be at most {LARGEST_FEATURE:g} in size: "
                f"scale the features, as sklearn.preprocessing.StandardScaler does, or take out what is wrong"
            )
        return checked


def index_labels(y: Iterable[Any], known: Sequence[Label] = ()) -> tuple[list[Label], NDArray[np.int64]]:
    """The distinct labels of `y`, sorted, and each sample's position among them.

    Labels are all str or all int; numpy's own are taken as Python's, and whole floats, which is how some tools hand
    over ints, as ints.
    """
    labels = [int(v) if isinstance(v, float) and v.is_integer() else v for v in map(plain, y)]
    kinds = {type(label) for label in labels} | {type(label) for label in known}
    if not kinds <= {str, int}:
        strange = next(label for label in labels if type(label) not in (str, int))
        raise ValueError(f"a label must be a str or an int, but {strange!r} is a {type(strange).__name__}")
    if len(kinds) > 1:
        raise ValueError("labels mix str and int; give them all as str, or all as int, as the model's classes are")
    names = sorted(set(labels))
    position = {name: i for i, name in enumerate(names)}
    return names, np.array([position[label] for label in labels], dtype=np.int64)


def is_finite(tensor: Tensor) -> bool:
    """Whether no value is infinite or not a number; as a sum, which takes no memory, and exactly only in doubt."""
    if not tensor.is_floating_point():
        return True
    return bool(tensor.sum(dtype=torch.float64).isfinite()) or bool(tensor.isfinite().all())


def find_not_finite(tensors: Mapping[str, Tensor]) -> tuple[str, float] | None:
    """The name of a tensor that holds a value which is not finite, and that value; None if there is none."""
    for name, tensor in tensors.items():
        if not is_finite(tensor):
            return name, float(tensor.flatten()[~tensor.flatten().isfinite()][0])
    return None


def require_finite(tensors: Mapping[str, Tensor]) -> None:
    """Refuse to keep what would make every later answer meaningless."""
    if (found := find_not_finite(tensors)) is not None:
        raise ValueError(
            f"{found[0]} would hold {found[1]}, so nothing was learned: scale the features, as "
            f"sklearn.preprocessing.StandardScaler does, or lower learning rates and weights of losses"
        )


def require_description(meta: Mapping[str, Any]) -> None:
    """Refuse what no learner says of itself beside its tensors and settings."""
    for name, kind, least in (("seed", int, 0), ("tasks_learned", int, 0), ("n_features", int | None, 1)):
        require_kind(name, meta[name], kind)
        if meta[name] is not None and not least <= meta[name] < 2**63:
            raise ValueError(f"{name} must be at least {least} and have less than 64 bits, not {meta[name]}")
    require_kind("slim", meta["slim"], bool)
    labels, taught = meta["labels"], meta["tasks_learned"] > 0
    if not isinstance(labels, list) or len(index_labels(labels)[0]) != len(labels):
        raise ValueError("its classes and their names do not fit together: each has one of its own")
    if (labels and not taught) or (taught and meta["n_features"] is None):
        raise ValueError("its classes, its number of tasks and its number of features do not fit together")


def require(config: object, condition: bool, name: str, expected: str) -> None:
    """Refuse an impossible setting by its name."""
    if not condition:
        raise ValueError(f"{name} must be {expected}, not {getattr(config, name)!r}")


def require_numbers(config: Any, positive: Sequence[str] = (), fractions: Sequence[str] = ()) -> None:
    """Refuse `positive` settings that are not above 0, `fractions` below 0 or from 1 on.

    Epochs, learning rates, neighbours and weights of losses, known by their names, may be 0 but not negative; epochs
    have an end.
    """
    for name in positive:
        require(config, getattr(config, name) > 0, name, "a number above 0")
    for name in fractions:
        require(config, 0 <= getattr(config, name) < 1, name, "at least 0 and below 1")
    for name in (field.name for field in fields(config)):
        if name.startswith("lambda_") or name.endswith(("_epochs", "_rate", "_neighbours")):
            require(config, getattr(config, name) >= 0, name, "a number of at least 0")
        if name.endswith("_epochs"):
            require(config, getattr(config, name) <= MOST_EPOCHS, name, f"at most {MOST_EPOCHS:,}")
