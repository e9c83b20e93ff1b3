"""Leave-one-out against learning without the sample, and what may be merged and taken away."""

from dataclasses import replace

import numpy as np
import pytest

from engram.learners import registry
from engram.learners.base import Learner, LeavesOut, Mergeable, Subtracts
from engram.learners.nearest_neighbour import NearestNeighbour
from engram.learners.slda import SLDA
from engram.learners.trying import blobs, save_and_load
from engram.learners.whitened import Whitened

# How far leave-one-out may be from learning without: whitened leaves N, the trace and ε as they are, SLDA the trace.
APART = {"whitened": 4e-3, "slda": 1e-4, "ncm": 1e-5, "1nn": 1e-4}


def new(name: str, seed: int = 0, **settings: object) -> Learner:
    bits = {"kept_bits": 64, "transform": "none"} if name == "whitened" else {}
    return registry.find(name).new(bits | settings, seed=seed)


def samples(sizes: dict[str, int], d: int = 8, seed: int = 0) -> tuple[np.ndarray, list[str]]:
    rng, y = np.random.default_rng(seed), [label for label, n in sizes.items() for _ in range(n)]
    centre = {label: 2 * np.random.default_rng(ord(label)).normal(size=d) for label in sizes}
    skew = np.random.default_rng(1).normal(size=(d, d)) / d**0.5
    return (np.stack([centre[label] for label in y]) + rng.normal(size=(len(y), d)) @ skew).astype(np.float32), y


@pytest.mark.parametrize("name", APART)
def test_leaving_one_out_is_learning_without_it(name: str):
    x, y = samples({"a": 60, "b": 20, "c": 2, "d": 90})
    settings = {"shrinkage": 1e-6} if name == "slda" else {}
    learner = new(name, **settings).learn(x, y)
    assert isinstance(learner, LeavesOut)
    _, found = learner.judged(x, y)
    seen, some = learner.score(x).values, [*range(0, len(x), 9), 80, 81]
    refitted = []
    for i in some:
        rest = np.arange(len(x)) != i
        part = new(name, **settings).learn(x[rest], [y[j] for j in np.flatnonzero(rest)])
        refitted.append(part.score(x[i : i + 1]).values[0, part.rows(learner.labels)])
    size = np.abs(refitted).max()
    np.testing.assert_allclose(found.values[some], refitted, atol=APART[name] * size)
    assert np.abs(found.values[some] - refitted).mean() < np.abs(seen[some] - refitted).mean() / 10


@pytest.mark.parametrize("name", APART)
def test_without_its_only_sample_a_class_is_no_answer(name: str):
    x, y = samples({"a": 8, "b": 8, "c": 1})
    learner = new(name).learn(x, y)
    _, found = learner.judged(x[-1:], ["c"])
    assert learner.score(x[-1:]).values.argmax() == 2
    assert found.values.argmax() < 2
    assert np.isfinite(found.values).all()
    _, others = learner.judged(x[:8], y[:8])
    assert (others.values.argmax(axis=1) == 0).all()
    np.testing.assert_allclose(others.values[:, 2], learner.score(x[:8]).values[:, 2], rtol=0.3, atol=0.2)


def test_with_room_for_few_1nn_leaves_out_what_is_stored_alone():
    x, y = samples({"a": 40, "b": 40})
    learner = NearestNeighbour.new({"samples": 20}).learn(x, y)
    assert learner.stored is not None
    stored = (x[:, None] == learner.stored[None]).all(axis=2).any(axis=1)
    assert stored.sum() == 20
    _, found = learner.judged(x, y)
    scores = learner.score(x).values
    np.testing.assert_array_equal(found.values[~stored], scores[~stored])
    own = np.array([0 if label == "a" else 1 for label in y])
    assert (found.values[stored, own[stored]] < scores[stored, own[stored]] - 1e-3).all()


# --- 1-NN -------------------------------------------------------------------------------------------------------------


def test_1nn_is_the_distance_to_the_nearest_sample_however_far_from_nought():
    x, y = samples({"a": 9, "b": 5, "c": 1})
    x = x + np.float32(1000)
    learner = NearestNeighbour.new().learn(x, y).learn(x[:3] + 1, ["c", "c", "b"])
    every, of = np.concatenate([x, x[:3] + 1]).astype(np.float64), [*y, "c", "c", "b"]
    for i, query in enumerate(x[::4] + np.float32(0.25)):
        for c, label in enumerate(learner.labels):
            nearest = min(np.linalg.norm(one - query) for one, other in zip(every, of, strict=True) if other == label)
            assert learner.score(query[None]).values[0, c] == pytest.approx(-nearest, rel=1e-3), (i, label)


