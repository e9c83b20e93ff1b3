"""Learners made one: exactly what one would be that had learned everything, in whatever order and by whatever tree."""

import numpy as np
import pytest
import torch
from every import quick, slimmed
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_whitened import make, samples, uncalibrated, vectors

from engram import IncrementalClassifier
from engram.learner import Learner
from engram.methods import METHODS
from engram.methods.whitened import Whitened
from engram.nn import calibration, statistics
from engram.testing import assert_same_state, blobs

__all__ = ["uncalibrated"]
MERGING = [name for name, method in METHODS.items() if method.about.merges]
SIZES = {"ant": 5, "bee": 1, "cat": 9, "dog": 4, "elk": 2}


def learner(name: str, seed: int = 0, **changes: object) -> Learner:
    method = METHODS[name]
    return method(method.configure({**quick(name), **changes}), seed=seed, device="cpu")


def taught(name: str, X: NDArray[np.float64], y: NDArray[np.str_], **changes: object) -> Learner:
    one = learner(name, **changes)
    one.learn(X, y)
    return one


def merge_by_tree(learners: list[Whitened], draw: st.DataObject) -> Whitened:
    """Merge two or three neighbours at a time, until one is left."""
    while len(learners) > 1:
        at = draw.draw(st.integers(0, len(learners) - 2))
        first, *others = learners[at : at + draw.draw(st.integers(2, 3))]
        first.merge(*others)
        learners[at : at + 1 + len(others)] = [first]
    return learners[0]


# --- whitened: to the last digits -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("uncalibrated")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_tree_of_merges_in_any_order_is_having_learned_everything_in_one_place(data):
    """Also where the models' own units differ, as features of the one are a thousand times larger."""
    X, y = samples(SIZES)
    X[y == "cat"] *= 1000
    whole = make()
    whole.learn(X, y)
    pieces = data.draw(st.lists(st.integers(0, 4), min_size=len(X), max_size=len(X)))
    parts = [np.array(pieces) == piece for piece in data.draw(st.permutations(range(5)))]
    learners = []
    for part in (part for part in parts if part.any()):
        learners.append(make(seed=len(learners)))
        learners[-1].learn(X[part], y[part])
    largest = max(float(one.tensors["network.unit"]) for one in learners)
    merged = merge_by_tree(learners, data)
    assert float(merged.tensors["network.unit"]) == largest  # whatever the order
    (counts, means, scatter), (expected, centres, spread) = vectors(merged), vectors(whole)
    assert counts == expected
    for name, centre in centres.items():
        np.testing.assert_allclose(means[name], centre, rtol=1e-10, atol=1e-10 * np.abs(centre).max())
    np.testing.assert_allclose(scatter, spread, rtol=1e-10, atol=1e-10 * np.abs(spread).max())
    assert int(merged.tensors["consolidation.samples"]) == len(X)
    queries = samples(SIZES, seed=3)[0]
    assert merged.predict(queries).tolist() == whole.predict(queries).tolist()
    columns = [merged.labels.index(name) for name in whole.labels]
    np.testing.assert_allclose(merged.scores(queries)[:, columns], whole.scores(queries), atol=1e-6)


@pytest.mark.parametrize(("bits", "apart"), [(32, 1e-6), (16, 2**-9)])
def test_in_fewer_bits_as_exact_as_they_are(bits, apart):
    """Means of classes that only one model knows stay the same bits; all else is as near as one rounding allows."""
    X, y = samples({"ant": 400, "bee": 300, "cat": 500}, d=6)
    mine = np.isin(y, ["ant", "bee"]) & (np.arange(len(y)) % 2 == 0)
    whole, one, two = make(), make(kept_bits=bits), make(kept_bits=bits)
    for each, rows in ((whole, slice(None)), (one, mine), (two, ~mine)):
        each.learn(X[rows], y[rows])
    before = two.tensors["classes.means"][two.labels.index("cat")].clone() * two.tensors["network.unit"]
    one.merge(two)
    assert one.tensors["classes.means"].dtype == {16: torch.float16, 32: torch.float32}[bits]
    assert torch.equal(one.tensors["classes.means"][one.labels.index("cat")] * one.tensors["network.unit"], before)
    (counts, means, scatter), (expected, centres, spread) = vectors(one), vectors(whole)
    assert counts == expected
    for name, centre in centres.items():
        np.testing.assert_allclose(means[name], centre, atol=apart * np.abs(centre).max())
    np.testing.assert_allclose(scatter, spread, atol=2 * apart * np.abs(spread).max())
    queries = samples({"ant": 50, "bee": 50, "cat": 50}, d=6, seed=5)[0]
    assert (one.predict(queries) == whole.predict(queries)).mean() >= 0.99


