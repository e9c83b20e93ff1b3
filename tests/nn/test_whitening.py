"""Whitening, cosines and leave-one-out against the same formulas, written out in float64 one sample at a time."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from engram.nn import statistics, symmetric, whitening

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

    def familiarity(self, z: Array) -> float:
        """(half-way between ‖w‖² and ‖w‖²_B, less the squared distance to the nearest class) / ‖w‖."""
        w = z - self.origin
        background = self.sigma.copy()
        for count, mean in zip(self.counts, self.means, strict=True):
            background += count / self.counts.sum() * np.outer(mean - self.origin, mean - self.origin)
        unknown = (self.inner(w, w) + w @ np.linalg.inv(background) @ w) / 2
        nearest = min(self.inner(z - mean, z - mean) for mean in self.means)
        return (unknown - nearest) / np.sqrt(self.inner(w, w))


def by_hand(X: Array, y: NDArray[np.int64]) -> ByHand:
    d, n, classes = X.shape[1], len(X), int(y.max()) + 1
    means = np.array([X[y == c].mean(axis=0) for c in range(classes)])
    scatter = np.zeros((d, d))
    for x, c in zip(X, y, strict=True):
        scatter += np.outer(x - means[c], x - means[c])
    epsilon = d / (d + n)
    sphere = np.trace(scatter / n) / d
    sigma = (1 - epsilon) * scatter / n + epsilon * sphere * np.eye(d) if sphere else np.eye(d)
    v = np.trace(np.linalg.inv(sigma) @ scatter / n)
    return ByHand(means, np.bincount(y).astype(float), scatter, means.mean(axis=0), sigma, v)


def space_of(X: Array, y: NDArray[np.int64]) -> tuple[whitening.Space, torch.Tensor]:
    """The space of these samples, and they as they lie in it."""
    z, targets = torch.from_numpy(X), torch.from_numpy(y)
    now = statistics.update(None, None, z, targets, int(y.max()) + 1)
    scatter, unit = symmetric.add(None, None, now.scatter, 64, torch.Generator())
    space = whitening.build(now.means, now.counts, scatter, unit, torch.tensor(len(X)))
    return space, space.whiten(z)


def samples(sizes: tuple[int, ...], d: int, seed: int = 0, apart: float = 1.5) -> tuple[Array, NDArray[np.int64]]:
    """Classes of these sizes, all stretched along the same skew directions."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(sizes)), sizes)
    skew = rng.normal(size=(d, d))
    return apart * rng.normal(size=(len(sizes), d))[y] + rng.normal(size=(len(y), d)) @ skew + 3, y


def test_the_cosine_is_that_of_the_formula():
    X, y = samples((1, 2, 9, 4), d=5)
    means = [X[y == c].mean(axis=0) for c in range(4)]
    X[y == 1] += np.mean([means[0], means[2], means[3]], axis=0) + 0.1 - means[1]  # near the origin: mostly noise
    expected = by_hand(X, y)
    space, w = space_of(X, y)
    cosines = space.cosines(w)
    for i, z in enumerate(X):
        for c in range(4):
            assert float(cosines[i, c]) == pytest.approx(expected.cosine(z, c), rel=1e-9)
    squares = [expected.inner(mean - expected.origin, mean - expected.origin) for mean in expected.means]
    noisy = [expected.v / n > 0.9 * square for n, square in zip(expected.counts, squares, strict=True)]
    assert any(noisy)  # both sides of the tenth are met
    assert not all(noisy)


