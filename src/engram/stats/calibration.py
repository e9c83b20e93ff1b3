"""What leave-one-out scores say about a softmax and about the unknown, kept as a few numbers that follow the model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

GROWTH = 1.1  # samples now over samples when calibrated last, from which on it is done again
MEMORY = 0.9  # weight of all earlier calibrations beside a new one: the space they were measured in has moved on
BINS, WIDEST = 512, 10.0  # of the histogram of novelty, over its inverse hyperbolic sine: fine near 0, and far
USUAL, DOUBT = 0.03, 5.0  # a temperature to start from, and how many wrong answers it takes to leave it
TABLE, FEWEST = 2**22, 256  # scores that are looked at most, and samples at least: so it is linear in classes
COLDEST, HOTTEST, STEPS = 1e-3, 1.0, 40


@dataclass(frozen=True, eq=False)
class Calibration:
    """A temperature and a histogram of known samples' novelty, each judged as if it had not been learned."""

    samples: float = 0.0  # there were when it was measured last; 0: to be measured anew
    weight: float = 0.0  # in samples
    log_temperature: float = math.log(USUAL)
    known: Array | None = None  # (BINS,), how many samples are how familiar: the bins are of -novelty

    def is_due(self, samples: int) -> bool:
        """Whether there are a tenth more samples than the last time: it costs as much as preparing to answer."""
        return self.known is None or samples >= GROWTH * self.samples

    def after(self, samples: int, scores: Array, novelty: Array, own: Array) -> Self:
        """With leave-one-out scores and novelty of more samples, of the classes `own`; `samples` are there now."""
        chosen = evenly(len(scores), max(FEWEST, TABLE // scores.shape[1]))
        scores, novelty, own = scores[chosen], novelty[chosen], own[chosen]
        found = np.clip(np.arcsinh(-novelty.astype(np.float64)), -WIDEST, WIDEST)
        known, _ = np.histogram(found, BINS, (-WIDEST, WIDEST))
        weight, log_t, seen = float(len(scores)), math.log(fit_temperature(scores, own)), known.astype(np.float64)
        if self.known is not None:
            old = MEMORY * self.weight
            log_t = (old * self.log_temperature + weight * log_t) / (old + weight)
            weight, seen = old + weight, seen + MEMORY * self.known
        return replace(self, samples=float(samples), weight=weight, log_temperature=log_t, known=seen)

    def outdated(self) -> Self:
        """With the same numbers, to be measured anew."""
        return replace(self, samples=0.0)

    @classmethod
    def united(cls, several: Sequence["Calibration"]) -> "Calibration":
        """Of models that become one: all that was measured, by its weight; outdated, as each knew fewer classes."""
        present = [one for one in several if one.known is not None]
        if not present:
            return cls()
        weight = sum(one.weight for one in present)
        log_t = sum(one.weight * one.log_temperature for one in present) / weight
        return cls(0.0, weight, log_t, np.sum([one.known for one in present if one.known is not None], axis=0))

    @property
    def temperature(self) -> float:
        """T; what is usual, as long as nothing could be calibrated."""
        return math.exp(self.log_temperature)

    def threshold(self, share: float) -> float | None:
        """The novelty that this share of known samples exceeds; None as long as nothing could be calibrated."""
        if not 0 <= share <= 1:
            raise ValueError(f"a share lies between 0 and 1, and {share} does not")
        if self.known is None:
            return None
        below = self.known.cumsum()
        wanted = share * below[-1]
        at = min(int(np.searchsorted(below, wanted)), BINS - 1)
        inside = 1 - float((below[at] - wanted) / self.known[at]) if self.known[at] > 0 else 0.0
        return -math.sinh(WIDEST * (2 * (at + inside) / BINS - 1))

    def packed(self) -> Array:
        """As a model file has it."""
        assert self.known is not None
        return np.concatenate([[self.samples, self.weight, self.log_temperature], self.known])

    @classmethod
    def unpacked(cls, values: Array | None) -> "Calibration":
        """As a model file has it, or None where there is none."""
        return cls() if values is None else cls(float(values[0]), float(values[1]), float(values[2]), values[3:])


def evenly(n: int, most: int) -> Any:
    """Positions of at most so many of n, evenly, as samples of a class often follow each other."""
    return slice(None) if n <= most else np.linspace(0, n - 1, most).round().astype(np.int64)


def fit_temperature(scores: Array, own: Array) -> float:
    """The T with the least cross-entropy of softmax(scores / T), by golden-section search over its logarithm.

    Answers that are all right, as with two classes, would make it zero; so it is held near what is usual.
    """
    gaps = scores - scores.max(axis=1, keepdims=True)  # the same softmax, and nothing overflows
    truth = gaps[np.arange(len(own)), own].astype(np.float64)

    def loss(log_t: float) -> float:
        beta = math.exp(-log_t)
        sums = np.exp(gaps * np.asarray(beta, gaps.dtype)).sum(axis=1, dtype=np.float64)
        return float(np.log(sums).sum() - beta * truth.sum()) + DOUBT * (log_t - math.log(USUAL)) ** 2

    ratio = (math.sqrt(5) - 1) / 2
    low, high = math.log(COLDEST), math.log(HOTTEST)
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = loss(left), loss(right)
    for _ in range(STEPS):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = loss(right)
    return math.exp((low + high) / 2)