def test_bits_may_differ_and_are_those_of_the_first():
    X, y = samples(SIZES)
    one, two = make(kept_bits=32), make(kept_bits=64)
    one.learn(X[:6], y[:6])
    two.learn(X[6:], y[6:])
    one.merge(two)
    assert one.tensors["classes.means"].dtype == torch.float32
    assert one.config.kept_bits == 32


def test_what_was_just_taught_is_nobody_any_more():
    """`recency` favours the classes learned last, and a merge teaches none."""
    one, two = make(recency=5.0), make(recency=5.0)
    one.learn(*samples({"ant": 5}))
    one.learn(*samples({"bee": 5}))
    two.learn(*samples({"cat": 5}))
    one.merge(two)
    assert one.predict(samples({"ant": 3}, seed=1)[0]).tolist() == ["ant"] * 3


def test_calibrations_are_pooled_by_weight_and_made_anew_with_the_next_task():
    one, two = make(), make()
    one.learn(*samples({"ant": 40, "bee": 40}))
    two.learn(*samples({"cat": 20, "dog": 20}))
    first, second = (each.tensors["consolidation.calibration"] for each in (one, two))
    one.merge(two)
    fit = one.tensors["consolidation.calibration"]
    assert fit[1] == first[1] + second[1] == 120
    assert fit[2] == pytest.approx(float(first[2] * 80 + second[2] * 40) / 120)
    assert torch.equal(fit[3:], first[3:] + second[3:])
    one.learn(*samples({"elk": 2}))  # far fewer than a tenth more
    assert one.tensors["consolidation.calibration"][0] == 122
    lonely = make()
    lonely.learn(*samples({"fox": 5}))  # one class alone tells nothing
    two.merge(lonely)
    assert two.temperature == calibration.temperature(second)
    assert lonely.unknown_below() is None


def test_merged_models_learn_save_and_forget_like_any_other():
    X, y = samples(SIZES)
    one, two, whole = make(), make(), make()
    one.learn(X[y == "ant"], y[y == "ant"])
    two.learn(X[np.isin(y, ["bee", "cat"])], y[np.isin(y, ["bee", "cat"])])
    one.merge(two)
    again = Whitened.from_state(one.state(), "cpu")
    assert_same_state(again.state(), one.state())
    again.learn(X[y == "dog"], y[y == "dog"])
    again.forget("bee")
    known = y != "elk"
    whole.learn(X[known], y[known])
    whole.forget("bee")
    assert again.labels == whole.labels == ["ant", "cat", "dog"]
    np.testing.assert_allclose(again.scores(X), whole.scores(X), atol=1e-6)


# --- every method that says so ----------------------------------------------------------------------------------------


def test_who_says_so():
    assert set(MERGING) == {"whitened", "imagenet", "1nn", "ncm", "slda", "ranpac"}


