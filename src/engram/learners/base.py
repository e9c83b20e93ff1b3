"""What every method is: `learn`, `score`, `state`, and the names of what it knows. All a new method has to read."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from engram.settings import plain, require_kind

Array = NDArray[Any]
Label = str | int
Features = NDArray[np.float32]  # (n, d), finite, checked once: where they come in

TABLE = 2**25  # scores in memory at a time: fewer, and the class means would be read again and again
CACHE = 2**18  # of these that are looked at together
GROUP = 64  # classes that are looked at together for the best ones

# The first word of an array's name says what it is kept for.
GROUPS = {
    "network": "network",
    "classes": "class memory",
    "samples": "stored samples",
    "consolidation": "consolidation state",
    "examples": "examples to check with",
    "lessons": "lessons that can be taken back",
}


def has_row_per_class(name: str) -> bool:
    """Whether the array of that name has one row for every class: the class memory, and read-outs called `head`."""
    return name.startswith("classes.") or ".head." in name


@dataclass(frozen=True)
class Progress:
    """What a progress callback is told at the end of every epoch."""

    phase: str
    epoch: int
    epochs: int
    loss: float


Tell = Callable[[Progress], None]


def quiet(progress: Progress) -> None:
    """Tell nobody."""


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


class Scores(NamedTuple):
    """What a learner says of n samples: of every class, raw, from one pass."""

    values: NDArray[np.float32]  # (n, classes), the largest is the answer
    novelty: NDArray[np.float32] | None  # (n,), how unlike every known class; None: the method has no rule
    temperature: float  # what values are divided by before a softmax


class Answers(NamedTuple):
    """The best classes of n samples, best first: positions in `labels`, scores, probabilities, (n, k) each."""

    rows: NDArray[np.int64]
    scores: NDArray[np.float32]
    probabilities: NDArray[np.float64]
    novelty: NDArray[np.float32] | None


@dataclass(frozen=True)
class State:
    """All that a learner is: named arrays and a JSON-able description. A model file holds exactly this."""

    arrays: dict[str, Array]
    meta: dict[str, Any]

    def memory(self) -> dict[str, int]:
        """The bytes of every array."""
        return {name: array.nbytes for name, array in self.arrays.items()}


@dataclass(frozen=True, eq=False)
class Learner(ABC):
    """A classifier that learns class after class. A value: teaching returns a new one, a failure leaves the old one."""

    method: ClassVar[str]
    about: ClassVar[About]
    settings_type: ClassVar[type[Any]]  # a frozen dataclass with every setting
    weighs_features: ClassVar[bool] = False  # by how they vary, so that layers of unlike scale may be joined
    first_classes: ClassVar[int] = 1  # how many a new model begins with at least
    few_samples: ClassVar[Mapping[str, Any]] = {}  # settings for some dozens of samples per class

    settings: Any
    seed: int = 0
    updates: int = 0  # how often it was taught
    n_features: int | None = None

    @classmethod
    def new(cls, settings: Mapping[str, Any] | None = None, *, seed: int = 0) -> Self:
        """A learner that knows nothing; ValueError names an unknown or impossible setting."""
        return cls(cls.configure(settings), seed)

    @classmethod
    def configure(cls, settings: Mapping[str, Any] | None = None) -> Any:
        """The method's settings with some changed; ValueError names an unknown or impossible one."""
        known: dict[str, Any] = {field.name: field.type for field in fields(cls.settings_type)}
        given = {name: plain(value) for name, value in (settings or {}).items()}
        for name, value in given.items():
            if name not in known:
                raise ValueError(f"{cls.method} has no setting {name!r}; it has {', '.join(known) or 'none'}")
            require_kind(name, value, known[name])
        return cls.settings_type(**given)

    @classmethod
    def settings_of(cls, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The method's settings with some changed, by name, as a state has them."""
        return dict(asdict(cls.configure(settings)))

    # --- what a method has to say ---------------------------------------------------------------------------------

    @property
    @abstractmethod
    def labels(self) -> tuple[Label, ...]:
        """The classes known, in the order they were learned: the one order, from here to the screen."""

    @abstractmethod
    def learn(self, x: Features, y: Sequence[Label], tell: Tell = quiet) -> Self:
        """The learner that has learned one task more: new classes, or more samples of known ones. Never calibrates."""

    @abstractmethod
    def score(self, x: Features) -> Scores:
        """Scores of every class, and novelty."""

    @abstractmethod
    def _arrays(self) -> dict[str, Array]:
        """Everything that is kept, rounded and packed, by name."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """The learner a state was taken from; ValueError says what no state of this method has."""

    @abstractmethod
    def forget(self, label: Label) -> Self:
        """The learner without a class."""

    @abstractmethod
    def rename(self, old: Label, new: Label) -> Self:
        """The learner with another name for a class."""

    # --- what may be left as it is --------------------------------------------------------------------------------

    @property
    def built_in(self) -> tuple[Label, ...]:
        """Those of `labels` that nobody taught: the encoder's own head knows them."""
        return ()

    @property
    def can_learn(self) -> bool:
        """Whether all that further learning needs is there."""
        return True

    def prepare(self) -> None:
        """Compute what is needed to answer; else the first question does."""
        return None

    def counts(self) -> NDArray[np.int64] | None:
        """How many samples each class was learned from; None if that is not kept."""
        return None

    def class_vectors(self) -> Array | None:
        """One vector for each class that says where it lies among the others; None if there is none."""
        return None

    def drift(self) -> list[float] | None:
        """How far a trained encoder has moved from each class mean; None for a method whose encoder stands still."""
        return None

    def unknown_above(self, share: float) -> float | None:
        """The novelty that this share of known samples exceeds; None if nothing is known of that."""
        return None

    @classmethod
    def described(cls) -> dict[str, Any]:
        """What a model file says of the method, for those who have the file and not the method."""
        rules = {"trains": cls.first_classes > 1, "leaves_out": issubclass(cls, LeavesOut)}
        return asdict(cls.about) | rules | {"tells_unknown": cls.unknown_above is not Learner.unknown_above}

    def description(self) -> dict[str, Any]:
        """What a state says beside its arrays."""
        return {
            "config": asdict(self.settings),
            "seed": self.seed,
            "tasks_learned": self.updates,
            "n_features": self.n_features,
            "labels": list(self.labels),
            "slim": not self.can_learn,
        }

    def state(self) -> State:
        """All that is needed to go on. What has been read and not changed is written as it was."""
        return State(self._arrays(), self.description())

    def answer(
        self,
        x: Features,
        k: int = 1,
        candidates: Sequence[Label] | None = None,
        temperature: float | None = None,
    ) -> Answers:
        """The `k` best classes of each sample; with `candidates`, of those, whose probabilities then sum to 1.

        `temperature` is used instead of the method's own.
        """
        columns = None if candidates is None else self.rows(candidates)
        step, found = max(1, TABLE // max(1, len(self.labels))), []
        for start in range(0, len(x), step):
            values, novelty, usual = self.score(x[start : start + step])
            t = usual if temperature is None else temperature
            if columns is not None:
                values = values[:, columns]
            best = top(values, k)
            scores = np.take_along_axis(values, best, axis=1)
            total = sum_of_odds(values, scores[:, 0], t)
            if not np.isfinite(total).all():
                raise ValueError("a score is not finite: the features are too large for this model; scale them")
            odds = np.exp((scores - scores[:, :1]).astype(np.float64) / t) / total[:, None]
            found.append((best if columns is None else columns[best], scores, np.minimum(odds, 1.0), novelty))
        rows, all_scores, odds_of, strange = zip(*found, strict=True)
        novel = None if strange[0] is None else np.concatenate(strange)
        return Answers(np.concatenate(rows), np.concatenate(all_scores), np.concatenate(odds_of), novel)

    def rows(self, labels: Iterable[Label]) -> NDArray[np.int64]:
        """Where classes are in `labels`; ValueError names one that is not known."""
        row = {label: at for at, label in enumerate(self.labels)}
        try:
            return np.array([row[label] for label in labels], dtype=np.int64)
        except KeyError as error:
            raise ValueError(f"unknown class {error.args[0]!r}; {len(row)} classes are known") from None

    def row_to_rename(self, old: Label, new: Label) -> int:
        """Where a class is that is to be called otherwise; ValueError if that name is taken."""
        (row,) = self.rows([old]).tolist()
        if new != old and new in self.labels:
            raise ValueError(f"cannot rename {old!r} to {new!r}: a class of that name exists; forget it first")
        return int(row)

    def random(self) -> np.random.Generator:
        """The random numbers of the state as it is now."""
        return np.random.default_rng([self.seed, self.updates])


class Mergeable(Learner):
    """What is kept are sums over samples, or samples: two learners make the one that had all of them."""

    @abstractmethod
    def empty(self) -> Self:
        """A learner of the same settings and the same space, to be taught elsewhere and merged into this one."""

    @abstractmethod
    def merge(self, *others: Any) -> Self:
        """The learner that had learned what this one and the others have; ValueError says what is in the way."""

    def require_mergeable(self, other: Learner) -> None:
        """Refuse what cannot be merged with this learner, in one line that names both sides of a mismatch."""
        if other.method != self.method:
            raise ValueError(f"a model of the method {self.method} cannot be merged with one of {other.method}")
        for learner in (self, other):
            if not learner.can_learn:
                raise ValueError("a model that was saved slim cannot be merged; take the full model file")
        mine, theirs = self._common(), other._common() if isinstance(other, Mergeable) else {}
        for name, value in mine.items():
            if value != theirs.get(name, value):
                raise ValueError(f"models with different {name} cannot be merged: {value} and {theirs[name]}")

    def _common(self) -> dict[str, Any]:
        """What two learners need to have in common to be merged, by name."""
        own = {name: value for name, value in asdict(self.settings).items() if name != "kept_bits"}
        return own if self.n_features is None else {"numbers of features": self.n_features, **own}


class LeavesOut(Learner):
    """Can say what it would answer to samples that it has just learned, had each in turn not been learned."""

    @property
    def to_calibrate(self) -> bool:
        """Whether so much was learned since that it is time to calibrate anew."""
        return False

    @abstractmethod
    def judged(self, x: Features, y: Sequence[Label]) -> tuple[Self, Scores]:
        """The learner, calibrated if that is due, and the scores of learned samples, each as if not learned."""

    def learn_judged(self, x: Features, y: Sequence[Label], tell: Tell = quiet) -> tuple[Self, Scores]:
        """`learn`, and `judged` of the same samples."""
        return self.learn(x, y, tell).judged(x, y)


class Subtracts(Mergeable):
    """What merging has added can be taken away again."""

    @abstractmethod
    def subtract(self, other: Any) -> Self:
        """The learner that knows what was known before `other` was merged: the classes left, and their samples."""


def sum_of_odds(values: Array, best: Array, temperature: float) -> NDArray[np.float64]:
    """Σ_c exp((score_c - best) / T) of each sample, a few samples at a time, so that their odds stay in the cache."""
    sums = np.empty(len(values))
    step, scale = max(1, CACHE // max(1, values.shape[1])), np.asarray(1 / temperature, values.dtype)
    for start in range(0, len(values), step):
        some = slice(start, start + step)
        odds = values[some] - best[some, None]
        odds *= scale
        sums[some] = np.exp(odds, out=odds).sum(axis=1, dtype=np.float64)
    return sums


def top(values: Array, k: int) -> NDArray[np.int64]:
    """The columns of the `k` largest of each row, largest first: they lie in the `k` groups with the largest of all."""
    n, classes = int(values.shape[0]), int(values.shape[1])
    k = min(k, classes)
    if k == 1:
        return np.asarray(values.argmax(axis=1)[:, None], dtype=np.int64)
    groups = -(-classes // GROUP)
    columns = np.broadcast_to(np.arange(classes), values.shape)
    if groups > 4 * k:
        most = np.maximum.reduceat(values, np.arange(0, classes, GROUP), axis=1)
        best = np.argpartition(-most, k - 1, axis=1)[:, :k]
        columns = (best[:, :, None] * GROUP + np.arange(GROUP)).reshape(n, -1)
        beyond = columns >= classes
        values = np.where(beyond, -np.inf, np.take_along_axis(values, np.minimum(columns, classes - 1), axis=1))
    best = np.argpartition(-values, k - 1, axis=1)[:, :k]
    order = np.argsort(-np.take_along_axis(values, best, axis=1), axis=1, kind="stable")
    chosen: NDArray[np.int64] = np.take_along_axis(columns, np.take_along_axis(best, order, axis=1), axis=1)
    return chosen


def require(config: object, condition: bool, name: str, expected: str) -> None:
    """Refuse an impossible setting by its name."""
    if not condition:
        raise ValueError(f"{name} must be {expected}, not {getattr(config, name)!r}")
