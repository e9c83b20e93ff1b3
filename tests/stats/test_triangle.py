"""Triangles in half the room, and rounding at random."""

import numpy as np
import pytest

from engram.stats.triangle import Triangle, round_to


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def scatter(d: int, n: int = 40, seed: int = 0) -> np.ndarray:
    x = random(seed).normal(size=(n, d))
    return x.T @ x


@pytest.mark.parametrize("d", [1, 2, 3, 4, 7, 10])
def test_packing_keeps_the_upper_triangle_in_half_the_room(d: int):
    matrix = random(d).normal(size=(d, d))
    triangle = Triangle.of(matrix)
    assert triangle.packed.shape == ((d + 1) // 2, d + 1)
    assert triangle.width == d
    assert np.array_equal(triangle.unpack(np.float64), np.triu(matrix))
    assert triangle.trace == pytest.approx(np.trace(matrix))
    np.testing.assert_allclose(triangle.scaled(3.0).unpack(np.float32, 0.5), 1.5 * np.triu(matrix), rtol=1e-6)
    assert triangle.scaled(3.0).trace == pytest.approx(3 * np.trace(matrix))


@pytest.mark.parametrize("d", [5, 6])
def test_sums_of_packed_matrices_are_packed_sums_whatever_their_units(d: int):
    one, two = scatter(d, seed=1), scatter(d, seed=2)
    for made in (Triangle.of(one) + Triangle.of(two / 4).scaled(4), Triangle.of(2 * one + two) - Triangle.of(one)):
        np.testing.assert_allclose(made.unpack(np.float64), np.triu(one + two), rtol=1e-12)


@pytest.mark.parametrize(("bits", "dtype"), [(16, np.float16), (32, np.float32), (64, np.float64)])
def test_bits_are_those_of_the_number(bits: int, dtype: type):
    values = np.array([1.5, -0.25, 0.0, 1024.0, -65504.0])  # all of them exact in 16 bits: nothing to round
    rounded = round_to(values, bits, random())
    assert rounded.dtype == dtype
    assert np.array_equal(rounded, values)


def test_rounding_goes_to_one_of_the_two_neighbours_and_is_right_on_average():
    values = (random().normal(size=200) * 10.0 ** random(1).integers(-3, 4, 200)).astype(np.float32)
    values[np.abs(values) < 2**-14] = 2**-12 / 3  # below, a float16 has its smallest step
    values[:4] = 1 / 3, -1 / 3, 1 - 2**-12, 2 + 2**-20
    draws = np.stack([round_to(values, 16, random(seed)) for seed in range(2000)]).astype(np.float64)
    nearest = values.astype(np.float16)
    other = np.nextafter(nearest, np.where(values > nearest, np.inf, -np.inf).astype(np.float16)).astype(np.float64)
    assert ((draws == nearest) | (draws == other)).all()
    ulp = np.abs(other - nearest)
    assert (np.abs(draws.mean(axis=0) - values) < 0.06 * ulp).all()  # 5 standard errors are .056
    assert (draws.std(axis=0)[:2] > 0.3 * ulp[:2]).all()


def test_small_sums_do_not_vanish_in_a_large_one():
    """2,000 times 1/4 of an ulp, added to 1: rounded to the nearest, it would stay 1."""
    total, source = np.ones(500, np.float16), random()
    for _ in range(2000):
        total = round_to(total.astype(np.float32) + np.float32(2**-12), 16, source)
    assert float(total.astype(np.float64).mean()) == pytest.approx(1 + 2000 * 2**-12, rel=0.002)


def test_a_seed_repeats_the_rounding_also_of_a_strided_view():
    values = random().normal(size=(6, 8)).astype(np.float32)
    assert np.array_equal(round_to(values, 16, random(3)), round_to(values, 16, random(3)))
    assert not np.array_equal(round_to(values, 16, random(3)), round_to(values, 16, random(4)))
    view = values[:, ::2].T
    assert np.array_equal(round_to(view, 16, random()), round_to(view.copy(), 16, random()))


@pytest.mark.parametrize("value", [65_536.0, -1e6, np.inf, np.nan])
def test_what_16_bits_cannot_hold_is_refused(value: float):
    with pytest.raises(ValueError, match="scale them"):
        round_to(np.array([1.0, value]), 16, random())
    if abs(value) < np.inf:
        assert round_to(np.array([value]), 32, random()).tolist() == [value]


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_rounding_is_in_units_of_the_mean_diagonal(bits: int):
    matrix = 1000 * scatter(5)
    kept = Triangle.of(matrix).rounded(bits, 1, 5, random())
    assert kept.unit == pytest.approx(np.trace(matrix) / 5, rel=1e-9)
    assert kept.packed.dtype.itemsize * 8 == bits
    np.testing.assert_allclose(kept.unpack(np.float64), np.triu(matrix), atol=kept.unit * {16: 2e-3}.get(bits, 1e-6))


def test_what_is_rounded_is_not_rounded_again_unless_it_is_kept_in_other_bits():
    kept = Triangle.of(scatter(5)).rounded(16, 1, 5, random())
    assert kept.rounded(16, 1, 5, random(9)) is kept
    wide = kept.rounded(64, 1, 5, random())
    assert wide.packed.dtype == np.float64
    np.testing.assert_allclose(wide.unpack(np.float64), kept.unpack(np.float64), rtol=1e-6)
    assert wide.rounded(16, 1, 5, random()).packed.dtype == np.float16
    assert wide.rounded(32, 1, 5, random()).packed.dtype == np.float32


def test_where_16_bits_would_tell_32_are_kept():
    """The errors of all tasks add up to half of what ε adds to Σ: more samples or more tasks mean more bits."""
    triangle, d = Triangle.of(scatter(64, 200)), 64
    assert triangle.rounded(16, 1, 50, random()).packed.dtype == np.float16
    assert triangle.rounded(16, 1, 10**6, random()).packed.dtype == np.float32
    upper = triangle.unpack(np.float64) / (triangle.trace / d)
    size = np.sqrt(2 * np.square(upper).sum()) / d
    error = 2 * np.sqrt(d) * size * 2**-10 / 6**0.5 / 1.4  # the norm of a random matrix of such errors, after one task
    samples = 0.5 * d / error  # with so many, ε adds d/N: half of it is as much
    assert triangle.rounded(16, 0, int(samples * 0.97), random()).packed.dtype == np.float16
    assert triangle.rounded(16, 0, int(samples * 1.03), random()).packed.dtype == np.float32
    assert triangle.rounded(16, 3, int(samples * 0.97 / 2), random()).packed.dtype == np.float16
    assert triangle.rounded(16, 3, int(samples * 1.03 / 2), random()).packed.dtype == np.float32


@pytest.mark.parametrize("size", [0.0, 1e-42])
def test_nothing_and_next_to_nothing_are_kept_as_nothing(size: float):
    kept = Triangle.of(np.full((3, 3), size, np.float32)).rounded(16, 1, 5, random())
    assert kept.unit == 0
    assert not (kept.packed * kept.unit).any()
    assert np.isfinite(kept.packed).all()
    grown = kept + Triangle.of(7 * np.eye(3))
    np.testing.assert_allclose(grown.unpack(np.float64), 7 * np.eye(3))
