"""Whitened prototypes: the nearest class mean by cosine, the paper's rule, in a space where no direction varies more.

Nothing is trained in an increment, so nothing drifts and the order does not matter; docs/method.md has the symbols.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from engram.learners.base import About, Array, Features, Label, Scores, State, Tell, quiet, require
from engram.learners.layout import Kept, Layout, read_state, whole
from engram.learners.over_sums import SumsLearner
from engram.learners.registry import find_teacher
from engram.stats.calibration import BINS, COLDEST, HOTTEST, Calibration
from engram.stats.sums import Sums
from engram.stats.triangle import DTYPES, Triangle, round_to
from engram.stats.whitening import Space

WIDE, NARROW = 4096, 2048  # where nobody says how wide z may be, features wider than the one are projected to the other
FARTHEST = {16: 65504.0, 32: 1e12, 64: 1e12}  # what z may be, in the unit of the first samples, in so many bits
JUDGED = 2**22  # leave-one-out scores computed at a time
LARGEST_UNIT = 1e30  # of a scatter: it is to be multiplied in single precision


@dataclass(frozen=True)
class WhitenedSettings:
    """Every setting; none has to be touched."""

    transform: Literal["sqrt", "none"] = "sqrt"
    width: int | None = None  # features are projected to so many numbers, at random: less accurate, and small
    kept_bits: Literal[16, 32, 64] = 16

    def __post_init__(self) -> None:
        require(self, self.width is None or self.width > 0, "width", "a number above 0, or None")


@dataclass(frozen=True, eq=False)
class Whitened(SumsLearner):
    """The cosine to class means, after whitening."""

    method: ClassVar[str] = "whitened"
    about: ClassVar[About] = About(
        "Whitened prototypes", "engram, 2026: docs/method.md", "one mean (one scatter for all)", merges=True
    )
    settings_type: ClassVar[type[Any]] = WhitenedSettings
    weighs_features: ClassVar[bool] = True

    settings: WhitenedSettings
    unit: float | None = None  # what z is divided by: near its size, so that 16 bits hold it best; a power of two
    calibration: Calibration = field(default_factory=Calibration)
    recency: float = 0.0  # of files of before: added to the cosine of the classes learned last
    newest: int = 0  # how many these are

    # --- from features to scores ------------------------------------------------------------------------------------

    def project(self, x: Features) -> Array:
        """z: √x, the sign kept where features may be negative, projected where x is very wide."""
        z: Array = x.astype(np.float64 if self.settings.kept_bits == 64 else np.float32)
        if self.settings.transform == "sqrt":
            z = np.copysign(np.sqrt(np.abs(z)), z)
        if (width := self._width(x.shape[1])) < x.shape[1]:
            from engram.stats import projection

            z = z @ projection.signs(x.shape[1], width, self.seed).astype(z.dtype)
        if self.unit is not None:
            z = z / np.asarray(self.unit, z.dtype)
        return z

    def _width(self, features: int) -> int:
        """How wide z is."""
        widest, left = (self.settings.width,) * 2 if self.settings.width else (WIDE, NARROW)
        return left if features > widest else features

    @cached_property
    def space(self) -> Space:
        """Where samples are compared."""
        if self.sums is None or not self.labels:
            raise ValueError("no class is known; call learn first")
        return Space.of(self.sums)

    def prepare(self) -> None:
        """Compute the space."""
        if self.labels:
            _ = self.space.lengths, self.space.spread

    def score(self, x: Features) -> Scores:
        """Cosines and novelty, from one product."""
        cosines, novelty = self.space.compare(self.space.whiten(self.project(x)))
        if self.recency:
            cosines[:, len(self.labels) - self.newest :] += self.recency
        return Scores(cosines, novelty, self.calibration.temperature)

    # --- learning ---------------------------------------------------------------------------------------------------

    def learn(self, x: Features, y: Sequence[Label], tell: Tell = quiet) -> Self:
        """The learner that has learned one task more."""
        return self._learned(x, y)[0]

    def learn_judged(self, x: Features, y: Sequence[Label], tell: Tell = quiet) -> tuple[Self, Scores]:
        """Both from one mapping."""
        after, z = self._learned(x, y)
        return after._judged(z, y)

    def _learned(self, x: Features, y: Sequence[Label]) -> tuple[Self, Array]:
        """The learner that has learned one task more, and z of its samples."""
        self._require_learning()
        unit, z = self.unit, self.project(x)
        if unit is None:
            rms = float(np.sqrt(np.square(z, dtype=np.float64).mean()))
            unit = 2.0 ** round(np.log2(rms)) if rms > 0 else 1.0
            z /= np.asarray(unit, z.dtype)
        if not max(z.max(), -z.min()) <= FARTHEST[self.settings.kept_bits]:
            raise ValueError("these features are too far from those learned before to be kept; scale them alike")
        after = replace(self._with(Sums.of(z, y), x.shape[1]), unit=unit)
        return replace(after, newest=len(after.labels) - len(self.labels) if self.labels else 0), z

    def forget(self, label: Label) -> Self:
        """Drop count and mean of a class."""
        newest = self.newest - (len(self.labels) - int(self.rows([label])[0]) <= self.newest)
        return replace(super().forget(label), newest=newest)

    @property
    def to_calibrate(self) -> bool:
        """Whether there are a tenth more samples than the last time, and of a class more than one."""
        counts = np.zeros(0) if self.sums is None else self.sums.counts
        return len(counts) > 1 and counts.max() > 1 and self.calibration.is_due(int(counts.sum()))

    def judged(self, x: Features, y: Sequence[Label]) -> tuple[Self, Scores]:
        """Calibrated, if there are a tenth more samples than the last time, and what it would say to these."""
        return self._judged(self.project(x), y)

    def _judged(self, z: Array, y: Sequence[Label]) -> tuple[Self, Scores]:
        own = self._own(y)
        step = max(1, JUDGED // len(self.labels))
        parts = [slice(start, start + step) for start in range(0, len(z), step)]
        found = [self.space.left_out(self.space.whiten(z[part]), own[part]) for part in parts]
        values, novelty = (np.concatenate(one) for one in zip(*found, strict=True))
        several, total = self.space.counts[own] > 1, int(self.space.counts.sum())
        if not (self.to_calibrate and several.any()):
            return self, Scores(values, novelty, self.calibration.temperature)
        # Without its only sample a class would be gone.
        fit = self.calibration.after(total, values[several], novelty[several], own[several])
        after = replace(self, calibration=fit)
        vars(after)["space"] = self.space  # the same, and not to be made again
        return after, Scores(values, novelty, fit.temperature)

    def unknown_above(self, share: float) -> float | None:
        """The novelty that this share of learned samples exceeds, each judged as if it had not been learned."""
        return self.calibration.threshold(share)

    def class_vectors(self) -> Array | None:
        """The class means in the whitened space, where their angles tell."""
        return self.space.means.astype(np.float32) if self.labels else None

    # --- adding, taking away, keeping -------------------------------------------------------------------------------

    def _common(self) -> dict[str, Any]:
        projected = self._width(self.n_features or 0) < (self.n_features or 0)
        return super()._common() | ({"seeds of the projection": self.seed} if projected else {})

    def merge(self, *others: Self) -> Self:
        """What all of them have learned, in the largest of their units: powers of two, so nothing is rounded."""
        several = (self, *others)
        for other in others:
            self.require_mergeable(other)
        unit = max((one.unit for one in several if one.unit is not None), default=None)
        merged = super(Whitened, self._in_unit(unit)).merge(*(one._in_unit(unit) for one in others))
        return replace(merged, calibration=Calibration.united([one.calibration for one in several]), newest=0)

    def subtract(self, other: Self) -> Self:
        """Without what merging `other` added. The calibration stays, and is measured anew with the next samples."""
        self.require_mergeable(other)
        rest = super().subtract(other._in_unit(self.unit))
        kept = set(rest.labels)
        newest = sum(label in kept for label in self.labels[len(self.labels) - self.newest :])
        return replace(rest, calibration=self.calibration.outdated(), newest=newest)

    def _in_unit(self, unit: float | None) -> Self:
        if unit is None or self.unit in (None, unit):
            return replace(self, unit=unit)
        return replace(self, unit=unit, sums=self.sums and self.sums.scaled(self.unit / unit))

    def empty(self) -> Self:
        """A learner of the same settings and the same space that knows nothing."""
        exact = replace(self.settings, kept_bits=max(32, self.settings.kept_bits))
        return replace(super().empty(), settings=exact, calibration=Calibration(), newest=0)

    def _arrays(self) -> dict[str, Array]:
        if self.sums is None or self.sums.scatter is None or self.unit is None:
            return {}
        sums, bits, random = self.sums, self.settings.kept_bits, self.random()
        means = round_to(sums.means, bits, random)
        scatter = self.sums.scatter.rounded(bits, self.updates, sums.samples, random)
        exact = DTYPES[64 if bits == 64 else 32]
        arrays = {
            "network.unit": np.array(self.unit, exact),
            "classes.counts": sums.counts.astype(np.int32),
            "classes.means": means,
            "consolidation.scatter": scatter.packed,
            "consolidation.unit": np.array(scatter.unit),
            "consolidation.samples": np.array(sums.samples),
            "consolidation.newest": np.array(self.newest),
        }
        if self.calibration.known is not None:
            arrays["consolidation.calibration"] = self.calibration.packed()
        return arrays

    def description(self) -> dict[str, Any]:
        """What a state says beside its arrays."""
        described = super().description()
        return described | {"config": described["config"] | ({"recency": self.recency} if self.recency else {})}

    @classmethod
    def _layout(cls, settings: WhitenedSettings, classes: int, width: int) -> Layout:
        bits = settings.kept_bits
        formats = (DTYPES[bits], np.float32) if bits == 16 else (DTYPES[bits],)  # the scatter may need more
        least, most = np.zeros(3 + BINS), np.full(3 + BINS, np.inf)
        least[2], most[2] = np.log(COLDEST), np.log(HOTTEST)
        return {
            "network.unit": Kept((), (np.float32, np.float64)),
            "classes.counts": Kept((classes,), (np.int32,), least=1),
            "classes.means": Kept((classes, width), (DTYPES[bits],)),
            # Its mean diagonal is 1, so no entry is beyond its width.
            "consolidation.scatter": Kept((-(-width // 2), width + 1), formats, -2 * width, 2 * width),
            "consolidation.unit": Kept((), (np.float64,), 0, LARGEST_UNIT),
            "consolidation.samples": whole(least=1),
            "consolidation.newest": whole(most=classes, optional=True),
            "consolidation.calibration": Kept((3 + BINS,), (np.float64,), least, most, optional=True),
        }

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The learner a state was taken from."""
        meta = state.meta
        given, recency = dict(meta["config"]), float(meta["config"].get("recency", 0.0))
        known = {field.name for field in fields(cls.settings_type)}
        if (
            "encoder" not in known and given.get("encoder") is not None
        ):  # as in files of before; takes the extra `paper`
            return find_teacher("whitened-encoder").from_state(state)  # type: ignore[return-value]
        given = {name: value for name, value in given.items() if name in known or name not in ("encoder", "recency")}
        learner = cls(cls.configure(given), meta["seed"], meta["tasks_learned"], meta["n_features"], recency=recency)
        width = learner._width(meta["n_features"] or 0)
        arrays = read_state(state, cls._layout(learner.settings, len(meta["labels"]), width))
        if not arrays:
            return learner
        scatter = Triangle(
            arrays["consolidation.scatter"], float(arrays["consolidation.unit"]), is_rounded=True
        )  # fmt: skip
        counts, samples = arrays["classes.counts"].astype(np.int64), int(arrays["consolidation.samples"])
        sums = Sums(tuple(meta["labels"]), counts, arrays["classes.means"], scatter, samples)
        fit = Calibration.unpacked(arrays.get("consolidation.calibration"))
        newest = int(arrays.get("consolidation.newest", 0))
        return replace(learner, sums=sums, unit=float(arrays["network.unit"]), calibration=fit, newest=newest)
