"""Linear algebra in blocks, the normal distribution, and random signs, against what numpy and mathematics say."""

from statistics import NormalDist

import numpy as np
import pytest

from engram.stats import linalg, normal
from engram.stats.projection import signs


def positive(d: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(2 * d, d))
    return x.T @ x / d


@pytest.mark.parametrize(("dtype", "exact"), [(np.float64, 1e-10), (np.float32, 1e-3)])
@pytest.mark.parametrize("d", [1, 255, 256, 257, 600])
def test_solving_in_blocks_is_solving(d: int, dtype: type, exact: float):
    matrix, rows = positive(d), np.random.default_rng(1).normal(size=(7, d))
    given = np.triu(matrix).astype(dtype)
    given += np.tril(np.full((d, d), 77, dtype), -1) * (np.arange(d)[:, None] // linalg.BLOCK > np.arange(d) // 256)
    factor = linalg.cholesky(given)
    found = linalg.solve(factor, rows.astype(dtype))
    assert found.dtype == dtype
    lower = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(found, np.linalg.solve(lower, rows.T).T, atol=exact * np.abs(rows).max() * d**0.5)


@pytest.mark.parametrize("at", [3, 300])
def test_a_matrix_that_is_not_positive_definite_is_refused(at: int):
    matrix = np.triu(positive(400))
    matrix[at, at] = -1
    with pytest.raises(np.linalg.LinAlgError):
        linalg.cholesky(matrix)


def test_the_normal_distribution_function():
    z = np.concatenate([np.linspace(-9, 9, 1001), [-1e9, 1e9]])
    assert np.abs(normal.below(z) - [NormalDist().cdf(one) for one in z]).max() < 1e-6
    assert normal.below(np.zeros((2, 3))).shape == (2, 3)


def test_the_signs_of_a_seed_never_change():
    """A model file keeps the seed alone, so another stream of numbers would make it useless."""
    matrix = signs(5, 4, 0) * 2
    assert matrix.astype(int).tolist() == [
        [1, 1, 1, 1],
        [1, -1, 1, -1],
        [-1, 1, -1, -1],
        [-1, -1, -1, 1],
        [-1, 1, -1, -1],
    ]
    assert np.sign(signs(100, 70, 7)[-1, :8]).astype(int).tolist() == [-1, -1, -1, 1, -1, -1, 1, -1]
    assert matrix.dtype == np.float32


def test_every_sign_is_plus_or_minus_one_over_the_root_of_the_width():
    matrix = signs(300, 100, 1)
    assert np.array_equal(np.abs(matrix), np.full((300, 100), np.float32(0.1)))
    assert abs(float(np.sign(matrix).mean())) < 0.02
    assert not np.array_equal(matrix, signs(300, 100, 2))


def test_lengths_and_angles_are_kept_on_average():
    x = np.random.default_rng(0).normal(size=(40, 3000)).astype(np.float32)
    x[20:] = x[:20] + 0.5 * x[20:]
    projected = x @ signs(3000, 1000, 3)
    ratio = np.square(projected).sum(axis=1) / np.square(x).sum(axis=1)
    assert abs(float(ratio.mean()) - 1) < 0.03

    def cosines(rows):
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return (unit[:20] * unit[20:]).sum(axis=1)

    assert np.abs(cosines(x) - cosines(projected)).max() < 0.1
