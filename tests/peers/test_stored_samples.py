"""Room for a number of samples in all: every class gets its share, and nothing changes without a limit."""

import numpy as np
import pytest
import torch
from every import as_value, assert_same, blobs
from every import make_torch as make

from engram.bench.metrics import memory_at
from engram.paper.tensors import share_evenly, with_samples

TASKS = (["a", "b"], ["c"], ["d"], ["e"])
METHODS = ("geppnet", "joint")


def stored(learner) -> list[int]:
    return torch.bincount(learner.tensors["samples.targets"]).tolist()


@pytest.mark.parametrize("name", METHODS)
def test_every_class_has_its_share_after_every_task(name):
    learner = make(name, samples=20)
    shares = []
    for task in TASKS:
        learner.learn(*blobs(task))
        shares.append(stored(learner))
    assert shares == [[10] * 2, [6] * 3, [5] * 4, [4] * 5]
    X, y = blobs(list("abcde"), seed=1)
    assert (learner.predict(X) == y).mean() > 0.6


def test_few_samples_for_many_classes_are_one_of_each():
    learner = make("joint", samples=2)
    for task in TASKS:
        learner.learn(*blobs(task))
    assert stored(learner) == [1] * 5


def test_samples_are_drawn_with_the_seed_and_old_ones_truncated():
    X, y = blobs(["a", "b"])
    learner, again = make("joint", samples=20), make("joint", samples=20)
    for each in (learner, again):
        each.learn(X, y)
    assert_same(learner, again)
    kept = learner.tensors["samples.features"]
    assert not torch.equal(kept[:10], torch.from_numpy(X[np.asarray(y) == "a"][:10]).float())  # not just the first
    learner.learn(*blobs(["c"]))
    assert torch.equal(learner.tensors["samples.features"][:12], torch.cat([kept[:6], kept[10:16]]))


def test_more_data_of_a_class_may_take_the_place_of_what_is_stored():
    learner = make("joint", samples=20)
    learner.learn(*blobs(["a", "b"]))
    before = learner.tensors["samples.features"]
    learner.learn(*blobs(["a"], seed=7))
    after = learner.tensors["samples.features"]
    assert stored(learner) == [10, 10]
    assert torch.equal(after[10:], before[10:])
    same = (after[:10, None] == before[None, :10]).all(dim=2).any(dim=1)
    assert 0 < int(same.sum()) < 10


@pytest.mark.parametrize("name", METHODS)
def test_without_a_limit_everything_is_kept_in_its_order(name):
    learner, roomy = make(name), make(name, samples=10_000)
    shown = []
    for task in TASKS[:2]:
        X, y = blobs(task)
        shown.append(torch.from_numpy(np.asarray(X)).float())
        learner.learn(X, y)
        roomy.learn(X, y)
    assert torch.equal(learner.tensors["samples.features"], torch.cat(shown))
    assert stored(roomy) == stored(learner) == [24] * 3


def test_geppnets_base_sees_all_its_samples_however_few_are_kept():
    learner, full = make("geppnet"), make("geppnet", samples=4)
    for each in (learner, full):
        each.learn(*blobs(["a", "b"]))
    assert stored(full) == [2, 2]
    for name in ("network.map", "network.head.weight"):
        assert torch.equal(learner.tensors[name], full.tensors[name])


@pytest.mark.parametrize("name", METHODS)
def test_bytes_at_more_classes_end_where_the_room_does(name):
    one = 8 * 4
    full = make(name, samples=20)
    full.learn(*blobs(["a", "b"]))
    assert memory_at(as_value(full), (2, 10, 100))["as_the_paper_counts"] == {
        "2": 20 * one, "10": 20 * one, "100": 100 * one,  # one of each at least
    }  # fmt: skip
    roomy = make(name, samples=480)
    roomy.learn(*blobs(["a", "b"]))
    assert memory_at(as_value(roomy), (10, 100))["as_the_paper_counts"] == {"10": 240 * one, "100": 480 * one}


def test_gems_memory_is_shared_by_however_many_classes_there_are():
    learner = make("gem", memories=40)
    learner.learn(*blobs(["a", "b"]))
    learner.learn(*blobs(["c"]))
    one = 8 * 4
    found = memory_at(as_value(learner), (2, 3, 30, 100))["as_the_paper_counts"]
    assert found == {"2": 40 * one, "3": 39 * one, "30": 30 * one, "100": 100 * one}  # as many of each, one at least
    roomy = make("gem", memories=480)
    roomy.learn(*blobs(["a", "b"]))
    found = memory_at(as_value(roomy), (1, 2, 10, 100))["as_the_paper_counts"]
    assert found == {"1": 24 * one, "2": 48 * one, "10": 240 * one, "100": 400 * one}


@pytest.mark.parametrize("name", METHODS)
def test_room_for_nothing_is_refused(name):
    with pytest.raises(ValueError, match="samples must be a number above 0, or None, not 0"):
        make(name, samples=0)


def test_the_share_is_of_the_classes_that_are_stored():
    kept = with_samples({}, torch.arange(12.0)[:, None], torch.tensor([0, 0, 0, 0, 2, 2, 2, 2, 5, 5, 5, 5]))
    shared = share_evenly(kept, torch.tensor([5]), 7, torch.Generator().manual_seed(0))
    assert shared["samples.targets"].tolist() == [0, 0, 2, 2, 5, 5]
    assert shared["samples.features"].flatten().tolist()[:4] == [0, 1, 4, 5]