@pytest.mark.parametrize("name", MERGING)
def test_merging_is_having_learned_everything(name):
    """Classes of one name become one; the first model's come first. RanPAC's ridge is its first lesson's."""
    X, y = blobs(["a", "b", "c", "d"], n=20)
    mine = np.isin(y, ["b", "c"]) & (np.arange(len(y)) % 3 > 0)
    one, two = taught(name, X[mine], y[mine]), taught(name, X[~mine], y[~mine])
    one_by_one = taught(name, X[mine], y[mine])
    one_by_one.learn(X[~mine], y[~mine])
    before = two.state()
    one.merge(two)
    assert one.labels == one_by_one.labels == ["b", "c", "a", "d"]
    assert one.counts() == one_by_one.counts()
    assert one.tasks_learned == 2
    queries, truth = blobs(["a", "b", "c", "d"], n=10, seed=1)
    expected = one_by_one.scores(queries)
    rounding = 2e-2 if name in ("whitened", "imagenet") else 1e-4
    np.testing.assert_allclose(one.scores(queries), expected, atol=rounding * np.abs(expected).max())
    assert one.predict(queries).tolist() == one_by_one.predict(queries).tolist()
    assert (one.predict(queries) == truth).mean() > 0.9
    assert_same_state(two.state(), before)


@pytest.mark.parametrize("name", MERGING)
def test_several_at_once_and_one_that_knows_nothing(name):
    """A blank learner, taught elsewhere and merged, is having taught here; one that was not taught adds nothing."""
    X, y = blobs(["a", "b", "c"], n=12)
    first, whole = taught(name, X[y == "a"], y[y == "a"]), taught(name, X[y == "a"], y[y == "a"])
    blanks = [first.blank() for _ in range(3)]
    for blank, label in zip(blanks, "bc", strict=False):
        assert blank.labels == []
        blank.learn(X[y == label], y[y == label])
        whole.learn(X[y == label], y[y == label])
    first.merge(*blanks)
    assert first.labels == ["a", "b", "c"]
    assert first.predict(X).tolist() == whole.predict(X).tolist()
    fresh = learner(name)
    fresh.merge(learner(name))
    assert fresh.labels == []
    fresh.merge(first)
    assert fresh.predict(X).tolist() == first.predict(X).tolist()
    assert fresh.n_features == 8


def test_a_blank_learner_rounds_nothing_and_knows_nothing_but_the_network():
    X, y = samples(SIZES)
    one = make(kept_bits=16)
    one.learn(X, y)
    blank = one.blank()
    assert (blank.labels, blank.seed, list(blank.tensors)) == ([], one.seed, ["network.unit"])
    blank.learn(X, y)
    assert blank.tensors["classes.means"].dtype == blank.tensors["consolidation.scatter"].dtype == torch.float64
    assert "consolidation.calibration" not in blank.tensors
    assert "consolidation.calibration" in one.tensors


@pytest.mark.parametrize("name", [name for name in METHODS if name not in MERGING])
def test_other_methods_say_why_not(name):
    one = learner(name)
    with pytest.raises(ValueError, match=f"models of the method {name} cannot be merged: .* no sum over samples"):
        one.merge(learner(name))
    with pytest.raises(ValueError, match="cannot be merged"):
        one.blank()


# --- what does not fit ------------------------------------------------------------------------------------------------


def whitened(X: NDArray[np.float64], y: NDArray[np.str_], seed: int = 0, **changes: object) -> Whitened:
    one = make(seed=seed, **changes)
    one.learn(X, y)
    return one


def test_a_mismatch_is_one_line_that_names_both():
    X, y = samples(SIZES)
    one = whitened(X, y)
    before = one.state()
    wide = np.abs(np.random.default_rng(0).normal(size=(3, 4097)))
    slim = Whitened.from_state(slimmed(one), "cpu")
    refused = [
        (one, whitened(X, y, transform="none"), "different transform cannot be merged: sqrt and none"),
        (one, whitened(X[:, :4], y), "different numbers of features cannot be merged: 5 and 4"),
        (one, taught("ncm", X, y), "a model of the method whitened cannot be merged with one of ncm"),
        (one, slim, "saved slim"),
        (one, whitened(X, np.arange(len(y))), "mix str and int"),
        (whitened(wide, y[:3], seed=1), whitened(wide, y[:3], seed=2), "seeds of the projection .*: 1 and 2"),
        (taught("ranpac", X, y, seed=1), taught("ranpac", X, y, seed=2), "network.projection .* seeds 1 and 2"),
    ]
    for mine, other, reason in refused:
        with pytest.raises(ValueError, match=reason) as error:
            mine.merge(other)
        assert "\n" not in str(error.value)
    assert_same_state(one.state(), before)
    same = whitened(wide, y[:3], seed=1)
    same.merge(whitened(wide[:2], y[:2], seed=1))
    assert same.counts() == [5]


