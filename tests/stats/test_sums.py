"""Sums of classes against sums written out in float64: pieces, order, there and back."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.stats.sums import Sums
from engram.stats.triangle import Triangle

RNG = np.random.default_rng(0)
Y = np.array(list("aaaaabccccccccddee"))
CENTRES = dict(zip("abcde", 3 * RNG.normal(size=(5, 5)), strict=True))
Z = np.stack([CENTRES[name] for name in Y]) + RNG.normal(size=(len(Y), 5)) @ RNG.normal(size=(5, 5))


def by_hand(rows) -> tuple[dict[str, int], dict[str, np.ndarray], np.ndarray]:
    """Counts, means and scatter of some of the samples, one at a time."""
    counts, means, scatter = {}, {}, np.zeros((5, 5))
    for name in sorted({Y[i] for i in rows}):
        own = [Z[i] for i in rows if Y[i] == name]
        counts[name], means[name] = len(own), sum(own) / len(own)
        for z in own:
            scatter += np.outer(z - means[name], z - means[name])
    return counts, means, scatter


def assert_are(sums: Sums, rows) -> None:
    counts, means, scatter = by_hand(rows)
    assert dict(zip(sums.labels, sums.counts.tolist(), strict=True)) == counts
    for label, mean in zip(sums.labels, sums.means, strict=True):
        np.testing.assert_allclose(mean, means[label], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(sums.scatter.unpack(np.float64), np.triu(scatter), rtol=1e-9, atol=1e-9)
    assert sums.samples == len(rows)


def of(rows) -> Sums:
    return Sums.of(Z[rows], Y[rows].tolist())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_pieces_in_any_order_and_any_taken_back_are_what_the_rest_at_once_is(data):
    piece_of = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(Y), max_size=len(Y)), label="piece"))
    pieces = [np.flatnonzero(piece_of == piece) for piece in data.draw(st.permutations(sorted(set(piece_of.tolist()))))]
    sums = [of(data.draw(st.permutations(rows.tolist()))) for rows in pieces]
    while len(sums) > 1:  # by any tree
        at = data.draw(st.integers(0, len(sums) - 2))
        sums[at : at + 2] = [sums[at] + sums[at + 1]]
    assert_are(sums[0], range(len(Y)))
    back = data.draw(st.lists(st.sampled_from(range(len(pieces))), unique=True, max_size=len(pieces) - 1))
    left = sums[0]
    for piece in back:
        left = left - of(pieces[piece])
    gone = {i for piece in back for i in pieces[piece].tolist()}
    assert_are(left, [i for i in range(len(Y)) if i not in gone])


def test_classes_are_in_the_order_they_came_in_and_by_name_within_one_task():
    first, second = of(np.flatnonzero((Y == "d") | (Y == "b"))), of(np.flatnonzero(Y < "d"))
    assert (first + second).labels == ("b", "d", "a", "c")
    assert (first + second - first).labels == ("b", "a", "c")


def test_in_single_precision_classes_far_from_nought_keep_their_scatter():
    z = (Z + 3000).astype(np.float32)
    sums = Sums.of(z, Y.tolist())
    exact = z.astype(np.float64)
    scatter = np.zeros((5, 5))
    for name in set(Y.tolist()):
        apart = exact[name == Y] - exact[name == Y].mean(axis=0)
        scatter += apart.T @ apart
    assert sums.means.dtype == np.float32
    np.testing.assert_allclose(sums.scatter.unpack(np.float64), np.triu(scatter), atol=1e-3 * np.abs(scatter).max())


def test_what_is_not_there_is_not_taken_away():
    some = of(np.flatnonzero(Y < "c"))
    with pytest.raises(ValueError, match="unknown class 'c'"):
        some - of(np.flatnonzero(Y == "c"))
    with pytest.raises(ValueError, match="fewer samples"):
        of(range(len(Y))) - Sums.of(Z[:7], ["a"] * 7)
    with pytest.raises(ValueError, match="fewer samples"):
        replace(some, samples=1) - of(np.flatnonzero(Y == "a"))


def test_where_one_sample_of_each_class_is_left_nothing_varies():
    rows = [0, 1, 2, 5, 6]
    left = of(rows) - of([0, 1])
    assert left.labels == ("a", "b", "c")
    assert not left.scatter.packed.any()


def test_a_class_that_goes_leaves_the_scatter_and_may_be_called_otherwise():
    whole = of(range(len(Y)))
    less = whole.without("b").renamed("c", "z")
    assert less.labels == ("a", "z", "d", "e")
    assert less.counts.tolist() == [5, 8, 2, 2]
    assert np.array_equal(less.means, whole.means[[0, 2, 3, 4]])
    assert less.scatter is whole.scatter
    assert less.samples == len(Y)


def test_sums_without_a_scatter_stay_without():
    plain, full = Sums.of(Z, Y.tolist(), scatter=False), of(range(len(Y)))
    assert plain.scatter is None
    assert (plain + full).scatter is None
    assert np.array_equal(plain.means, full.means)


def test_of_samples_times_a_power_of_two_everything_is_the_same_number_times_it():
    twice, scaled = Sums.of(4 * Z.astype(np.float32), Y.tolist()), Sums.of(Z.astype(np.float32), Y.tolist()).scaled(4)
    np.testing.assert_allclose(scaled.means, twice.means, rtol=1e-6)
    np.testing.assert_allclose(scaled.scatter.unpack(np.float64), twice.scatter.unpack(np.float64), rtol=1e-5)


def test_neither_side_of_a_sum_is_changed():
    one, two = of(range(9)), of(range(9, len(Y)))
    before = [(s.counts.copy(), s.means.copy(), s.scatter.packed.copy()) for s in (one, two)]
    one + two
    one - of(range(3))
    for sums, (counts, means, packed) in zip((one, two), before, strict=True):
        assert np.array_equal(sums.counts, counts)
        assert np.array_equal(sums.means, means)
        assert np.array_equal(sums.scatter.packed, packed)


def test_means_read_in_16_bits_are_added_to_in_32():
    packed = replace(of(range(9)), means=of(range(9)).means.astype(np.float16), scatter=Triangle(np.zeros((3, 6))))
    assert (packed + Sums.of(Z.astype(np.float32), Y.tolist())).means.dtype == np.float32
