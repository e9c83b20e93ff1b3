"""The protocol with a learner whose answers are known beforehand, and α_ideal where the test labels are nonsense."""

from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np
import pytest
import torch

from engram.bench.learners import METHODS
from engram.bench.metrics import confusion, psi
from engram.bench.offline import Recipe, offline_ideal
from engram.bench.protocol import Samples, answers, run
from engram.learners.base import Answers
from engram.learners.ncm import NCM
from engram.learners.trying import blobs

# Two base classes, then one class at a time; of every class another number of test samples.
TASKS = [["a", "b"], ["c"], ["d"], ["e"]]
TEST = "aaaaaaaa bb cccc d eeeee"
# What is answered after each task, column by column; what has not been seen yet must not count.
SCRIPT = [
    "aaaaaaab ab bbbb a bbbbb",
    "aaaabbbb cb ccca a ccccc",
    "aacccccc bb cabb d ddddd",
    "aaaabbee bb cddd e eeeaa",
]
BASE, NEW, ALL = [8 / 10, 5 / 10, 4 / 10, 6 / 10], [8 / 10, 3 / 4, 1 / 1, 3 / 5], [8 / 10, 8 / 14, 6 / 15, 10 / 20]


@dataclass(frozen=True, eq=False)
class Scripted(NCM):
    """Answers what the script says, and notes what it was asked. It keeps no state worth the name."""

    asked: list[object] = field(default_factory=list)

    @property
    def labels(self):
        return tuple(label for task in TASKS[: self.updates] for label in task)

    def learn(self, x, y, tell=None):
        assert set(y) == set(TASKS[self.updates]), "a task sees its own classes"
        assert (x[:, 0] < 0).all(), "no test sample is learned"
        return replace(self, updates=self.updates + 1, asked=[])

    def answer(self, x, k=1, candidates=None, temperature=None):
        assert (x[:, 0] >= 0).all(), "no training sample is asked"
        self.asked.append(candidates)
        said = letters(SCRIPT[self.updates - 1])[x[:, 0].astype(int)]
        return Answers(self.rows(said.tolist())[:, None], None, None, None)


def letters(text: str) -> np.ndarray:
    return np.array(list(text.replace(" ", "")))


def samples(text: str, first: int, step: int = 1) -> Samples:
    y = letters(text)
    return Samples(first + step * torch.arange(len(y))[:, None], y)


def test_the_accuracies_after_every_task_are_those_of_the_script():
    train = samples("aabbccddee", first=-1, step=-1)
    course = list(run(Scripted.new(), train, samples(TEST, first=0), TASKS))
    learner, results = course[-1][0], [result for _, result in course]
    assert [result.alpha_base for result in results] == pytest.approx(BASE)
    assert [result.alpha_new for result in results] == pytest.approx(NEW)
    assert [result.alpha_all for result in results] == pytest.approx(ALL)
    assert [result.classes_seen for result in results] == [2, 3, 4, 5]
    assert learner.asked == [None], "always against all classes seen"
    measured = psi(results, alpha_ideal=0.5)  # the base task is none of Kemker's 2..T
    assert (measured.base, measured.new, measured.all) == pytest.approx((1.0, fmean(NEW[1:]), fmean(ALL[1:]) / 0.5))


def test_the_confusions_are_those_of_the_script():
    learner = replace(Scripted.new(), updates=len(TASKS))
    test = samples(TEST, first=0)
    said = confusion(answers(learner, test, TASKS), test, "abcde")
    assert said["labels"] == list("abcde")
    assert said["counts"] == [[4, 2, 0, 0, 2], [0, 2, 0, 0, 0], [0, 0, 1, 3, 0], [0, 0, 0, 0, 1], [2, 0, 0, 0, 3]]


def test_only_a_learner_that_is_told_the_task_is_asked_among_its_classes():
    class Told(Scripted):
        about = METHODS["hat"].about

    train = samples("aabbccddee", first=-1, step=-1)
    *_, (learner, _) = run(Told.new(), train, samples(TEST, first=0), TASKS)
    assert learner.asked == TASKS


# --- α_ideal ----------------------------------------------------------------------------------------------------------

GOOD, USELESS = Recipe(hidden=16, epochs=20, rate=1e-2), Recipe(hidden=16, epochs=20, rate=0.0)


def drawn(seed: int, noise: float = 0.0) -> Samples:
    X, y = blobs(["a", "b", "c"], n=40, seed=seed)
    X = X + np.random.default_rng(seed).normal(size=X.shape) * noise
    return Samples(torch.from_numpy(X.astype(np.float32)), np.asarray(y))


def test_where_test_labels_are_nonsense_the_recipe_is_the_same_and_the_ideal_is_nothing():
    train, test = drawn(0), drawn(1)
    nonsense = Samples(test.X, np.array([{"a": "b", "b": "c", "c": "a"}[label] for label in test.y]))
    right = offline_ideal(train, test, recipes=[USELESS, GOOD])
    wrong = offline_ideal(train, nonsense, recipes=[USELESS, GOOD])
    assert right.recipe == wrong.recipe == GOOD
    assert right.validation == wrong.validation
    assert right.validation[str(GOOD)] > 0.95 > right.validation[str(USELESS)]
    assert right.accuracy > 0.95
    assert wrong.accuracy < 0.05


def test_the_ideal_is_trained_on_all_training_data_once_the_recipe_is_chosen():
    train, test = drawn(0, noise=8), drawn(1, noise=8)  # so hard that a tenth of the data tells
    chosen = offline_ideal(train, test, recipes=[USELESS, GOOD])
    alone = offline_ideal(train, test, recipes=[GOOD])
    assert 0.4 < alone.accuracy < 0.9
    assert chosen.accuracy == alone.accuracy


def test_the_candidates_are_trained_without_what_they_are_compared_on():
    """Labels without meaning: what a network has learned by heart is no better than chance where it was not shown."""
    train = drawn(0)
    noise = Samples(torch.randn(120, 60, generator=torch.Generator().manual_seed(0)), train.y)
    heart = Recipe(hidden=64, epochs=60, rate=1e-2, dropout=0.0)
    ideal = offline_ideal(noise, noise, recipes=[heart, USELESS])
    assert ideal.validation[str(heart)] < 0.8
    assert offline_ideal(noise, noise, recipes=[heart]).accuracy > 0.95
