"""Classes that were taught beside those of a head: which answers, on which scale, and what survives what."""

import numpy as np
import pytest
import torch
from torch import Tensor

from engram.learner import State
from engram.methods.imagenet import LOST, BesideImageNet, _likeness_left_out
from engram.methods.whitened import Whitened
from engram.testing import blobs, reachable_arrays, save_and_load

NAMES = ["e", "f", "g", "h"]  # what is asked about of what the head knows; blobs of these names are where it has them
OTHERS = [f"other {i}" for i in range(36)]
OUTPUTS = NAMES + OTHERS


def head(width: int = 8) -> tuple[list[str], Tensor, Tensor]:
    """The linear rule for blobs around known centres: log p = x·c - ‖c‖²/2 + …, less sure than it might be."""
    centres = [np.random.default_rng("abcdefghij".index(name)).normal(size=width) * 4 for name in NAMES]
    centres += list(np.random.default_rng(100).normal(size=(len(OTHERS), width)) * 4)
    weight = torch.from_numpy(np.stack(centres)).float()
    return OUTPUTS, weight / 4, -weight.square().sum(dim=1) / 8


def make(*taught: list[str], n: int = 24) -> BesideImageNet:
    learner = BesideImageNet(device="cpu")
    learner.adopt(*head(), 8)
    for task in taught:
        learner.learn(*blobs(task, n))
    return learner


def share_right(learner: BesideImageNet, *names: str) -> float:
    X, y = blobs(list(names), seed=9)
    return float((learner.predict(X) == y).mean())


def test_it_answers_what_the_head_knows_before_it_is_taught():
    learner = make()
    assert (learner.labels, learner.built_in) == (OUTPUTS, OUTPUTS)
    assert share_right(learner, *NAMES) == 1
    assert learner.counts() == [0] * 40
    assert learner.class_vectors() is None


@pytest.mark.parametrize("taught", [(["a"],), (["a"], ["b"]), (["a", "b", "c"], ["d"])])
def test_taught_classes_and_those_of_the_head_are_both_answered(taught):
    learner, names = make(*taught), [name for task in taught for name in task]
    assert learner.labels == names + OUTPUTS
    assert share_right(learner, *names) > 0.9
    assert share_right(learner, *NAMES) > 0.95
    X, y = blobs([*names, *NAMES], seed=9)
    assert (learner.predict(X, among=names) == y)[: 24 * len(names)].mean() > 0.9
    assert set(learner.predict(X, among=["a", "f"])) == {"a", "f"}


def test_scores_are_logarithms_of_probabilities():
    learner = make(["a", "b"])
    X, _ = blobs(["a", "e", "j"])
    assert learner.temperature == 1
    np.testing.assert_allclose(np.exp(learner.scores(X)).sum(axis=1), 1, rtol=1e-5)
    assert np.array_equal(learner.familiarity(X), learner.scores(X).max(axis=1))
    assert learner.unknown_below() is None


def test_the_odds_are_even_where_few_taught_pictures_are_less_alike():
    learner = make(["a", "b"])
    likeness = torch.linspace(0, 1, 2001)
    less = learner._less_alike(likeness)
    assert (less.diff() >= 0).all()
    assert less[0] < 1e-6
    even = likeness[(less < LOST).sum()]
    said = torch.full((1, 40), 1 / 40).log()
    scores = learner._join(said, torch.zeros(1, 2), even[None]).exp()
    np.testing.assert_allclose(scores[0], [0.25, 0.25, *[1 / 80] * 40], atol=2e-3)


def test_without_samples_to_compare_it_assumes_what_is_usual():
    learner = make(["a"], n=1)
    assert learner.tensors["consolidation.alike"].sum() == 0
    assert share_right(learner, *NAMES) > 0.9
    assert make(["a"], n=2).tensors["consolidation.alike"].sum() == 2


def test_likeness_left_out_is_that_of_a_learner_that_never_saw_the_sample():
    X, y = blobs(["a", "b"], n=6)
    learner = make()
    learner.learn(X, y)
    roots = (learner._say(torch.from_numpy(X).float()) / 2).exp()
    targets = torch.tensor([0] * 6 + [1] * 6)
    means = torch.stack([roots[:6].mean(dim=0), roots[6:].mean(dim=0)])
    np.testing.assert_allclose(learner.tensors["classes.said"].float(), means, atol=1e-3)
    found = _likeness_left_out(roots, targets, means, torch.tensor([6, 6]))
    for i in range(12):
        rest = [j for j in range(12) if j != i]
        others = torch.stack([roots[[j for j in rest if targets[j] == c]].mean(dim=0) for c in (0, 1)])
        expected = torch.nn.functional.cosine_similarity(roots[i], others).max()
        np.testing.assert_allclose(found[i], expected, atol=1e-5)


