"""Whitened prototypes beside the encoder's own head: classes that were taught and those of ImageNet, on one scale.

The head gives p(k | x) for its outputs, the prototypes p(j | x) for classes that were taught. What joins them is γ(x),
how likely a picture is of a taught class, by what the head says to it: √p, compared with the mean √p of each class.
docs/imagenet.md has the equations, and what they were measured to do.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from engram.learners.base import (
    About,
    Array,
    Features,
    Label,
    Learner,
    LeavesOut,
    Mergeable,
    Scores,
    State,
    Tell,
    quiet,
)
from engram.learners.layout import Kept, Layout, require_layout
from engram.learners.whitened import Whitened, WhitenedSettings
from engram.stats.normal import below

HEAD, BESIDE = "network.imagenet.", ("classes.said", "consolidation.alike")
LOST = 0.02  # the share of pictures of taught classes that one is ready to lose to ImageNet's
BINS = 128  # of the histogram of likeness
USUAL, SPREAD, DOUBT = 0.75, 0.15, 5.0  # likeness, its deviation, and how many samples are thought to have it


@dataclass(frozen=True, eq=False)
class Head:
    """A linear layer over the last of the features; an output without a name was forgotten, or is taught."""

    weight: NDArray[np.float16]
    bias: NDArray[np.float32]
    outputs: tuple[Label | None, ...]

    def say(self, x: Features) -> Array:
        """log p(k | x) of every output."""
        logits = x[:, -self.weight.shape[1] :] @ self.weight.T.astype(np.float32)
        logits += self.bias
        return _log_softmax(logits)

    def hide(self, names: Iterable[Label]) -> Self:
        """Without some names."""
        gone = set(names)
        return replace(self, outputs=tuple(None if name in gone else name for name in self.outputs))

    @property
    def shown(self) -> NDArray[np.int64]:
        """The outputs that have a name."""
        return np.array([row for row, name in enumerate(self.outputs) if name is not None], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class BesideImageNet(Mergeable, LeavesOut):
    """log γ + log p(j | x) for a class that was taught, log(1 - γ) + log p(k | x) for one of the head."""

    method: ClassVar[str] = "imagenet"
    about: ClassVar[About] = About(
        "Whitened prototypes beside ImageNet's classes",
        "engram, 2026: docs/imagenet.md",
        "one mean vector, what the head says on average (and one scatter for all)",
        given="the encoder's own head, as engram new --imagenet does",
        merges=True,
    )
    settings_type: ClassVar[type[Any]] = WhitenedSettings
    weighs_features: ClassVar[bool] = True

    taught: Whitened = field(default_factory=lambda: Whitened(WhitenedSettings()))
    head: Head | None = None
    said: NDArray[np.float16] | None = None  # (taught classes, outputs), the mean √p of each class
    alike: Array = field(default_factory=lambda: np.zeros(BINS))  # how many samples were how like their class

    @classmethod
    def new(cls, settings: Any = None, *, seed: int = 0) -> Self:
        """A learner that knows nothing."""
        made = super().new(settings, seed=seed)
        return replace(made, taught=Whitened(made.settings, seed))

    def adopt(self, names: Sequence[Label], weight: Array, bias: Array, n_features: int) -> Self:
        """The learner that knows the classes of a head, before anything is taught."""
        head = Head(weight.astype(np.float16), bias.astype(np.float32), tuple(names))
        return replace(self, head=head, n_features=n_features)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The classes taught, in that order, and then those of the head."""
        return (*self.taught.labels, *self.built_in)

    @property
    def built_in(self) -> tuple[Label, ...]:
        """The classes of the head."""
        return () if self.head is None else tuple(name for name in self.head.outputs if name is not None)

    # --- answering --------------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Compute the space of the classes taught."""
        self.taught.prepare()

    def score(self, x: Features) -> Scores:
        """Logarithms of probabilities; beside a head nothing is told of the unknown."""
        if self.head is None:
            return self.taught.score(x)
        said = self.head.say(x)
        if not self.taught.labels:
            return Scores(said[:, self.head.shown], None, 1.0)
        cosines, _, temperature = self.taught.score(x)
        return self._joined(said, cosines / np.float32(temperature), (np.exp(said / 2) @ self.directions.T).max(axis=1))

    @property
    def directions(self) -> Array:
        """m_c / ‖m_c‖ with m_c the mean √p of class c: √p times it is 1 where the head says what it says to c."""
        assert self.said is not None
        means = self.said.astype(np.float32)
        directions: Array = means / np.linalg.norm(means, axis=1, keepdims=True)
        return directions

    def _joined(self, said: Array, logits: Array, likeness: Array) -> Scores:
        """Both on one scale. What the head gives to names that are answers no more is left to all others."""
        assert self.head is not None
        odds = np.log(self._less_alike(likeness) / LOST)[:, None].astype(np.float32)
        taught = _log_softmax(logits) - np.logaddexp(0, -odds)
        return Scores(np.concatenate([taught, said[:, self.head.shown] - np.logaddexp(0, odds)], axis=1), None, 1.0)

    def _less_alike(self, likeness: Array) -> Array:
        """F: the share of pictures of taught classes that are less alike, from a histogram whose bins are smoothed."""
        n = self.alike.sum()
        middles = (np.arange(BINS) + 0.5) / BINS
        width = SPREAD * (1 + n) ** -0.2
        seen = below((likeness[:, None] - middles) / width) @ self.alike
        share: Array = (seen + DOUBT * below((likeness - USUAL) / SPREAD)) / (n + DOUBT)
        return share

    def unknown_above(self, share: float) -> float | None:
        """None beside a head: no picture of ImageNet is there to tell what its classes look like at their least."""
        return None if self.head else self.taught.unknown_above(share)

    # --- learning ---------------------------------------------------------------------------------------------------

    def learn(self, x: Features, y: Sequence[Label], tell: Tell = quiet) -> Self:
        """The learner that has learned one task more. A class of the head that is taught is the taught one."""
        taught = self.taught.learn(x, y, tell)
        after = replace(self, taught=taught, updates=self.updates + 1, n_features=x.shape[1])
        if self.head is None or taught.sums is None:
            return after
        roots, counts = np.exp(self.head.say(x) / 2), taught.sums.counts
        sums = np.zeros((len(counts), roots.shape[1]), np.float32)
        if self.said is not None and self.taught.sums is not None:
            sums[: len(self.said)] = self.said * self.taught.sums.counts[:, None].astype(np.float32)
        own = taught._own(y)
        np.add.at(sums, own, roots)
        said = (sums / counts[:, None]).astype(np.float16)
        likeness = _likeness_left_out(roots, own, said.astype(np.float32), counts)
        found, _ = np.histogram(likeness[counts[own] > 1], BINS, (0, 1))
        return replace(after, said=said, alike=self.alike + found, head=self.head.hide(taught.labels))

    @property
    def to_calibrate(self) -> bool:
        """Whether what was taught is to be."""
        return self.taught.to_calibrate

    def judged(self, x: Features, y: Sequence[Label]) -> tuple[Self, Scores]:
        """Calibrated among taught classes, and what it would say to these samples."""
        taught, scores = self.taught.judged(x, y)
        after = replace(self, taught=taught)
        if self.head is None or self.said is None or taught.sums is None:
            return after, scores
        said = self.head.say(x)
        means, counts = self.said.astype(np.float32), taught.sums.counts
        alike = _likeness_left_out(np.exp(said / 2), taught._own(y), means, counts)
        return after, self._joined(said, scores.values / np.float32(scores.temperature), alike)

    # --- what is known ----------------------------------------------------------------------------------------------

    def counts(self) -> NDArray[np.int64] | None:
        """Samples of each class; none of those of the head."""
        taught = self.taught.counts()
        kept = np.zeros(0, np.int64) if taught is None else taught
        return taught if self.head is None else np.concatenate([kept, np.zeros(len(self.built_in), np.int64)])

    def class_vectors(self) -> Array | None:
        """Where classes of the head lie nobody knows."""
        vectors = self.taught.class_vectors()
        if vectors is None or self.head is None:
            return vectors
        return np.concatenate([vectors, np.full((len(self.built_in), vectors.shape[1]), np.nan, np.float32)])

    def forget(self, label: Label) -> Self:
        """Without a class. One of the head is an answer no more; its weights stay, to tell others apart by."""
        if self.head is not None and label in self.built_in:
            return replace(self, head=self.head.hide([label]))
        (row,) = self.rows([label]).tolist()
        said = None if self.said is None else np.delete(self.said, row, axis=0)
        return replace(self, taught=self.taught.forget(label), said=said)

    def rename(self, old: Label, new: Label) -> Self:
        """The learner with another name for a class."""
        self.row_to_rename(old, new)
        if self.head is not None and old in self.built_in:
            outputs = tuple(new if name == old else name for name in self.head.outputs)
            return replace(self, head=replace(self.head, outputs=outputs))
        return replace(self, taught=self.taught.rename(old, new))

    def _common(self) -> dict[str, Any]:
        return self.taught._common() | super()._common()

    def require_mergeable(self, other: Learner) -> None:
        """Refuse what cannot be merged, also a model with another head, or with none."""
        super().require_mergeable(other)
        mine, theirs = self.head, other.head if isinstance(other, BesideImageNet) else None
        if (mine is None) != (theirs is None) or (
            mine is not None
            and theirs is not None
            and not (np.array_equal(mine.weight, theirs.weight) and np.array_equal(mine.bias, theirs.bias))
        ):
            raise ValueError("models with ImageNet's classes from different networks cannot be merged")

    def merge(self, *others: Self) -> Self:
        """What all have learned. A class of the head stays an answer if it is one in all of them."""
        for other in others:
            self.require_mergeable(other)
        several = (self, *others)
        taught = self.taught.merge(*(one.taught for one in others))
        updates = sum(one.updates for one in several)
        n_features = next((one.n_features for one in several if one.n_features is not None), None)
        merged = replace(self, taught=taught, updates=updates, n_features=n_features, seed=taught.seed)
        if self.head is None or taught.sums is None:
            return merged
        sums = np.zeros((len(taught.labels), len(self.head.outputs)), np.float32)
        for one in several:
            if one.said is not None and one.taught.sums is not None:
                sums[taught.rows(one.taught.labels)] += one.said * one.taught.sums.counts[:, None].astype(np.float32)
        gone = [[name is None for name in one.head.outputs] for one in several if one.head is not None]
        hidden = np.any(gone, axis=0)
        outputs = tuple(None if hide else name for hide, name in zip(hidden, self.head.outputs, strict=True))
        said = (sums / taught.sums.counts[:, None]).astype(np.float16)
        alike = np.sum([one.alike for one in several], axis=0)
        head = replace(self.head, outputs=outputs).hide(taught.labels)
        return replace(merged, said=said, alike=alike, head=head)

    def empty(self) -> Self:
        """A learner with the same head that was taught nothing."""
        return replace(self, taught=self.taught.empty(), said=None, alike=np.zeros(BINS), updates=0)

    def description(self) -> dict[str, Any]:
        """What a state says beside its arrays."""
        outputs = [] if self.head is None else list(self.head.outputs)
        return super().description() | {"labels": list(self.taught.labels), "outputs": outputs}

    def _arrays(self) -> dict[str, Array]:
        arrays = self.taught._arrays()
        if self.head is not None:
            arrays |= {f"{HEAD}weight": self.head.weight, f"{HEAD}bias": self.head.bias}
        if self.said is not None:
            arrays |= {"classes.said": self.said, "consolidation.alike": self.alike}
        return arrays

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The learner a state was taken from."""
        own = {name: array for name, array in state.arrays.items() if name.startswith((HEAD, *BESIDE))}
        rest = {name: array for name, array in state.arrays.items() if name not in own}
        taught, names = Whitened.from_state(State(rest, state.meta)), tuple(state.meta["outputs"])
        classes = len(taught.labels)
        head: Layout = {f"{HEAD}bias": Kept((len(names),))} if names else {}
        if names:  # it is applied to the last of the features
            inputs = own[f"{HEAD}weight"].shape[-1] if f"{HEAD}weight" in own else 0
            head[f"{HEAD}weight"] = Kept((len(names), min(inputs, taught.n_features or inputs)), (np.float16,))
        beside: Layout = {"classes.said": Kept((classes, len(names)), (np.float16,), 0, 1)}
        beside |= {"consolidation.alike": Kept((BINS,), (np.float64,), 0)}
        require_layout(own, head | (beside if names and taught.updates else {}))
        learner = cls(taught.settings, taught.seed, taught.updates, taught.n_features, taught)
        if not names:
            return learner
        read = Head(own[f"{HEAD}weight"], own[f"{HEAD}bias"], names)
        alike = own.get("consolidation.alike", np.zeros(BINS))
        return replace(learner, head=read, said=own.get("classes.said"), alike=alike)


def _log_softmax(logits: Array) -> Array:
    gaps: Array = logits - logits.max(axis=1, keepdims=True)
    gaps -= np.log(np.exp(gaps).sum(axis=1, keepdims=True))
    return gaps


def _likeness_left_out(roots: Array, own: Array, means: Array, counts: Array) -> Array:
    """The largest likeness of each sample, its own class without it: m becomes (n·m - √p) / (n - 1)."""
    products, n, rows = roots @ means.T, counts[own].astype(roots.dtype), np.arange(len(roots))
    alike, inner = products / np.linalg.norm(means, axis=1), products[rows, own]
    length = np.sqrt(np.maximum(n**2 * np.square(means).sum(axis=1)[own] - 2 * n * inner + 1, 1e-12))
    alike[rows, own] = np.where(n > 1, (n * inner - 1) / length, 0.0)
    best: Array = alike.max(axis=1)
    return best
