"""Whitening, cosines, novelty and leave-one-out against PLUS's formulas, in float64, one sample at a time."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.stats import whitening
from engram.stats.sums import Sums
from engram.stats.triangle import Triangle
from engram.stats.whitening import Space

Array = NDArray[np.float64]


@dataclass
class ByHand:
    """The model of all samples, by loops and an explicit inverse."""

    means: Array
    counts: Array
    scatter: Array
    origin: Array
    sigma: Array
    v: float

    def inner(self, a: Array, b: Array) -> float:
        return float(a @ np.linalg.inv(self.sigma) @ b)

    def cosine(self, z: Array, c: int) -> float:
        a, b = z - self.origin, self.means[c] - self.origin
        square = self.inner(b, b)
        length = max(square - self.v / self.counts[c], square / 10)
        return self.inner(a, b) / np.sqrt(self.inner(a, a) * length)

    def novelty(self, z: Array) -> float:
        """(the squared distance to the nearest class, less half-way between ‖w‖² and ‖w‖²_B) / ‖w‖."""
        w = z - self.origin
        background = self.sigma.copy()
        for count, mean in zip(self.counts, self.means, strict=True):
            background += count / self.counts.sum() * np.outer(mean - self.origin, mean - self.origin)
        none = (self.inner(w, w) + w @ np.linalg.inv(background) @ w) / 2
        nearest = min(self.inner(z - mean, z - mean) for mean in self.means)
        return (nearest - none) / np.sqrt(self.inner(w, w))


def by_hand(x: Array, y: NDArray[np.int64]) -> ByHand:
    d, n, classes = x.shape[1], len(x), int(y.max()) + 1
    means = np.array([x[y == c].mean(axis=0) for c in range(classes)])
    scatter = np.zeros((d, d))
    for sample, c in zip(x, y, strict=True):
        scatter += np.outer(sample - means[c], sample - means[c])
    epsilon = d / (d + n)
    sphere = np.trace(scatter / n) / d
    sigma = (1 - epsilon) * scatter / n + epsilon * sphere * np.eye(d) if sphere else np.eye(d)
    v = np.trace(np.linalg.inv(sigma) @ scatter / n)
    return ByHand(means, np.bincount(y).astype(float), scatter, means.mean(axis=0), sigma, v)


def space_of(x: Array, y: NDArray[np.int64]) -> tuple[Space, Array]:
    """The space of these samples, and they as they lie in it."""
    space = Space.of(Sums.of(x, y.tolist()))
    return space, space.whiten(x)


def samples(sizes: tuple[int, ...], d: int, seed: int = 0, apart: float = 1.5) -> tuple[Array, NDArray[np.int64]]:
    """Classes of these sizes, all stretched along the same skew directions."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    skew = rng.normal(size=(d, d))
    return apart * rng.normal(size=(len(sizes), d))[y] + rng.normal(size=(len(y), d)) @ skew + 3, y


def test_cosine_and_novelty_are_those_of_the_formulas():
    x, y = samples((1, 2, 9, 4), d=5)
    means = [x[y == c].mean(axis=0) for c in range(4)]
    x[y == 1] += np.mean([means[0], means[2], means[3]], axis=0) + 0.1 - means[1]  # near the origin: mostly noise
    expected = by_hand(x, y)
    space, w = space_of(x, y)
    cosines, novelty = space.compare(w)
    for i, z in enumerate(x):
        assert novelty[i] == pytest.approx(expected.novelty(z), rel=1e-9)
        for c in range(4):
            assert cosines[i, c] == pytest.approx(expected.cosine(z, c), rel=1e-9)
    squares = [expected.inner(mean - expected.origin, mean - expected.origin) for mean in expected.means]
    noisy = [expected.v / n > 0.9 * square for n, square in zip(expected.counts, squares, strict=True)]
    assert any(noisy)  # both sides of the tenth are met
    assert not all(noisy)


def test_a_class_of_three_beside_one_of_fifty_is_not_short_changed():
    """Noise adds v/n_c to the squared length of a mean: if it stayed there, the class of three would be too long."""
    rng, sizes = np.random.default_rng(1), np.tile([50, 3], 5)
    y = np.repeat(np.arange(10), sizes)
    centres = 0.7 * rng.normal(size=(10, 24))
    x = centres[y] + rng.normal(size=(len(y), 24))
    space, _ = space_of(x, y)
    np.testing.assert_allclose(space.noise, by_hand(x, y).v / sizes, rtol=1e-9)
    truth = np.tile(np.arange(1, 10, 2), 200)
    queries = space.whiten(centres[truth] + rng.normal(size=(1000, 24)))
    freed = space.compare(queries)[0].argmax(axis=1)
    plain = replace(space, noise=0 * space.noise).compare(queries)[0].argmax(axis=1)
    assert (freed == truth).mean() > (plain == truth).mean() + 0.03