def stored(learner: NearestNeighbour) -> list[int]:
    assert learner.targets is not None
    return np.bincount(learner.targets).tolist()


def test_every_class_has_its_share_of_the_room():
    learner, shares = NearestNeighbour.new({"samples": 20}), []
    for task in ("ab", "c", "d", "e"):
        learner = learner.learn(*blobs(task))
        shares.append(stored(learner))
    assert shares == [[10] * 2, [6] * 3, [5] * 4, [4] * 5]
    few = NearestNeighbour.new({"samples": 2}).learn(*blobs("ab")).learn(*blobs("cde"))
    assert stored(few) == [1] * 5
    halves = [NearestNeighbour.new({"samples": 20}).learn(*blobs(task)) for task in ("ab", "cd")]
    assert stored(halves[0].merge(halves[1])) == [5] * 4


def test_new_samples_are_drawn_with_the_seed_and_old_ones_truncated():
    x, y = blobs("ab")
    learner, again, other = (NearestNeighbour.new({"samples": 20}, seed=seed).learn(x, y) for seed in (0, 0, 1))
    assert np.array_equal(learner.stored, again.stored)
    assert not np.array_equal(learner.stored, other.stored)
    more = learner.learn(*blobs("c"))
    assert np.array_equal(more.stored[:12], np.concatenate([learner.stored[:6], learner.stored[10:16]]))
    same = learner.learn(*blobs("a", seed=7))
    kept = (same.stored[:10, None] == learner.stored[None, :10]).all(axis=2).any(axis=1)
    assert np.array_equal(same.stored[10:], learner.stored[10:])
    assert 0 < kept.sum() < 10


# --- SLDA -------------------------------------------------------------------------------------------------------------


def test_slda_is_the_log_density_of_a_shared_covariance():
    x, y = samples({"a": 30, "b": 7, "c": 3})
    learner = SLDA.new({"shrinkage": 0.1}).learn(x[:20], y[:20]).learn(x[20:], y[20:])
    rows = {label: x[[one == label for one in y]].astype(np.float64) for label in "abc"}
    means = {label: rows[label].mean(axis=0) for label in "abc"}
    scatter = sum(np.outer(z - means[label], z - means[label]) for label in "abc" for z in rows[label]) / 40
    inverse = np.linalg.inv(0.9 * scatter + 0.1 * np.trace(scatter) / 8 * np.eye(8))
    expected = [[m @ inverse @ z - m @ inverse @ m / 2 for m in map(means.get, learner.labels)] for z in x]
    np.testing.assert_allclose(learner.score(x).values, expected, rtol=1e-3, atol=1e-2)
    one_each = SLDA.new().learn(x[[0, 35, 39]], list("abc"))  # nothing varies: the sphere
    assert np.isfinite(one_each.score(x).values).all()


def test_what_slda_forgets_and_renames_it_goes_on_answering_by():
    x, y = samples({"a": 30, "b": 7, "c": 3})
    learner = SLDA.new().learn(x, y)
    less = save_and_load(learner.forget("b").rename("c", "z"))
    assert less.labels == ("a", "z")
    assert np.array_equal(less.score(x).values, learner.score(x).values[:, [0, 2]])


def test_a_slim_slda_of_before_answers_forgets_and_does_not_learn():
    x, y = samples({"a": 30, "b": 7, "c": 3})
    learner = SLDA.new().learn(x, y)
    slim = replace(learner, sums=None, slim=(learner.labels, *learner.readout))
    read = save_and_load(slim)
    assert (read.can_learn, read.labels) == (False, ("a", "b", "c"))
    assert np.array_equal(read.score(x).values, learner.score(x).values)
    assert save_and_load(read.forget("a").rename("b", "z")).labels == ("z", "c")
    assert save_and_load(read.forget("a").forget("b").forget("c")).labels == ()
    for impossible in (lambda: read.learn(x, y), read.empty, lambda: learner.merge(read), lambda: read.merge(learner)):
        with pytest.raises(ValueError, match="saved slim"):
            impossible()


# --- merged and taken away --------------------------------------------------------------------------------------------


def test_which_methods_merge_and_take_away():
    kinds = {name: registry.find(name) for name in registry.BUILT_IN}
    merging = {name for name, kind in kinds.items() if issubclass(kind, Mergeable)}
    assert merging == {"whitened", "imagenet", "slda", "ncm", "1nn"}
    assert {name for name, kind in kinds.items() if issubclass(kind, Subtracts)} == {"whitened", "slda", "ncm"}


