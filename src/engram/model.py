"""A model: a learner, which encoder its features are of, and what is recorded of its classes.

A value: whatever changes it makes another one, so threads may share it, and a change that fails changes nothing.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engram.encoders.recorded import RecordedEncoder
from engram.errors import ModelFileError
from engram.files import model_file
from engram.history import Notes
from engram.learners import registry
from engram.learners.base import (
    Answers,
    Features,
    Label,
    Learner,
    LeavesOut,
    Mergeable,
    Scores,
    State,
    Subtracts,
    Tell,
    quiet,
)
from engram.learners.registry import MissingMethodError
from engram.names import require_name
from engram.settings import plain, require_kind

if TYPE_CHECKING:
    from engram.encoders.base import Encoder

DEFAULT_METHOD = "whitened"

# Sums of squares of features are in single precision: with these, over any data set, the sums are finite.
LARGEST_FEATURE = 1e12


class Suspect(NamedTuple):
    """A sample whose label looks wrong: its position, what the others say it is, and how likely that is."""

    position: int
    answer: Label
    probability: float


@dataclass(frozen=True)
class Judgement:
    """What a model would say to samples it has just learned, had each in turn not been learned; (n,) each.

    `judged` is False where a sample is the only one of its class, which would then be no answer.
    """

    answers: list[Label]
    probabilities: NDArray[np.float64]
    judged: NDArray[np.bool_]

    def suspects(self, y: Sequence[Label]) -> list[Suspect]:
        """The samples that would be taken for another class than their label, the surest first."""
        wrong = [i for i, said in enumerate(self.answers) if said != y[i] and self.judged[i]]
        wrong.sort(key=lambda i: -self.probabilities[i])
        return [Suspect(i, self.answers[i], float(self.probabilities[i])) for i in wrong]


@dataclass(frozen=True, eq=False)
class Model:
    """What is taught, asked, saved and loaded."""

    learner: Learner
    encoder: RecordedEncoder | None = None  # None: it was taught feature vectors
    notes: Notes = field(default_factory=Notes)
    temperature: float | None = None  # used instead of the method's own
    feature_names: tuple[str, ...] | None = None

    @classmethod
    def new(
        cls,
        method: str = DEFAULT_METHOD,
        settings: Mapping[str, Any] | None = None,
        *,
        encoder: RecordedEncoder | None = None,
        seed: int = 0,
    ) -> Self:
        """A model that knows nothing."""
        return cls(registry.find(method).new(settings, seed=seed), encoder)

    # --- what it knows ------------------------------------------------------------------------------------------------

    @property
    def method(self) -> str:
        """The name of the method."""
        return self.learner.method

    @property
    def built_in(self) -> list[Label]:
        """The classes that nobody taught: the encoder's own head knows them."""
        return list(self.learner.built_in)

    @property
    def labels(self) -> list[Label]:
        """The classes that were taught, in the order they were learned."""
        built_in = set(self.learner.built_in)
        return [label for label in self.learner.labels if label not in built_in]

    @property
    def names(self) -> list[str]:
        """The classes that were taught, as text."""
        return [str(label) for label in self.labels]

    def label(self, name: str) -> Label:
        """The class of this name, taught or built in; ValueError if there is none."""
        known = {str(label): label for label in self.learner.labels}
        if name not in known:
            shown = ", ".join(list(known)[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
            raise ValueError(f"the model knows no class {name!r}; it knows {shown or 'none'}")
        return known[name]

    def as_label(self, name: str) -> Label:
        """The label to learn a class of this name under: a number where the model's classes are numbers."""
        if any(isinstance(label, int) for label in self.labels):
            try:
                return int(name)
            except ValueError:
                raise ValueError(f"the model's classes are numbers, and {name!r} is none") from None
        return name

    def pictures(self) -> dict[str, int | None]:
        """How many pictures each taught class was learned from; None where the method does not count them."""
        counts = self.learner.counts()
        known = {} if counts is None else dict(zip(self.learner.labels, counts.tolist(), strict=True))
        return {str(label): known.get(label) for label in self.labels}

    def class_vectors(self) -> NDArray[np.float32] | None:
        """One vector for each of `labels`, which says where it lies among the others; None if there is none."""
        vectors = self.learner.class_vectors()
        return None if vectors is None else vectors[: len(self.labels)]

    @property
    def leaves_out(self) -> bool:
        """Whether it can judge samples it has just learned as if they had not been learned."""
        return bool(self.learner.described()["leaves_out"])

    @property
    def tells_unknown(self) -> bool:
        """Whether the method can reject unknown inputs, once it has learned enough."""
        return bool(self.learner.described()["tells_unknown"])

    def describe_unknown(self) -> dict[str, Any] | None:
        """What is unknown unless one asks for something else; None where nothing is told of that."""
        above = self.unknown_above()
        return None if above is None else {"below": -above, "share": self.notes.refuse}

    def unknown_above(self, share: float | None = None) -> float | None:
        """The novelty that this share of known samples exceeds, that in the notes if none is given; None if unknown."""
        return self.learner.unknown_above(self.notes.refuse if share is None else share)

    def open_encoder(self, device: str = "auto") -> "Encoder":
        """The encoder of its pictures; ValueError if it was taught feature vectors."""
        if self.encoder is None:
            raise ValueError("the model was taught feature vectors, and cannot look at pictures")
        return self.encoder.open(device)

    def with_encoder_of(self, known: "Model") -> Self:
        """The model with the encoder that another has opened, if it is the same."""
        mine, theirs = self.encoder, known.encoder
        if mine is None or theirs is None or mine.identity != theirs.identity:
            return self
        return replace(self, encoder=theirs)

    # --- asking and teaching ------------------------------------------------------------------------------------------

    def answer(self, x: ArrayLike, k: int = 1, candidates: Iterable[Label] | None = None) -> Answers:
        """The `k` best classes of each sample, best first; with `candidates`, of those."""
        features = self.checked(x)
        if not self.learner.labels:
            raise ValueError("every class has been forgotten; teach one first")
        return self.learner.answer(features, k, self.candidates(candidates), self.temperature)

    def candidates(self, labels: Iterable[Label] | None) -> list[Label] | None:
        """The classes to choose from, each once; ValueError names those that are not known."""
        if labels is None:
            return None
        chosen, known = list(dict.fromkeys(map(plain, labels))), set(self.learner.labels)
        if strangers := [label for label in chosen if label not in known]:
            raise ValueError(f"among holds classes that are not known: {', '.join(map(repr, strangers))}")
        if not chosen:
            raise ValueError("among holds no class")
        return chosen

    def learn(
        self, x: ArrayLike, y: Iterable[Any], tell: Tell = quiet, *, judge: bool = True
    ) -> tuple[Self, Judgement | None]:
        """The model that has learned one task more, and what leave-one-out says of these samples.

        None for a method that cannot tell. Without `judge` that is computed where calibrating takes it alone.
        """
        features, labels = self.checked(x), checked_labels(y, self.learner.labels)
        if len(labels) != len(features):
            raise ValueError(f"there are {len(features)} samples and {len(labels)} labels")
        for label in set(labels).difference(self.learner.labels):
            if isinstance(label, str):
                require_name(label)
        if judge and isinstance(self.learner, LeavesOut):
            return self._judgement(labels, *self.learner.learn_judged(features, labels, tell))
        after = replace(self, learner=self.learner.learn(features, labels, tell))
        due = isinstance(after.learner, LeavesOut) and after.learner.to_calibrate
        return (after.judged(features, labels)[0], None) if due else (after, None)

    def judged(self, x: ArrayLike, y: Sequence[Label]) -> tuple[Self, Judgement | None]:
        """The model, calibrated if that is due, and what it would say to learned samples had it not learned them."""
        if not (isinstance(self.learner, LeavesOut) and self.learner.can_learn):
            return self, None
        return self._judgement(y, *self.learner.judged(self.checked(x), y))

    def _judgement(self, y: Sequence[Label], learner: Learner, scores: Scores) -> tuple[Self, Judgement]:
        best = scores.values.argmax(axis=1)
        odds = np.exp((scores.values - scores.values.max(axis=1, keepdims=True)) / np.float32(scores.temperature))
        counts = learner.counts()
        known = np.ones(len(best), bool) if counts is None else counts[learner.rows(y)] > 1
        judgement = Judgement([learner.labels[row] for row in best], 1 / odds.sum(axis=1, dtype=np.float64), known)
        return replace(self, learner=learner), judgement

    def forget(self, label: Label) -> Self:
        """The model without a class."""
        return replace(self, learner=self.learner.forget(label))

    def rename(self, old: Label, new: Label) -> Self:
        """The model with another name for a class."""
        checked_labels([new], [label for label in self.learner.labels if label != old])
        if isinstance(new, str):
            require_name(new)
        return replace(self, learner=self.learner.rename(old, new))

    def require_mergeable(self, other: "Model") -> None:
        """Refuse a model that cannot be merged with this one, in one line that names what is in the way."""
        mine, theirs = (
            model.encoder.identity if model.encoder else "none, but feature vectors" for model in (self, other)
        )
        if mine != theirs:
            raise ValueError(f"models with different backbones cannot be merged: {mine} and {theirs}")
        self._mergeable().require_mergeable(other.learner)

    def _mergeable(self) -> Mergeable:
        if not isinstance(self.learner, Mergeable):
            raise ValueError(
                f"models of the method {self.method} cannot be merged: what they keep is no sum over samples, "
                "but depends on what was learned together and in which order"
            )
        return self.learner

    def merge(self, *others: "Model") -> Self:
        """The model that had learned what this one and the others have. Classes of one name become one."""
        for other in others:
            self.require_mergeable(other)
        several: tuple[Model, ...] = (self, *others)
        known = {label for model in several for label in model.learner.labels}
        checked_labels(known)
        for label in known.difference(self.learner.built_in):
            if isinstance(label, str):
                require_name(label)
        return replace(self, learner=self._mergeable().merge(*(other.learner for other in others)), notes=Notes())

    def subtract(self, other: "Model") -> Self:
        """The model that knows what was known before `other` was merged. Classes without a sample left are gone."""
        self.require_mergeable(other)
        if not isinstance(self.learner, Subtracts):
            raise ValueError(f"from a model of the method {self.method} nothing can be taken away")
        return replace(self, learner=self.learner.subtract(other.learner), notes=Notes())

    def empty(self) -> Mergeable:
        """A learner to teach elsewhere, whose sums `absorb` adds."""
        return self._mergeable().empty()

    def absorb(self, *taught: Learner) -> Self:
        """The model that knows what `empty` learners were taught elsewhere."""
        return replace(self, learner=self._mergeable().merge(*taught))

    # --- checking -----------------------------------------------------------------------------------------------------

    def checked(self, x: ArrayLike) -> Features:
        """Features as learners take them; ValueError says what is wrong with them."""
        try:
            features = np.ascontiguousarray(x, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise ValueError(f"X must be a table of numbers: {error}") from None
        if features.ndim != 2 or not features.size:
            raise ValueError(f"X must be a table of numbers with at least one row, and has the shape {features.shape}")
        if self.learner.n_features not in (None, features.shape[1]):
            raise ValueError(
                f"X has {features.shape[1]} features per sample, but the model was trained on "
                f"{self.learner.n_features}; extract them with the same backbone"
            )
        largest = max(features.max(), -features.min())
        if not largest <= LARGEST_FEATURE:  # not a number is no more at most this than infinity is
            raise ValueError(
                f"X holds {largest:g}; features are finite and at most {LARGEST_FEATURE:g} in size: scale the "
                f"features, as sklearn.preprocessing.StandardScaler does, or take out what is wrong"
            )
        return features

    # --- the model file -----------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, atomically."""
        state = self.learner.state()
        header: dict[str, Any] = {
            "method": self.method,
            "learner": state.meta,
            "about": self.learner.described(),
            "backbone": None if self.encoder is None else self.encoder.as_json(),
            "estimator": {"temperature": self.temperature},
            "notes": self.notes.as_json(),
        }
        if self.feature_names is not None:
            header["feature_names"] = list(self.feature_names)
        model_file.write(path, state.arrays, header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model file; going on from it equals never having saved, up to rounding.

        What only earlier versions kept, examples to check with and lessons to take back, is left out. A model whose
        method is not here can be looked at; what only the method can do says that it is missing.
        """
        arrays, header = model_file.read(path)
        try:
            kept = {name: array for name, array in arrays.items() if not name.startswith(("examples.", "lessons."))}
            learner = _learner_of(header, State(kept, header["learner"]))
            temperature = header["estimator"].get("temperature")
            require_temperature(temperature)
            names, described = header.get("feature_names"), header["backbone"]
            if names is not None and (
                not isinstance(names, list)
                or len(names) != learner.n_features
                or not all(isinstance(n, str) for n in names)
            ):
                raise ValueError(f"the names of its features are not {learner.n_features} texts")
            encoder = None if described is None else RecordedEncoder.from_json(described)
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            reason = model_file.one_line(error)
            raise ModelFileError(f"{path} is not a model this version can use: {reason}") from error
        notes = Notes.from_json(header.get("notes", {}), path)  # files of before there were notes have none
        return cls(learner, encoder, notes, temperature, None if names is None else tuple(names))


def _learner_of(header: Mapping[str, Any], state: State) -> Learner:
    try:
        return registry.find(header["method"]).from_state(state)
    except MissingMethodError as error:
        from engram.learners.absent import Absent

        return Absent.of(header["method"], state, header.get("about"), str(error))


def require_temperature(given: Any) -> None:
    """ValueError if it is no number to divide by; None is the method's own."""
    if given is not None:
        require_kind("temperature", given, float)
        if given <= 0:
            raise ValueError(f"temperature must be a number above 0, or None, not {given!r}")


def checked_labels(y: Iterable[Any], known: Iterable[Label] = ()) -> list[Label]:
    """Labels, all str or all int, as those known are; whole floats, which is how some tools hand over ints, as ints."""
    labels = [int(v) if isinstance(v, float) and v.is_integer() else v for v in map(plain, y)]
    kinds = {type(label) for label in labels} | {type(label) for label in known}
    if not kinds <= {str, int}:
        strange = next(label for label in labels if type(label) not in (str, int))
        raise ValueError(f"a label must be a str or an int, but {strange!r} is a {type(strange).__name__}")
    if len(kinds) > 1:
        raise ValueError("labels mix str and int; give them all as str, or all as int, as the model's classes are")
    return labels
