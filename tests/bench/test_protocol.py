"""Class orders, tasks and Ψ against hand-made sequences."""

import sys
from dataclasses import dataclass, replace
from statistics import fmean, stdev

import numpy as np
import pytest
import torch

from engram.bench.metrics import psi
from engram.bench.offline import Recipe, offline_ideal
from engram.bench.protocol import Samples, TaskResult, accuracies, class_order, run, split_tasks
from engram.learners.base import Answers
from engram.learners.ncm import NCM
from engram.learners.trying import blobs
from engram.paper.prototypes import Method, Prototypes


def samples(labels: list[str], seed: int = 0) -> Samples:
    X, y = blobs(labels, seed=seed)
    return Samples(torch.from_numpy(X.astype(np.float32)), np.asarray(y))


@dataclass(frozen=True, eq=False)
class Parrot(NCM):
    """Answers what it was told to, task by task; a sample is its own position."""

    said: tuple[str, ...] = ()

    @property
    def labels(self):
        return ("a", "b", "c", "d")

    def learn(self, x, y, tell=None):
        return replace(self, updates=self.updates + 1)

    def answer(self, x, k=1, candidates=None, temperature=None):
        said = np.array(list(self.said[max(0, self.updates - 1)]))
        return Answers(self.rows(said[x[:, 0].astype(int)].tolist())[:, None], None, None, None)


def test_psi_of_a_hand_made_sequence():
    results = [
        TaskResult(0, 2, 0.9, 0.9, 0.9),  # the base task itself does not count
        TaskResult(1, 3, 0.8, 0.5, 0.7),
        TaskResult(2, 4, 0.6, 0.7, 0.5),
    ]
    measured = psi(results, alpha_ideal=0.8)
    assert measured.base == pytest.approx((0.8 + 0.6) / 2 / 0.8)
    assert measured.new == pytest.approx((0.5 + 0.7) / 2)
    assert measured.all == pytest.approx((0.7 + 0.5) / 2 / 0.8)
    with pytest.raises(ValueError, match="at least one task after the base"):
        psi(results[:1], 0.8)


def test_accuracies_are_on_their_own_classes_against_all_seen():
    y = np.array(["a", "a", "b", "b", "c", "c", "d", "d"])
    test = Samples(torch.arange(8)[:, None], y)
    learner = replace(Parrot.new(), said=("acbbcaaa",))
    tasks = [["a", "b"], ["c"], ["d"]]
    assert accuracies(learner, test, tasks[:2]) == ([3 / 4, 1 / 2], pytest.approx(4 / 6))
    assert accuracies(learner, test, tasks) == ([3 / 4, 1 / 2, 0.0], 4 / 8)


def test_orders_are_seeded_permutations():
    labels = [str(i) for i in range(20)]
    assert class_order(labels, 1) == class_order(labels[::-1], 1)
    assert class_order(labels, 1) != class_order(labels, 2)
    assert sorted(class_order(labels, 1)) == sorted(labels)


def test_tasks():
    assert split_tasks("abcdef", 3) == [["a", "b", "c"], ["d"], ["e"], ["f"]]
    assert split_tasks("abcdef", 2, 3) == [["a", "b"], ["c", "d", "e"], ["f"]]
    with pytest.raises(ValueError, match="cannot split 3 classes into a base of 4"):
        split_tasks("abc", 4)


def test_a_run_shows_each_task_its_own_data_only_and_can_be_continued():
    train, test = samples(["a", "b", "c", "d"]), samples(["a", "b", "c", "d"], seed=1)
    tasks = [["a", "c"], ["d"], ["b"]]
    config = {"layers": (16, 8), "base_epochs": 20, "base_rate": 1e-2, "increment_epochs": 3, "feature_rms": 1.0}
    shown: list[set[str]] = []

    class Watched(Method):
        kind = Prototypes

        def learn(self, x, y, tell=None):
            shown.append(set(y))
            return super().learn(x, y, tell)

    learner, results = Watched.new(config).on("cpu"), []
    for first in (tasks[:2], tasks):
        course = list(run(learner, train, test, first, best=results[-1].best if results else ()))
        learner = course[-1][0]
        results += [result for _, result in course]
    assert shown == [{"a", "c"}, {"d"}, {"b"}]
    assert [(r.task, r.classes_seen) for r in results] == [(0, 2), (1, 3), (2, 4)]
    assert results[-1].alpha_all > 0.9
    at_once = [result for _, result in run(Method.new(config).on("cpu"), train, test, tasks)]
    assert [replace(r, seconds=0, peak_memory_bytes=0) for r in results] == [
        replace(r, seconds=0, peak_memory_bytes=0) for r in at_once
    ]


def test_forgetting_is_the_best_accuracy_ever_had_less_the_one_now():
    y = np.array(["a"] * 4 + ["b"] * 4 + ["c"] * 4)
    test = Samples(torch.arange(12)[:, None], y)
    said = ("aaabbbbacccc", "aabbbbbacccc", "cabbbbbbcccc")  # after each task; columns as y
    learner = replace(Parrot.new(), said=said)
    results = [result for _, result in run(learner, test, test, [["a"], ["b"], ["c"]])]
    # a: 3/4, 2/4, 1/4; b: 3/4, 4/4; c: 4/4
    assert [r.forgetting for r in results] == pytest.approx([0, 1 / 4, ((3 / 4 - 1 / 4) + (3 / 4 - 4 / 4)) / 2])
    assert results[-1].best == [3 / 4, 1.0, 1.0]


def test_a_machine_that_does_not_count_memory_says_nothing_of_it(monkeypatch):
    learner, data = NCM.new(), samples(["a", "b"])
    monkeypatch.setitem(sys.modules, "resource", None)  # as on Windows
    ((_, result),) = run(learner, data, data, [["a", "b"]])
    assert result.peak_memory_bytes == 0


def test_the_offline_ideal_picks_the_recipe_that_validates_best():
    train, test = samples(["a", "b", "c"]), samples(["a", "b", "c"], seed=1)
    good, useless = Recipe(hidden=16, epochs=20, rate=1e-2), Recipe(hidden=16, epochs=20, rate=0.0)
    ideal = offline_ideal(train, test, recipes=[useless, good])
    assert ideal.recipe == good
    assert ideal.validation[str(good)] > ideal.validation[str(useless)]
    assert ideal.accuracy > 0.95
    assert offline_ideal(train, test, recipes=[good]).accuracy == ideal.accuracy


def test_the_offline_ideal_is_the_mean_over_its_seeds():
    train, test = samples(["a", "b", "c"]), samples(["a", "b", "c"], seed=1)
    poor = Recipe(hidden=4, epochs=1, rate=1e-2)
    ideal = offline_ideal(train, test, recipes=[poor], seeds=(3, 4, 5))
    alone = [offline_ideal(train, test, recipes=[poor], seeds=(seed,)).accuracy for seed in (3, 4, 5)]
    assert len(set(alone)) > 1
    assert (list(ideal.values), ideal.accuracy, ideal.std) == (alone, fmean(alone), stdev(alone))
