"""The best classes: against sorting everything, with candidates, in chunks, and how sure."""

from dataclasses import replace

import numpy as np
import pytest

from engram.learners import base
from engram.learners.base import top
from engram.learners.ncm import NCM
from engram.learners.trying import blobs


@pytest.mark.parametrize("classes", [1, 2, 63, 64, 65, 300, 1000])
@pytest.mark.parametrize("k", [1, 2, 5, 70])
@pytest.mark.parametrize("levels", [3, 10**6])  # few: nearly everything is a tie
def test_top_is_what_sorting_gives(classes: int, k: int, levels: int):
    values = np.random.default_rng(classes + k).integers(levels, size=(40, classes)).astype(np.float32)
    found, size = top(values, k), min(k, classes)
    assert found.shape == (40, size)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(np.take_along_axis(values, found, axis=1), -np.sort(-values, axis=1)[:, :size])
    assert all(len(set(row)) == size for row in found.tolist())


def test_the_best_of_ties_is_the_first_class():
    assert top(np.zeros((1, 5)), 1).tolist() == [[0]]


def test_what_lies_beyond_the_last_class_is_never_an_answer():
    values = -np.ones((3, 64 * 20 + 1), np.float32) * 1e30
    values[:, -1] = 0
    assert top(values, 3)[:, 0].tolist() == [1280] * 3
    assert top(values, 3).max() == 1280


def taught() -> NCM:
    return NCM.new().learn(*blobs("abcd"))


def test_in_chunks_the_answers_are_the_same(monkeypatch):
    learner, (x, _) = taught(), blobs("abcd", n=5, seed=1)
    learner = replace(learner)
    whole = learner.answer(x, 3, ["d", "b", "a"])
    monkeypatch.setattr(base, "TABLE", 12)  # three samples of four classes
    seen, score = [], NCM.score
    monkeypatch.setattr(NCM, "score", lambda self, x: seen.append(len(x)) or score(self, x))
    parts = learner.answer(x, 3, ["d", "b", "a"])
    assert seen == [3] * 6 + [2]
    assert np.array_equal(parts.rows, whole.rows)
    np.testing.assert_allclose(parts.probabilities, whole.probabilities, rtol=1e-5)


def test_probabilities_are_a_softmax_over_the_candidates_at_the_temperature_asked_for():
    learner, (x, _) = taught(), blobs("abcd", n=5, seed=1)
    values = learner.score(x).values[:, learner.rows(["c", "a"])].astype(np.float64)
    for temperature, t in ((None, 1.0), (0.02, 0.02)):
        odds = np.exp(values / t) / np.exp(values / t).sum(axis=1, keepdims=True)
        found = learner.answer(x, 2, ["c", "a"], temperature)
        np.testing.assert_allclose(found.probabilities, -np.sort(-odds, axis=1), rtol=1e-4)
        np.testing.assert_allclose(found.probabilities.sum(axis=1), 1, rtol=1e-6)
        assert {learner.labels[row] for row in found.rows.flat} == {"a", "c"}


def test_scores_far_apart_make_probabilities_of_one_and_nought():
    learner, (x, _) = taught(), blobs("abcd", n=1, seed=1)
    found = learner.answer(x, 4, temperature=1e-6).probabilities
    assert found[:, 0].tolist() == [1.0] * 4
    assert found[:, 1:].max() < 1e-30


def test_an_unknown_candidate_is_named():
    with pytest.raises(ValueError, match="unknown class 'z'; 4 classes are known"):
        taught().answer(blobs("a")[0], 1, ["a", "z"])
