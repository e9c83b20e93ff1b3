"""Counts, means and scatter of classes: sums over samples, which can be added and taken away."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.stats.triangle import Triangle

Array = NDArray[Any]
Label = str | int


@dataclass(frozen=True, eq=False)
class Sums:
    """n_c and μ_c of every class, and S = Σ_c Σ_{i in c} (z_i - μ_c)(z_i - μ_c)ᵀ of all samples.

    Of two groups of n and m samples, the scatter around their common mean is that around each one's own and
    n·m / (n + m)·(μ₁ - μ₂)(μ₁ - μ₂)ᵀ (Chan, Golub, LeVeque, 1979). So pieces in any order make what all at once would.
    """

    labels: tuple[Label, ...]
    counts: NDArray[np.int64]
    means: Array  # (classes, d)
    scatter: Triangle | None  # None: not kept
    samples: int  # that the scatter is of, those of forgotten classes as well

    @classmethod
    def of(cls, z: Array, y: Sequence[Label], *, scatter: bool = True) -> "Sums":
        """The sums of some samples; classes in the order of their names."""
        labels, own = index(y)
        counts = np.bincount(own, minlength=len(labels))
        means = np.zeros((len(labels), z.shape[1]), np.float64)
        together = z if (np.diff(own) >= 0).all() else z[np.argsort(own, kind="stable")]
        np.add.reduceat(together, np.r_[0, counts.cumsum()[:-1]], axis=0, dtype=np.float64, out=means)
        means /= counts[:, None]
        kept = means.astype(z.dtype)
        centred = z - kept[own]
        return cls(labels, counts, kept, Triangle.of(centred.T @ centred) if scatter else None, len(z))

    @cached_property
    def row(self) -> dict[Label, int]:
        """Where each class is."""
        return {label: row for row, label in enumerate(self.labels)}

    def __add__(self, other: "Sums") -> "Sums":
        labels = (*self.labels, *(label for label in other.labels if label not in self.row))
        row = {label: at for at, label in enumerate(labels)}
        rows = np.array([row[label] for label in other.labels], dtype=np.int64)
        dtype = np.promote_types(np.promote_types(self.means.dtype, other.means.dtype), np.float32)
        counts, means = np.zeros(len(labels), np.int64), np.zeros((len(labels), self.means.shape[1]), dtype)
        counts[: len(self.counts)], means[: len(self.means)] = self.counts, self.means
        n, m, old, new = counts[rows], other.counts, means[rows].astype(np.float64), other.means.astype(np.float64)
        counts[rows] = n + m
        means[rows] = (old * n[:, None] + new * m[:, None]) / (n + m)[:, None]
        between = np.sqrt(n * m / (n + m))[:, None] * (old - new)
        return replace(
            self, labels=labels, counts=counts, means=means, scatter=_joined(self.scatter, other.scatter, between, 1),
            samples=self.samples + other.samples,
        )  # fmt: skip

    def __sub__(self, other: "Sums") -> "Sums":
        if strange := [label for label in other.labels if label not in self.row]:
            raise ValueError(f"unknown class {strange[0]!r}; {len(self.labels)} classes are known")
        rows = np.array([self.row[label] for label in other.labels], dtype=np.int64)
        n, m, old, less = self.counts[rows], other.counts, self.means[rows].astype(np.float64), other.means
        rest = n - m
        if (rest < 0).any() or self.samples < other.samples:
            raise ValueError("there are fewer samples of a class than are to be taken away")
        new = (old * n[:, None] - less.astype(np.float64) * m[:, None]) / np.maximum(rest, 1)[:, None]
        new[rest == 0] = 0.0
        between = np.sqrt(rest * m / np.maximum(n, 1))[:, None] * (new - less) * (rest > 0)[:, None]
        counts, means = self.counts.copy(), self.means.astype(np.promote_types(self.means.dtype, np.float32))
        counts[rows], means[rows] = rest, new
        left, samples = counts > 0, self.samples - other.samples
        scatter = _joined(self.scatter, other.scatter, between, -1)
        if scatter is not None and samples == left.sum():  # of one sample each nothing varies: what is left is rounding
            scatter = Triangle(np.zeros_like(scatter.packed))
        labels = tuple(label for label, there in zip(self.labels, left.tolist(), strict=True) if there)
        return Sums(labels, counts[left], means[left], scatter, samples)

    def without(self, label: Label) -> "Sums":
        """Without a class. The scatter stays: it says how samples vary, not what this class looks like."""
        rest = [row for row, other in enumerate(self.labels) if other != label]
        labels = tuple(self.labels[row] for row in rest)
        return replace(self, labels=labels, counts=self.counts[rest], means=self.means[rest])

    def renamed(self, old: Label, new: Label) -> "Sums":
        """With another name for a class."""
        return replace(self, labels=tuple(new if label == old else label for label in self.labels))

    def scaled(self, factor: float) -> "Sums":
        """Those of the same samples times a number, a power of two."""
        if factor == 1:
            return self
        means = self.means.astype(np.promote_types(self.means.dtype, np.float32)) * np.float32(factor)
        return replace(self, means=means, scatter=self.scatter and self.scatter.scaled(factor**2))


def _joined(mine: Triangle | None, theirs: Triangle | None, between: Array, sign: int) -> Triangle | None:
    """The scatter of both, or of the rest; `between` has one row for each class that both know."""
    if mine is None or theirs is None:
        return None
    apart = between[between.any(axis=1)].astype(np.promote_types(theirs.packed.dtype, np.float32))
    if len(apart):
        theirs = theirs + Triangle.of(apart.T @ apart)
    return mine + theirs if sign > 0 else mine - theirs


def index(y: Sequence[Label]) -> tuple[tuple[Label, ...], NDArray[np.int64]]:
    """The distinct labels, sorted, and each sample's position among them."""
    labels = sorted(set(y))
    row = {label: at for at, label in enumerate(labels)}
    return tuple(labels), np.array([row[label] for label in y], dtype=np.int64)