def test_the_whitened_samples_have_the_covariance_that_was_shrunk():
    X, y = samples((30, 20), d=6)
    expected = by_hand(X, y)
    space, w = space_of(X, y)
    np.testing.assert_allclose(space.factor.T @ space.factor, expected.sigma, rtol=1e-10)
    np.testing.assert_allclose(w @ space.factor, X - expected.origin, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(space.noise, expected.v / expected.counts, rtol=1e-10)


def test_more_dimensions_than_samples_and_a_constant_feature_work():
    X, y = samples((3, 2), d=40)
    X[:, 7] = 2.5
    space, w = space_of(X, y)
    expected = by_hand(X, y)
    for i in range(5):
        assert float(space.cosines(w)[i, 0]) == pytest.approx(expected.cosine(X[i], 0), rel=1e-8)


def test_where_nothing_varies_the_sphere_is_left():
    """One sample a class: plain cosines around the mean of the classes, and no noise is taken off."""
    X, y = samples((1, 1, 1), d=4)
    space, w = space_of(X, y)
    centred = X - X.mean(axis=0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    np.testing.assert_allclose(space.cosines(w), unit @ unit.T, atol=1e-12)
    assert not space.noise.any()


@pytest.mark.parametrize("sizes", [(5,), (1,)])
def test_one_class_alone_gets_finite_scores(sizes: tuple[int, ...]):
    space, w = space_of(*samples(sizes, d=4))
    assert space.cosines(w).isfinite().all()
    assert space.familiarity(w).isfinite().all()
    assert space.cosines(torch.zeros(1, 4).double()).tolist() == [[0.0]]


def test_of_many_dimensions_the_trace_is_estimated_the_same_every_time():
    X, y = samples((400, 300), d=whitening.PROBES + 44)
    space, _ = space_of(X, y)
    expected = by_hand(X, y)
    assert float(space.noise[0]) == pytest.approx(expected.v / 400, rel=0.01)
    assert torch.equal(space_of(X, y)[0].noise, space.noise)


def test_familiarity_is_how_much_better_the_nearest_class_explains_a_sample():
    X, y = samples((4, 3, 8, 2), d=5)
    expected = by_hand(X, y)
    space, w = space_of(X, y)
    for value, z in zip(space.familiarity(w), X, strict=True):
        assert float(value) == pytest.approx(expected.familiarity(z), rel=1e-9)


def test_of_very_many_classes_some_stand_for_the_spread_of_all(monkeypatch):
    X, y = samples((4, 3, 8, 2, 5), d=4)
    monkeypatch.setattr(whitening, "MOST", 3)
    space, w = space_of(X, y)
    rows, inverse = space.spread()
    assert rows.tolist() == [0, 2, 4]
    means, counts = space.means[rows].numpy(), np.array([4, 8, 5])
    background = np.eye(4) + means.T @ np.diag(counts / counts.sum()) @ means
    dots = (w @ space.means[rows].T).numpy()
    explained = np.einsum("nd,nd->n", w, w) - np.einsum("nd,de,ne->n", w, np.linalg.inv(background), w)
    np.testing.assert_allclose(np.einsum("nc,ce,ne->n", dots, inverse, dots), explained, rtol=1e-9)
    assert space.familiarity(w).isfinite().all()


def without(X: Array, y: NDArray[np.int64], i: int) -> ByHand:
    rest = np.arange(len(X)) != i
    return by_hand(X[rest], y[rest])


def test_leaving_one_out_is_exact_but_for_the_weights_of_the_covariance():
    """Remove each sample's own share by hand from means, origin and Σ; N, ε, tr(S), v and the spread stay."""
    X, y = samples((2, 3, 7), d=4)
    n = np.bincount(y)
    whole = by_hand(X, y)
    epsilon = 4 / (4 + len(X))
    space, w = space_of(X, y)
    scores, familiarity = whitening.leave_one_out(space, w, torch.from_numpy(y), torch.from_numpy(n))
    rows, inverse = space.spread()
    for i, (z, c) in enumerate(zip(X, y, strict=True)):
        part = without(X, y, i)
        part.sigma = whole.sigma - (1 - epsilon) / len(X) * (whole.scatter - part.scatter)
        part.v = whole.v
        for k in range(3):
            assert float(scores[i, k]) == pytest.approx(part.cosine(z, k), rel=1e-7), (i, k)
        assert part.counts[c] == n[c] - 1
        dots = np.array([part.inner(z - part.origin, mean - part.origin) for mean in part.means])
        squares = np.array([part.inner(mean - part.origin, mean - part.origin) for mean in part.means])
        explained = dots[rows] @ inverse.numpy() @ dots[rows]
        length = np.sqrt(part.inner(z - part.origin, z - part.origin))
        expected = ((2 * dots - squares).max() - explained / 2) / length
        assert float(familiarity[i]) == pytest.approx(expected, rel=1e-7), i


def test_leaving_one_out_is_close_to_learning_without_the_sample():
    """Not exact: ε, N, the trace and v are those of all samples, which one sample of 240 changes by about 1/240."""
    X, y = samples((80, 40, 20, 100), d=20, apart=3)
    space, w = space_of(X, y)
    scores, familiarity = whitening.leave_one_out(space, w, torch.from_numpy(y), torch.from_numpy(np.bincount(y)))
    some = np.arange(0, len(X), 7)
    parts = {i: without(X, y, i) for i in some}
    cosines = np.array([[part.cosine(X[i], c) for c in range(4)] for i, part in parts.items()])
    familiar = np.array([part.familiarity(X[i]) for i, part in parts.items()])
    np.testing.assert_allclose(scores[some], cosines, atol=3e-3)
    np.testing.assert_allclose(familiarity[some], familiar, atol=0.1)
    for left_out, refitted, seen in (
        (scores, cosines, space.cosines(w)),
        (familiarity, familiar, space.familiarity(w)),
    ):  # what is corrected is ten times what is not
        assert np.abs(left_out[some] - refitted).mean() < np.abs(seen[some] - refitted).mean() / 10


def test_without_correction_a_sample_would_vouch_for_itself():
    """Labels drawn at random: seen samples look right far too often, left out they are right by chance."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 60)), np.arange(120) % 4
    space, w = space_of(X, y)
    scores, _ = whitening.leave_one_out(space, w, torch.from_numpy(y), torch.from_numpy(np.bincount(y)))
    assert (space.cosines(w).argmax(dim=1).numpy() == y).mean() > 0.7
    assert (scores.argmax(dim=1).numpy() == y).mean() < 0.4


def test_a_class_of_one_sample_is_gone_without_it():
    X, y = samples((1, 5, 4), d=4)
    space, w = space_of(X, y)
    counts = torch.from_numpy(np.bincount(y))
    scores, familiarity = whitening.leave_one_out(space, w, torch.from_numpy(y), counts)
    assert float(scores[0, 0]) == -1
    assert (scores[0, 1:] > -1).all()
    assert (scores[1:, 0] != -1).all()  # to the others it is there
    assert scores.isfinite().all()
    assert familiarity.isfinite().all()


def test_leaving_one_out_is_finite_where_rounding_gives_a_sample_more_than_all_that_varies():
    """Two samples far apart are all that varies, and Σ is a little too small, as 16 bits may make it."""
    X, y = samples((2, 50), d=3)
    X[y == 1] = 1.0
    space, w = space_of(X, y)
    rounded = replace(space, leverage=space.leverage * 1.05)
    n = torch.from_numpy(np.bincount(y))
    u = w[0] - space.means[0]
    assert float(rounded.leverage * 2 * u @ u) > 1  # Σ less the sample's share has a negative eigenvalue
    scores, familiarity = whitening.leave_one_out(rounded, w, torch.from_numpy(y), n)
    assert scores.isfinite().all()
    assert familiarity.isfinite().all()


def test_classes_very_far_apart_have_a_spread_in_float32():
    """More classes than dimensions, thousands of times their samples' noise apart."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 3)
    z = torch.from_numpy(1e4 * rng.normal(size=(40, 4))[y] + rng.normal(size=(120, 4))).float()
    now = statistics.update(None, None, z, torch.from_numpy(y), 40)
    scatter, unit = symmetric.add(None, None, now.scatter, 32, torch.Generator())
    space = whitening.build(now.means, now.counts, scatter, unit, torch.tensor(len(z)))
    assert space.familiarity(space.whiten(z)).isfinite().all()


def test_a_scatter_that_rounding_made_impossible_is_helped():
    """Two features that vary as one, rounded apart: less than no variance in one direction, and next to no ε."""
    scatter = symmetric.pack(torch.tensor([[1.0, 1.002], [1.002, 1.0]])).half()
    means, counts = torch.tensor([[0.0, 0.0], [1.0, 2.0]]), torch.tensor([500_000, 500_000])
    space = whitening.build(means, counts, scatter, torch.tensor(1e6), torch.tensor(1_000_000))
    sigma = space.factor.T @ space.factor
    assert float(sigma[0, 0]) == pytest.approx(float(sigma[1, 1]), rel=1e-6)  # both lifted, by the same
    assert float(sigma[0, 1]) == pytest.approx(1.002, abs=1e-3)
    assert float(sigma[0, 1]) < float(sigma[0, 0]) < 1.02  # and by no more than it takes
    assert torch.isfinite(space.cosines(space.whiten(torch.tensor([[0.1, 0.0], [0.9, 2.1]])))).all()
    assert space.noise.tolist() == [0, 0]  # what was added is no noise of samples, and there is none less than nothing


@pytest.mark.timeout(20)  # it went on for ever
@pytest.mark.parametrize("unit", [1e-30, 1e-36, 1e-38, 1e-39, 1e-44])
def test_features_so_small_that_their_squares_vanish_have_a_space(unit):
    scatter = symmetric.pack(torch.tensor([[1.0, 1.002], [1.002, 1.0]])).half()
    means, counts = torch.tensor([[0.0, 0.0], [1.0, 2.0]]) * unit**0.5, torch.tensor([500_000, 500_000])
    space = whitening.build(means, counts, scatter, torch.tensor(unit), torch.tensor(1_000_000))
    assert space.cosines(space.whiten(means)).isfinite().all()