def test_of_many_classes_chunk_by_chunk_it_is_the_same(monkeypatch):
    x, y = samples((4, 3, 8, 2, 5, 1, 3), d=4)
    space, w = space_of(x, y)
    whole = space.compare(w)
    monkeypatch.setattr(whitening, "CHUNK", 3)
    for one, other in zip(whole, space.compare(w), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_more_dimensions_than_samples_and_a_constant_feature_work():
    x, y = samples((3, 2), d=40)
    x[:, 7] = 2.5
    space, w = space_of(x, y)
    expected, cosines = by_hand(x, y), space.compare(w)[0]
    assert cosines[:, 0].tolist() == pytest.approx([expected.cosine(z, 0) for z in x], rel=1e-8)


def test_where_nothing_varies_the_sphere_is_left():
    """One sample a class: plain cosines around the mean of the classes, and no noise is taken off."""
    x, y = samples((1, 1, 1), d=4)
    space, w = space_of(x, y)
    centred = x - x.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(space.compare(w)[0], unit @ unit.T, atol=1e-12)
    assert not space.noise.any()


@pytest.mark.parametrize("sizes", [(5,), (1,)])
def test_one_class_alone_gets_finite_scores(sizes: tuple[int, ...]):
    space, w = space_of(*samples(sizes, d=4))
    assert all(np.isfinite(part).all() for part in space.compare(w))
    assert space.compare(np.zeros((1, 4)))[0].tolist() == [[0.0]]


def test_of_many_dimensions_the_trace_is_estimated_the_same_every_time():
    x, y = samples((400, 300), d=whitening.PROBES + 44)
    space, _ = space_of(x, y)
    assert float(space.noise[0]) == pytest.approx(by_hand(x, y).v / 400, rel=0.01)
    assert np.array_equal(space_of(x, y)[0].noise, space.noise)


def test_of_very_many_classes_some_stand_for_the_spread_of_all(monkeypatch):
    x, y = samples((4, 3, 8, 2, 5), d=4)
    monkeypatch.setattr(whitening, "MOST", 3)
    space, w = space_of(x, y)
    rows, inverse = space.spread
    assert rows.tolist() == [0, 2, 4]
    means, counts = space.means[rows], np.array([4, 8, 5])
    background = np.eye(4) + means.T @ np.diag(counts / counts.sum()) @ means
    dots = w @ means.T
    explained = np.einsum("nd,nd->n", w, w) - np.einsum("nd,de,ne->n", w, np.linalg.inv(background), w)
    np.testing.assert_allclose(np.einsum("nc,ce,ne->n", dots, inverse, dots), explained, rtol=1e-9)
    length, squares = np.linalg.norm(w, axis=1), np.square(space.means).sum(axis=1)
    nearest = (2 * w @ space.means.T - squares).max(axis=1)
    for chunk in (2, 4096):
        monkeypatch.setattr(whitening, "CHUNK", chunk)
        np.testing.assert_allclose(space.compare(w)[1], (explained / 2 - nearest) / length, rtol=1e-9)


def without(x: Array, y: NDArray[np.int64], i: int) -> ByHand:
    rest = np.arange(len(x)) != i
    return by_hand(x[rest], y[rest])


def test_leaving_one_out_is_exact_but_for_the_weights_of_the_covariance():
    """Remove each sample's own share by hand from means, origin and Σ; N, ε, tr(S), v and the spread stay."""
    x, y = samples((2, 3, 7), d=4)
    whole, epsilon = by_hand(x, y), 4 / (4 + len(x))
    space, w = space_of(x, y)
    cosines, novelty = space.left_out(w, y)
    rows, inverse = space.spread
    for i, z in enumerate(x):
        part = without(x, y, i)
        part.sigma = whole.sigma - (1 - epsilon) / len(x) * (whole.scatter - part.scatter)
        part.v = whole.v
        assert cosines[i].tolist() == pytest.approx([part.cosine(z, c) for c in range(3)], rel=1e-7)
        dots = np.array([part.inner(z - part.origin, mean - part.origin) for mean in part.means])
        squares = np.array([part.inner(mean - part.origin, mean - part.origin) for mean in part.means])
        explained = dots[rows] @ inverse @ dots[rows]
        length = np.sqrt(part.inner(z - part.origin, z - part.origin))
        assert novelty[i] == pytest.approx((explained / 2 - (2 * dots - squares).max()) / length, rel=1e-7), i


def test_leaving_one_out_is_close_to_learning_without_the_sample():
    """Not exact: ε, N, the trace and v are those of all samples, which one sample of 240 changes by about 1/240."""
    x, y = samples((80, 40, 20, 100), d=20, apart=3)
    space, w = space_of(x, y)
    some = np.arange(0, len(x), 7)
    parts = {i: without(x, y, i) for i in some}
    cosines = np.array([[part.cosine(x[i], c) for c in range(4)] for i, part in parts.items()])
    novel = np.array([part.novelty(x[i]) for i, part in parts.items()])
    for left_out, refitted, seen, apart in zip(
        space.left_out(w, y), (cosines, novel), space.compare(w), (3e-3, 0.1), strict=True
    ):
        np.testing.assert_allclose(left_out[some], refitted, atol=apart)
        # What is corrected is ten times what is not.
        assert np.abs(left_out[some] - refitted).mean() < np.abs(seen[some] - refitted).mean() / 10


def test_without_correction_a_sample_would_vouch_for_itself():
    """Labels drawn at random: seen samples look right far too often, left out they are right by chance."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(120, 60)), np.arange(120) % 4
    space, w = space_of(x, y)
    assert (space.compare(w)[0].argmax(axis=1) == y).mean() > 0.7
    assert (space.left_out(w, y)[0].argmax(axis=1) == y).mean() < 0.4


def test_a_class_of_one_sample_is_gone_without_it():
    x, y = samples((1, 5, 4), d=4)
    space, w = space_of(x, y)
    cosines, novelty = space.left_out(w, y)
    assert cosines[0, 0] == -1
    assert (cosines[0, 1:] > -1).all()
    assert (cosines[1:, 0] != -1).all()  # to the others it is there
    assert np.isfinite(cosines).all()
    assert np.isfinite(novelty).all()


def test_leaving_one_out_is_finite_where_rounding_gives_a_sample_more_than_all_that_varies():
    """Two samples far apart are all that varies, and Σ is a little too small, as 16 bits may make it."""
    x, y = samples((2, 50), d=3)
    x[y == 1] = 1.0
    space, w = space_of(x, y)
    rounded = replace(space, leverage=space.leverage * 1.05)
    u = w[0] - space.means[0]
    assert float(rounded.leverage * 2 * u @ u) > 1  # Σ less the sample's share has a negative eigenvalue
    assert all(np.isfinite(part).all() for part in rounded.left_out(w, y))


def test_classes_very_far_apart_have_a_spread_in_single_precision():
    """More classes than dimensions, thousands of times their samples' noise apart."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 3)
    space, w = space_of((1e4 * rng.normal(size=(40, 4))[y] + rng.normal(size=(120, 4))).astype(np.float32), y)
    assert np.isfinite(space.compare(w)[1]).all()


def impossible(scale: float = 1.0, unit: float = 1e6) -> Sums:
    """Two features that vary as one, rounded apart: less than no variance in one direction, and next to no ε."""
    scatter = Triangle.of(np.array([[1.0, 1.002], [1.002, 1.0]])).packed.astype(np.float16)
    means, counts = np.array([[0, 0], [1, 2]], np.float32) * np.float32(scale), np.array([500_000, 500_000])
    return Sums(("a", "b"), counts, means, Triangle(scatter, unit), 1_000_000)


def test_a_scatter_that_rounding_made_impossible_is_helped():
    space = Space.of(impossible())
    factor = space.factor.copy()  # of one block: U⁻¹ lies in its place
    sigma = np.linalg.inv(factor @ factor.T)
    assert sigma[0, 0] == pytest.approx(sigma[1, 1], rel=1e-6)  # both lifted, by the same
    assert sigma[0, 1] == pytest.approx(1.002, abs=1e-3)
    assert sigma[0, 1] < sigma[0, 0] < 1.02  # and by no more than it takes
    assert all(np.isfinite(part).all() for part in space.compare(space.whiten(np.float32([[0.1, 0.0], [0.9, 2.1]]))))
    assert not space.noise.any()  # what was added is no noise of samples, and there is none less than nothing


@pytest.mark.timeout(20)
@pytest.mark.parametrize("size", [1e-30, 1e-15, 1e15])
def test_that_help_ends_however_small_or_large_the_features_are(size: float):
    space = Space.of(impossible(size, 1e6 * size**2))
    assert all(np.isfinite(part).all() for part in space.compare(space.whiten(np.float32([[0, 0], [1, 2]]) * size)))


def test_what_varies_less_than_the_means_are_rounded_to_is_finite():
    rng = np.random.default_rng(0)
    y = np.arange(12) % 3
    x = (rng.normal(size=(12, 4)) * 1e-20).astype(np.float32)
    x[y == 0] = 1.0
    space, w = space_of(x, y)
    assert all(np.isfinite(part).all() for part in (*space.compare(w), *space.left_out(w, y)))