def test_encoders_have_to_be_the_same_network():
    """Trained apart they see different things; copies of one model that learned on have one in common."""
    X, y = samples({"ant": 12, "bee": 12, "cat": 6, "dog": 6})
    encoder = {"layers": (6, 4), "base_epochs": 2}
    base = np.isin(y, ["ant", "bee"])
    trunk, other = whitened(X[base], y[base], encoder=encoder), whitened(X[~base], y[~base], encoder=encoder)
    with pytest.raises(ValueError, match=r"network.* differs"):
        trunk.merge(other)
    with pytest.raises(ValueError, match="different encoder"):
        trunk.merge(whitened(X, y))
    with pytest.raises(ValueError, match="encoder is trained on the first classes"):
        make(encoder=encoder).blank()
    whole, *branches = (Whitened.from_state(trunk.state(), "cpu") for _ in range(2))
    branch = branches[0].blank()
    for label in ("cat", "dog"):
        whole.learn(X[y == label], y[y == label])
        branch.learn(X[y == label], y[y == label])
    trunk.merge(branch)
    np.testing.assert_allclose(trunk.scores(X), whole.scores(X), atol=1e-6)


def test_the_union_of_two_groups_is_chans():
    """Means, counts and scatter of a class from those of two halves of it; another class is left alone."""
    rng = np.random.default_rng(0)
    a, b = torch.from_numpy(rng.normal(size=(7, 3)) + 5), torch.from_numpy(rng.normal(size=(4, 3)) - 5)
    counts, means = torch.tensor([9, 7]), torch.stack([torch.ones(3, dtype=torch.float64), a.mean(dim=0)])
    between = statistics.unite(counts, means, torch.tensor([1]), torch.tensor([4]), b.sum(dim=0)[None])
    both = torch.cat([a, b])
    assert counts.tolist() == [9, 11]
    torch.testing.assert_close(means, torch.stack([torch.ones(3, dtype=torch.float64), both.mean(dim=0)]))

    def scatter(x: torch.Tensor) -> torch.Tensor:
        return (x - x.mean(dim=0)).T @ (x - x.mean(dim=0))

    torch.testing.assert_close(scatter(a) + scatter(b) + between.T @ between, scatter(both))


# --- the estimator ----------------------------------------------------------------------------------------------------


def test_classifiers_merge_into_a_new_one():
    X, y = samples(SIZES)
    exact = {"config": {"kept_bits": 64}, "device": "cpu"}
    part = [np.isin(y, names) for names in (["ant", "bee"], ["cat"], ["bee", "dog", "elk"])]
    a, b, c = (IncrementalClassifier(**exact).fit(X[rows], y[rows]) for rows in part)
    merged = IncrementalClassifier.merge(a, b, c)
    assert merged.classes_.tolist() == ["ant", "bee", "cat", "dog", "elk"]
    assert merged.counts_.tolist() == [5, 2, 9, 4, 2]
    assert (a.classes_.tolist(), b.classes_.tolist()) == (["ant", "bee"], ["cat"])
    twice = np.concatenate([X, X[y == "bee"]])
    whole = IncrementalClassifier(**exact).fit(twice, np.concatenate([y, y[y == "bee"]]))
    np.testing.assert_allclose(merged.decision_function(X), whole.decision_function(X), atol=1e-6)
    merged.partial_fit(X[:3], ["fox"] * 3)
    assert a.classes_.tolist() == ["ant", "bee"]


def test_classifiers_of_different_backbones_do_not_merge():
    X, y = samples(SIZES)
    a, b = (IncrementalClassifier(device="cpu").fit(X, y) for _ in range(2))
    b._recorded = type("Recorded", (), {"identity": "vgg16@1234"})()
    with pytest.raises(ValueError, match=r"different backbones .*: none, but feature vectors and vgg16@1234"):
        a.merge(b)