def refusal(impossible) -> str:
    with pytest.raises(ValueError, match=r".") as error:
        impossible()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_mismatch_is_one_line_that_names_both():
    x, y = samples({"a": 5, "b": 3})
    wide = np.abs(np.random.default_rng(0).normal(size=(3, 40))).astype(np.float32)
    one = new("whitened").learn(x, y)
    rooted, narrow, other = (
        new("whitened", transform="sqrt").learn(x, y), new("whitened").learn(x[:, :4], y), new("ncm").learn(x, y),
    )  # fmt: skip
    seeds = [new("whitened", seed, width=9).learn(wide, y[:3]) for seed in (1, 2)]
    for mine, theirs, words in (
        (one, rooted, ("transform", "none", "sqrt")),
        (one, narrow, ("numbers of features", "8", "4")),
        (one, other, ("whitened", "ncm")),
        (*seeds, ("seeds of the projection", "1", "2")),
        (new("1nn").learn(x, y), new("1nn").learn(x[:, :4], y), ("numbers of features", "8", "4")),
        (new("1nn").learn(x, y), other, ("1nn", "ncm")),
        (new("slda", shrinkage=0.5).learn(x, y), new("slda").learn(x, y), ("shrinkage", "0.5", "0.01")),
    ):
        said = refusal(lambda mine=mine, theirs=theirs: mine.merge(theirs))
        assert all(word in said for word in words), said
        fresh = type(mine)(mine.settings)  # with which both could be merged, but not with each other
        assert refusal(lambda fresh=fresh, mine=mine, theirs=theirs: fresh.merge(mine, theirs)) == said
        if isinstance(mine, Subtracts):
            assert refusal(lambda mine=mine, theirs=theirs: mine.subtract(theirs)) == said


def test_what_cannot_be_taken_away_is_refused():
    x, y = samples({"a": 5, "b": 3, "c": 4})
    one, first = new("whitened").learn(x, y), new("whitened").learn(x[:5], y[:5])
    assert "unknown class 'c'" in refusal(lambda: first.subtract(new("whitened").learn(x[8:], y[8:])))
    assert "fewer samples" in refusal(lambda: first.subtract(new("whitened").learn(x[:6], ["a"] * 6)))
    assert "no class would be left" in refusal(lambda: one.subtract(one))
    assert one.subtract(new("whitened")).labels == one.labels


@pytest.mark.parametrize("mine", [16, 32, 64])
@pytest.mark.parametrize("theirs", [16, 32, 64])
def test_bits_may_differ_and_are_those_of_the_first(mine: int, theirs: int):
    x, y = samples({"a": 9, "b": 9})
    other = save_and_load(new("whitened", kept_bits=theirs).learn(x, y))
    for one in (new("whitened", kept_bits=mine), new("whitened", kept_bits=mine).learn(x[:4], ["c"] * 4)):
        merged = save_and_load(one.merge(other))
        assert merged.settings.kept_bits == mine
        assert merged.state().arrays["classes.means"].dtype.itemsize * 8 == mine
        assert set(merged.labels) >= {"a", "b"}


def test_what_knows_nothing_takes_over_the_projection_of_what_it_merges():
    rng = np.random.default_rng(0)
    x, y = rng.random((6, 30)).astype(np.float32), list("aabbcc")
    other = new("whitened", 5, width=9).learn(x, y)
    merged = save_and_load(new("whitened", width=9).merge(other))
    np.testing.assert_allclose(merged.score(x).values, other.score(x).values, rtol=1e-6)


def test_units_may_differ_when_merging_and_taking_away():
    x, y = samples({"a": 5, "b": 3, "c": 4})
    x[8:] *= 1000
    small, large = new("whitened").learn(x[:8], y[:8]), new("whitened").learn(x[8:], y[8:])
    assert large.unit > 100 * small.unit
    whole = new("whitened").learn(x, y)
    for merged in (small.merge(large), large.merge(small)):
        assert merged.unit == large.unit
        columns = merged.rows(whole.labels)
        np.testing.assert_allclose(merged.score(x).values[:, columns], whole.score(x).values, atol=1e-5)
        for gone, left in ((small, large), (large, small)):
            rest = merged.subtract(gone)
            np.testing.assert_allclose(rest.score(x).values, left.score(x).values, atol=1e-3)


def test_empty_learners_are_taught_elsewhere_in_the_same_unit():
    x, y = samples({"a": 5, "b": 3})
    one = new("whitened").learn(x, y)
    blank = one.empty()
    assert (blank.labels, blank.unit, blank.updates) == ((), one.unit, 0)
    assert blank.state().arrays == {}
    assert blank.learn(1000 * x, y).unit == one.unit
    assert isinstance(one, Whitened)
    assert blank.calibration.known is None
