"""Classes that were taught beside those of a head: which answers, on which scale, and what survives what."""

import numpy as np
import pytest

from engram import testing
from engram.learners.base import State
from engram.learners.imagenet import BINS, LOST, BesideImageNet, _likeness_left_out
from engram.learners.trying import blobs, predict, save_and_load
from engram.learners.whitened import Whitened

NAMES = ("e", "f", "g", "h")  # what is asked about of what the head knows; blobs of these names are where it has them
OTHERS = tuple(f"other {i}" for i in range(36))
OUTPUTS = NAMES + OTHERS


def head(width: int = 8):
    """The linear rule for blobs around known centres: log p = x·c - ‖c‖²/2 + …, less sure than it might be."""
    centres = [np.random.default_rng("abcdefghij".index(name)).normal(size=width) * 4 for name in NAMES]
    weight = np.stack([*centres, *np.random.default_rng(100).normal(size=(len(OTHERS), width)) * 4])
    return OUTPUTS, weight / 4, -np.square(weight).sum(axis=1) / 8


def make(*taught: str, n: int = 24) -> BesideImageNet:
    learner = BesideImageNet.new().adopt(*head(), 8)
    for task in taught:
        learner = learner.learn(*blobs(task, n))
    return learner


def share_right(learner: BesideImageNet, names: str) -> float:
    x, y = blobs(names, seed=9)
    return float(np.mean([one == other for one, other in zip(predict(learner, x), y, strict=True)]))


def test_it_answers_what_the_head_knows_before_it_is_taught():
    learner = make()
    assert learner.labels == learner.built_in == OUTPUTS
    assert share_right(learner, "efgh") == 1
    assert learner.counts().tolist() == [0] * 40
    assert learner.class_vectors() is None


@pytest.mark.parametrize("taught", [("a",), ("a", "b"), ("abc", "d")])
def test_taught_classes_and_those_of_the_head_are_both_answers(taught: tuple[str, ...]):
    learner, names = make(*taught), "".join(taught)
    assert learner.labels == (*names, *OUTPUTS)
    assert share_right(learner, names) > 0.9
    assert share_right(learner, "efgh") > 0.95
    assert set(predict(learner, blobs(names + "efgh", seed=9)[0], ["a", "f"])) == {"a", "f"}
    vectors = learner.class_vectors()
    assert np.isfinite(vectors).all(axis=1).tolist() == [True] * len(names) + [False] * 40


def test_scores_are_logarithms_of_probabilities():
    found = make("ab").score(blobs("aej")[0])
    assert (found.temperature, found.novelty) == (1, None)
    np.testing.assert_allclose(np.exp(found.values).sum(axis=1), 1, rtol=1e-5)
    assert make("ab").unknown_above(0.05) is None


def test_the_odds_are_even_where_few_taught_samples_are_less_alike():
    learner, likeness = make("ab"), np.linspace(0, 1, 2001)
    less = learner._less_alike(likeness)
    assert (np.diff(less) >= 0).all()
    assert less[0] < 1e-6
    even = likeness[(less < LOST).sum()]
    said = np.full((1, 40), np.log(1 / 40), np.float32)
    scores = np.exp(learner._joined(said, np.zeros((1, 2), np.float32), np.array([even])).values)
    np.testing.assert_allclose(scores[0], [0.25, 0.25, *[1 / 80] * 40], atol=2e-3)


def test_without_samples_to_compare_it_assumes_what_is_usual():
    assert make("a", n=1).alike.sum() == 0
    assert share_right(make("a", n=1), "efgh") > 0.9
    assert make("a", n=2).alike.sum() == 2


def test_likeness_left_out_is_that_of_a_learner_that_never_saw_the_sample():
    x, y = blobs("ab", n=6)
    learner = make().learn(x[:4], y[:4]).learn(x[4:], y[4:])
    roots, own = np.exp(learner.head.say(x) / 2), np.array([0] * 6 + [1] * 6)
    means = np.stack([roots[own == c].mean(axis=0) for c in (0, 1)])
    np.testing.assert_allclose(learner.said, means, atol=1e-3)
    found = _likeness_left_out(roots, own, means, np.array([6, 6]))
    for i in range(12):
        rest = np.arange(12) != i
        others = [roots[rest & (own == c)].mean(axis=0) for c in (0, 1)]
        expected = max(roots[i] @ other / np.linalg.norm(roots[i]) / np.linalg.norm(other) for other in others)
        assert found[i] == pytest.approx(expected, abs=1e-5)


def test_left_out_samples_are_answered_with_taught_classes_and_those_of_the_head():
    (x, y), (stray, _) = blobs("ab"), blobs("f", n=1, seed=3)
    x, y = np.concatenate([x, stray]), [*y, "a"]
    learner, scores = make().learn(x, y).judged(x, y)
    said = [learner.labels[row] for row in scores.values.argmax(axis=1)]
    assert np.mean([one == other for one, other in zip(said[:48], y, strict=False)]) > 0.95
    assert said[48] == "f"
    assert np.exp(scores.values[48]).max() > 0.5
    assert learner.taught.calibration.known is not None


