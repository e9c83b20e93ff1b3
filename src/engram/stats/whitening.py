"""Cosines in a space where samples vary alike in every direction, and what they would be had a sample not been seen."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.stats.linalg import cholesky, solve
from engram.stats.sums import Sums

Array = NDArray[Any]

PROBES = 256  # random vectors that a trace is estimated with where d is larger
BACKGROUND = 0.5  # how far the spread of the class means counts as known, when a sample may be of no class
MOST = 2048  # class means that their spread is computed of
CHUNK = 1024  # classes compared at a time: their scores are still in the cache when they are scaled
SMALL = 1e-12
ROUNDING = 2**-10  # of a number in 16 bits
CERTAIN = 1e-3  # rounding may make a sample look like all there is of a direction, or more; it is this much less


@dataclass(frozen=True, eq=False)
class Space:
    """All that answering needs, computed from class means and one scatter.

    With Σ = UᵀU, w = U⁻ᵀ(z - o) is a sample as it lies in this space; `means` are class means as they lie in it.
    """

    origin: Array  # o, the mean of the class means
    factor: Array  # U, as `cholesky` leaves it
    means: Array  # w_c, (classes, d)
    squares: Array  # ‖w_c‖²
    noise: Array  # v / n_c, what the samples' noise adds to ‖w_c‖²
    counts: Array  # n_c
    leverage: float  # (1 - ε) / N, the weight in Σ of one sample's deviation squared

    @classmethod
    def of(cls, sums: Sums) -> "Space":
        """The space that class means make with the scatter S of N samples.

        Σ = (1 - ε)·S/N + ε·(tr(S/N)/d)·I with ε = d / (d + N): few samples trust the sphere, many trust themselves.
        """
        assert sums.scatter is not None
        means = sums.means.astype(np.promote_types(sums.means.dtype, np.float32))
        d, n, dtype = means.shape[1], sums.samples, means.dtype
        epsilon, sphere = d / (d + n), sums.scatter.trace / d / n
        origin = means.mean(axis=0)
        apart = means - origin
        limits = np.finfo(dtype)
        rounding = (float(np.abs(apart).max()) * float(limits.eps)) ** 2  # what varies less is not told from nothing
        floor = max(epsilon * sphere, rounding, float(limits.tiny)) if sphere > 0 else 1.0
        factor, floor = _factor(sums, (1 - epsilon) / n, floor, ROUNDING * sphere)
        whitened = solve(factor, apart)
        # v = tr(U⁻ᵀ (S/N) U⁻¹), and S/N = (Σ - floor·I) / (1 - ε); less than none is rounding
        v = max((d - floor * _trace_of_inverse(factor)) / (1 - epsilon), 0.0) if sphere > 0 else 0.0
        squares = np.einsum("cd,cd->c", whitened, whitened)
        noise = (v / sums.counts).astype(dtype)
        return cls(origin, factor, whitened, squares, noise, sums.counts, (1 - epsilon) / n)

    def whiten(self, z: Array) -> Array:
        """w of each sample."""
        return solve(self.factor, z - self.origin)

    @cached_property
    def lengths(self) -> Array:
        """‖w_c‖ freed of its noise; what is left of a squared length is a tenth of it at least."""
        return _lengths(self.squares, self.noise)

    @cached_property
    def spread(self) -> tuple[Array, Array]:
        """Rows of class means and a matrix P with b·Pb = ‖w‖² - ‖w‖²_B for b = w·w_c of those: see `compare`.

        Of very many classes, some that lie evenly among them stand for all.
        """
        classes = len(self.means)
        rows = np.linspace(0, classes - 1, min(classes, MOST)).round().astype(np.int64)
        # In float64, as classes far apart make numbers beside which the 1 would vanish.
        means, shares = self.means[rows].astype(np.float64), self.counts[rows] / self.counts[rows].sum()
        root = np.sqrt(shares)
        gram = root[:, None] * (means @ means.T) * root
        gram[np.diag_indices_from(gram)] += 1
        inverse: Array = np.linalg.inv(gram)
        return rows, (root[:, None] * inverse * root).astype(self.means.dtype)

    def compare(self, w: Array) -> tuple[Array, Array]:
        """Cosines w·w_c / (‖w‖·√(‖w_c‖² - v/n_c)), Eq. 1, and the novelty of each sample, from one product.

        Novelty is (min_c ‖w - w_c‖² - ‖w‖²_o) / ‖w‖: by how much the nearest class fails to beat no class. ‖w‖²_o lies
        between the squared distance to the origin and, with the class means' own spread added to Σ, that to a class not
        met yet, ‖w‖²_B = wᵀ(I + Σ_c n_c/N·w_c w_cᵀ)⁻¹w. The first alone is the better rule where classes are far apart,
        the second where they are alike; docs/method.md has both measured.
        """
        rows, inverse = self.spread
        length = np.maximum(np.sqrt(np.einsum("nd,nd->n", w, w)), SMALL)
        cosines = np.empty((len(w), len(self.means)), w.dtype)
        nearest = np.full(len(w), -np.inf, w.dtype)
        alike = np.empty((len(w), len(rows)), w.dtype)
        for part, of_rows in self._parts(rows):
            product, scaled = w @ self.means[part].T, cosines[:, part]
            alike[:, of_rows] = product[:, rows[of_rows] - part.start]
            np.multiply(product, 1 / self.lengths[part], out=scaled)
            scaled *= (1 / length)[:, None]
            product -= self.squares[part] / 2
            np.maximum(nearest, product.max(axis=1), out=nearest)
        explained = np.einsum("nr,nr->n", alike @ inverse, alike)
        return cosines, (BACKGROUND * explained - 2 * nearest) / length

    def _parts(self, rows: Array) -> Iterator[tuple[slice, slice]]:
        """Classes in chunks, and which of the `rows` are in each."""
        for start in range(0, len(self.means), CHUNK):
            stop = min(start + CHUNK, len(self.means))
            low, high = np.searchsorted(rows, (start, stop)).tolist()
            yield slice(start, stop), slice(low, high)

    def left_out(self, w: Array, own: Array) -> tuple[Array, Array]:
        """Cosines (n, classes) and novelty of learned samples of the classes `own`, had each not been learned.

        Without a sample z of class c with n samples, the class mean moves by -r/(n - 1), r = z - μ_c; the origin by
        that over the number of classes. That ε, tr(S) and the spread of the class means change as well is left out:
        tests show how little it is. A class of one sample would be gone without it: its cosine is -1.
        """
        x_y, x_x, y_y, share = products_left_out(w, own, self.means, self.counts, self.leverage, origin_moves=True)
        length = np.maximum(np.sqrt(x_x), SMALL)
        cosines = x_y / length[:, None] / _lengths(y_y, self.noise * (1 + share))  # v/(n - 1) = v/n·(1 + 1/(n - 1))
        cosines[(share > 0) & (self.counts == 1)] = -1.0
        rows, inverse = self.spread
        explained = np.einsum("nr,nr->n", x_y[:, rows] @ inverse, x_y[:, rows])
        return cosines, (BACKGROUND * explained - (2 * x_y - y_y).max(axis=1)) / length


def products_left_out(
    w: Array, own: Array, means: Array, counts: Array, leverage: float, *, origin_moves: bool
) -> tuple[Array, Array, Array, Array]:
    """x·y_c, x·x and y_c·y_c of samples and class means, had each sample not been learned, and 1/(n - 1).

    Σ loses β·rrᵀ, β = n/(n - 1)·(1 - ε)/N. By Sherman and Morrison, inner products then are a·b + κ·(a·u)(b·u) with
    u = U⁻ᵀr and κ = β / (1 - β·u·u).
    """
    n = np.maximum(counts[own], 2).astype(w.dtype)
    u = w - means[own]
    q = np.einsum("nd,nd->n", u, u)
    beta = np.asarray(leverage, w.dtype) * n / (n - 1)
    kappa = beta / np.maximum(1 - beta * q, CERTAIN)
    shift = 1 / ((n - 1) * len(means)) * origin_moves  # the origin moves by -shift·r, so every vector by shift·u
    share = np.zeros((len(w), len(means)), w.dtype)
    share[np.arange(len(w)), own] = 1 / (n - 1)
    along = shift[:, None] - share  # a class mean becomes w_c + along·u
    wu, ku = np.einsum("nd,nd->n", w, u), u @ means.T
    x_u, y_u = wu + shift * q, ku + along * q[:, None]
    x_x = np.einsum("nd,nd->n", w, w) + 2 * shift * wu + shift**2 * q + kappa * x_u**2
    y_y = np.einsum("cd,cd->c", means, means) + 2 * along * ku + along**2 * q[:, None] + kappa[:, None] * y_u**2
    x_y = w @ means.T + along * wu[:, None] + shift[:, None] * ku + along * (shift * q)[:, None]
    x_y += (kappa * x_u)[:, None] * y_u
    return x_y, x_x, y_y, share


def _factor(sums: Sums, weight: float, floor: float, least: float) -> tuple[Array, float]:
    """U of Σ = weight·S + floor·I, and the floor it took.

    S, rounded to 16 bits, may vary less than nothing in some direction: then more is added, twice as much each time.
    """
    assert sums.scatter is not None
    dtype = np.promote_types(sums.means.dtype, np.float32)
    while True:
        sigma = sums.scatter.upper(dtype, weight)
        sigma[np.diag_indices_from(sigma)] += np.asarray(floor, dtype)
        try:
            return cholesky(sigma), floor
        except np.linalg.LinAlgError:
            if not np.isfinite(floor):
                raise ValueError("the features vary too little, or too much, to be told apart; scale them") from None
            floor = 2 * max(floor, least)


def _lengths(squares: Array, noise: Array) -> Array:
    lengths: Array = np.maximum(np.sqrt(np.maximum(squares - noise, squares / 10)), SMALL)
    return lengths


def _trace_of_inverse(factor: Array) -> float:
    """tr(Σ⁻¹) = E ‖U⁻ᵀg‖² over random signs g; for small d exactly, with the axes in their place."""
    d = len(factor)
    probes = (
        np.eye(d, dtype=factor.dtype) * np.asarray(d**0.5, factor.dtype) if d <= PROBES else _signs(d, factor.dtype)
    )
    return float(np.square(solve(factor, probes)).sum(dtype=np.float64) / len(probes))


@lru_cache(maxsize=1)
def _signs(d: int, dtype: Any) -> Array:
    """Random signs (PROBES, d): a Mersenne twister's last bits, which is what torch drew for files of before."""
    words = np.frombuffer(np.random.RandomState(0).bytes(4 * PROBES * d), "<u4").reshape(PROBES, d)
    return ((words & 1).astype(np.int8) * 2 - 1).astype(dtype)