def test_leave_one_out_answers_with_taught_classes_and_those_of_the_head():
    X, y = blobs(["a", "b"])
    stray, _ = blobs(["f"], n=1, seed=3)
    learner = make()
    learner.learn(np.concatenate([X, stray]), [*y, "a"])
    found = learner.leave_one_out(np.concatenate([X, stray]), [*y, "a"])
    assert found is not None
    answers = np.asarray(learner.labels)[found.rows]
    assert (answers[:48] == y).mean() > 0.95
    assert answers[48] == "f"
    assert found.probabilities[48] > 0.5


def test_a_class_taught_under_a_name_of_the_head_takes_its_place():
    learner = make(["a"])
    X, _ = blobs(["b"])
    learner.learn(X, ["f"] * 24)
    assert learner.labels == ["a", "f", "e", "g", "h", *OTHERS]
    assert (learner.built_in, learner.counts()) == (["e", "g", "h", *OTHERS], [24, 24, *[0] * 39])
    assert (learner.predict(blobs(["b"], seed=9)[0]) == "f").mean() > 0.95
    learner.forget("f")
    assert learner.labels == ["a", "e", "g", "h", *OTHERS]
    vectors = learner.class_vectors()
    assert vectors is not None
    assert np.isfinite(vectors).all(axis=1).tolist() == [True, *[False] * 39]


def test_forget_and_rename_classes_of_the_head():
    learner = make(["a", "b"])
    learner.rename("e", "emu")
    learner.forget("f")
    assert learner.labels == ["a", "b", "emu", "g", "h", *OTHERS]
    X, _ = blobs(["e", "f"], seed=9)
    answers = learner.predict(X)
    assert (answers[:24] == "emu").mean() > 0.95
    assert "f" not in answers
    for old, new in (("a", "emu"), ("emu", "a"), ("g", "h")):
        with pytest.raises(ValueError, match="a class of that name exists"):
            learner.rename(old, new)
    with pytest.raises(ValueError, match="unknown class 'f'"):
        learner.forget("f")
    learner.rename("a", "ant")
    assert learner.labels == ["ant", "b", "emu", "g", "h", *OTHERS]


def test_saving_loses_nothing():
    learner = make(["a", "b"])
    learner.forget("g")
    loaded = save_and_load(learner)
    X, _ = blobs(["a", "e", "j"], seed=9)
    assert loaded.labels == learner.labels
    assert np.array_equal(loaded.scores(X), learner.scores(X))
    assert learner.memory().total == sum(values.nbytes for values in reachable_arrays(learner))
    for each in (learner, loaded):
        each.learn(*blobs(["c"]))
    assert np.array_equal(loaded.scores(X), learner.scores(X))
    state = learner.state()
    with pytest.raises(ValueError, match="has the shape"):
        BesideImageNet.from_state(State(state.tensors, state.meta | {"outputs": ["e"]}))


def test_merging_is_having_learned_everything():
    one, other, both = make(["a", "b"]), make(["c"], ["b"]), make(["a", "b"], ["c"], ["b"])
    one.forget("e")
    other.forget("h")
    one.merge(other)
    assert one.labels == ["a", "b", "c", "f", "g", *OTHERS]
    np.testing.assert_allclose(one.tensors["classes.said"].float(), both.tensors["classes.said"].float(), atol=1e-3)
    assert one.tensors["consolidation.alike"].sum() == both.tensors["consolidation.alike"].sum() == 96
    assert share_right(one, "a", "b", "c", "f", "g") > 0.9
    taught = make()
    blank = taught.blank()
    blank.learn(*blobs(["f", "a"]))
    taught.merge(blank)
    assert taught.labels == ["a", "f", "e", "g", "h", *OTHERS]
    assert taught.tensors["consolidation.alike"].sum() == 0
    taught.calibrate(*blobs(["f", "a"]))
    assert taught.tensors["consolidation.alike"].sum() == 48


def test_what_cannot_be_merged_is_refused():
    bare, alike = BesideImageNet(device="cpu"), Whitened(device="cpu")
    for other in (bare, alike):
        other.learn(*blobs(["a", "b"]))
    names, weight, bias = head()
    another = BesideImageNet(device="cpu")
    another.adopt(names, weight * 2, bias, 8)
    for other, why in ((bare, "different networks"), (another, "different networks"), (alike, "with one of whitened")):
        with pytest.raises(ValueError, match=why):
            make(["c"]).merge(other)


def test_without_a_head_it_is_whitened_prototypes():
    bare, plain = BesideImageNet(device="cpu"), Whitened(device="cpu")
    for learner in (bare, plain):
        learner.learn(*blobs(["a", "b"]))
    X, _ = blobs(["a", "j"], seed=9)
    assert np.array_equal(bare.scores(X), plain.scores(X))
    assert np.array_equal(bare.familiarity(X), plain.familiarity(X))
    assert (bare.temperature, bare.unknown_below()) == (plain.temperature, plain.unknown_below())