def test_a_class_taught_under_a_name_of_the_head_takes_its_place():
    learner = make("a").learn(blobs("b")[0], ["f"] * 24)
    assert learner.labels == ("a", "f", "e", "g", "h", *OTHERS)
    assert learner.counts().tolist() == [24, 24, *[0] * 39]
    assert predict(learner, blobs("b", seed=9)[0]).count("f") > 22
    assert learner.forget("f").labels == ("a", "e", "g", "h", *OTHERS)


def test_forget_and_rename_classes_of_the_head():
    learner = make("ab").rename("e", "emu").forget("f")
    assert learner.labels == ("a", "b", "emu", "g", "h", *OTHERS)
    said = predict(learner, blobs("ef", seed=9)[0])
    assert said[:24].count("emu") > 22
    assert "f" not in said
    for old, new in (("a", "emu"), ("emu", "a"), ("g", "h")):
        with pytest.raises(ValueError, match="a class of that name exists"):
            learner.rename(old, new)
    with pytest.raises(ValueError, match="unknown class 'f'"):
        learner.forget("f")
    assert learner.rename("a", "ant").labels[0] == "ant"


def test_saving_loses_nothing_also_once_all_that_was_taught_is_forgotten():
    learner = make("ab").forget("g")
    loaded, (x, _) = save_and_load(learner), blobs("aej", seed=9)
    testing.assert_same_state(loaded.state(), learner.state())
    testing.assert_close(loaded.score(x).values, learner.score(x).values, "scores", 2e-2)
    testing.assert_close(
        loaded.learn(*blobs("c")).score(x).values, learner.learn(*blobs("c")).score(x).values, "scores", 2e-2
    )
    bare = save_and_load(learner.forget("a").forget("b"))
    assert bare.labels == bare.built_in
    assert bare.learn(*blobs("c")).alike.sum() == learner.alike.sum() + 24


def test_states_that_no_learner_has_are_refused():
    state = make("ab").state()
    for arrays, meta, said in (
        ({}, {"outputs": ["e"]}, "has the shape"),
        ({"classes.said": np.full((2, 40), 1.5, np.float16)}, {}, "out of its bounds"),
        ({"consolidation.alike": np.full(BINS, -1.0)}, {}, "out of its bounds"),
        ({"network.imagenet.weight": np.zeros((40, 9), np.float16)}, {}, "has the shape"),
        ({"network.imagenet.bias": np.zeros(40)}, {}, "is float64"),
    ):
        with pytest.raises(ValueError, match=said):
            BesideImageNet.from_state(State(state.arrays | arrays, state.meta | meta))
    for gone in ("network.imagenet.weight", "network.imagenet.bias", "classes.said", "consolidation.alike"):
        with pytest.raises(ValueError, match=gone):
            BesideImageNet.from_state(State({n: a for n, a in state.arrays.items() if n != gone}, state.meta))


def test_merging_is_having_learned_everything():
    one, other, both = make("ab").forget("e"), make("c", "b").forget("h"), make("ab", "c", "b")
    merged = one.merge(other)
    assert merged.labels == ("a", "b", "c", "f", "g", *OTHERS)
    np.testing.assert_allclose(merged.said, both.said, atol=1e-3)
    assert merged.alike.sum() == both.alike.sum() == 96
    assert share_right(merged, "abcfg") > 0.9
    blank = make("d").empty()
    assert blank.labels == OUTPUTS
    assert make().merge(blank.learn(*blobs("fa"))).labels == ("a", "f", "e", "g", "h", *OTHERS)


def test_models_of_other_heads_or_without_one_cannot_be_merged():
    names, weight, bias = head()
    bare, plain = BesideImageNet.new().learn(*blobs("ab")), Whitened.new().learn(*blobs("ab"))
    another = BesideImageNet.new().adopt(names, weight * 2, bias, 8).learn(*blobs("ab"))
    for other in (bare, another, plain):
        with pytest.raises(ValueError, match=r"different networks|with one of whitened"):
            make("c").merge(other)
    with pytest.raises(ValueError, match="different networks"):
        bare.merge(make("c"))


def test_without_a_head_it_is_whitened_prototypes():
    (x, y), (queries, _) = blobs("ab"), blobs("aj", seed=9)
    bare, plain = (kind.new(seed=4).learn(x, y).judged(x, y)[0] for kind in (BesideImageNet, Whitened))
    for one, other in zip(bare.score(queries), plain.score(queries), strict=True):
        assert np.array_equal(one, other)
    assert bare.unknown_above(0.05) == plain.unknown_above(0.05) is not None
