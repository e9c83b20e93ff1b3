"""Temperatures that are known beforehand are found again; quantiles of parts give quantiles of the whole."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.stats import calibration
from engram.stats.calibration import Calibration, evenly, fit_temperature

Array = np.ndarray


def answers(n: int, temperature: float, classes: int = 6, seed: int = 0) -> tuple[Array, Array]:
    """Scores, and classes drawn from their softmax at a known temperature."""
    rng = np.random.default_rng(seed)
    scores = rng.random((n, classes)) * 2 - 1
    odds = np.exp(scores / temperature)
    odds /= odds.sum(axis=1, keepdims=True)
    return scores, (odds.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)


def loss(scores: Array, own: Array, temperature: float) -> float:
    """Cross-entropy, one sample at a time, and the doubt that the usual is wrong."""
    total = 5 * math.log(temperature / 0.03) ** 2
    for row, c in zip(scores.tolist(), own.tolist(), strict=True):
        largest = max(row)
        total += (
            math.log(sum(math.exp((one - largest) / temperature) for one in row)) - (row[c] - largest) / temperature
        )
    return total


@pytest.mark.parametrize("temperature", [0.02, 0.1, 0.4])
def test_the_temperature_that_made_the_answers_is_found(temperature: float):
    assert fit_temperature(*answers(20_000, temperature)) == pytest.approx(temperature, rel=0.05)


@pytest.mark.parametrize("n", [6, 40])
def test_no_other_temperature_has_less_cross_entropy_and_doubt(n: int):
    scores, own = answers(n, 0.3, seed=n)
    found = fit_temperature(scores, own)
    grid = np.geomspace(1e-3, 1, 400)
    best = grid[np.argmin([loss(scores, own, t) for t in grid])]
    assert found == pytest.approx(best, rel=0.02)
    assert loss(scores, own, found) <= loss(scores, own, best) + 1e-9


def test_answers_all_right_leave_it_near_the_usual_and_all_wrong_make_it_as_hot_as_can_be():
    rows = np.arange(4)
    found = fit_temperature(np.tile(np.eye(4), (5, 1)) * 0.5, np.tile(rows, 5))
    assert calibration.USUAL * 0.7 < found <= calibration.USUAL * 1.01
    wrong = fit_temperature(np.tile(np.eye(4), (500, 1)), np.tile(np.roll(rows, 1), 500))
    assert wrong == pytest.approx(calibration.HOTTEST, rel=1e-4)


def fitted(novelty: Array, temperature: float = 0.1, samples: int | None = None, seed: int = 0) -> Calibration:
    scores, own = answers(len(novelty), temperature, seed=seed)
    return Calibration().after(samples or len(novelty), scores, novelty, own)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.05, 0.25, 0.5, 0.9]), st.floats(0.1, 30), st.floats(-20, 20))
def test_so_many_known_samples_are_beyond_the_threshold_as_were_asked_for(seed, share, size, middle):
    novelty = np.random.default_rng(seed).normal(middle, size, 3000)
    threshold = fitted(novelty).threshold(share)
    assert threshold is not None
    width = 2 * calibration.WIDEST / calibration.BINS * np.hypot(1, threshold)  # of the bin that it lies in
    assert (novelty > threshold + width).mean() <= share <= (novelty > threshold - width).mean()


def test_within_a_bin_the_threshold_lies_where_the_share_does():
    kept = fitted(np.full(100, 1.0))
    low, high = kept.threshold(1.0), kept.threshold(0.0)
    assert low is not None
    assert high is not None
    assert low < 1 < high or kept.threshold(0.5) == pytest.approx(1.0, abs=0.07)
    assert kept.threshold(0.25) > kept.threshold(0.75)


def test_tasks_are_pooled_earlier_ones_with_nine_tenths_of_their_weight():
    one, two = answers(300, 0.05), answers(100, 0.5, seed=1)
    first = Calibration().after(300, one[0], np.full(300, 1.0), one[1])
    both = first.after(400, two[0], np.full(100, -2.0), two[1])
    log = [math.log(fit_temperature(*task)) for task in (one, two)]
    assert (both.samples, both.weight) == (400, 370)
    assert math.log(both.temperature) == pytest.approx((270 * log[0] + 100 * log[1]) / 370, rel=1e-12)
    assert sorted(both.known[both.known > 0].tolist()) == pytest.approx([100, 270])
    assert both.threshold(269 / 370) == pytest.approx(1, abs=0.07)
    assert both.threshold(272 / 370) == pytest.approx(-2, abs=0.1)


def test_many_small_tasks_like_the_first_leave_the_threshold_where_it_was():
    rng = np.random.default_rng(0)
    kept = first = fitted(rng.normal(size=500))
    scores, own = answers(30, 0.1)
    for _ in range(100):
        kept = kept.after(500, scores, rng.normal(size=30), own)
    assert kept.threshold(0.05) == pytest.approx(1.645, abs=0.25)
    assert kept.threshold(0.05) == pytest.approx(first.threshold(0.05), abs=0.3)


def test_models_that_become_one_are_pooled_by_weight_and_measured_anew():
    one, two = fitted(np.full(80, 1.0), 0.05), fitted(np.full(40, 3.0), 0.5)
    both = Calibration.united([one, Calibration(), two])
    assert (both.samples, both.weight) == (0, 120)
    assert both.log_temperature == pytest.approx((80 * one.log_temperature + 40 * two.log_temperature) / 120)
    assert np.array_equal(both.known, one.known + two.known)
    assert both.is_due(1)
    assert Calibration.united([Calibration(), Calibration()]).threshold(0.5) is None


def test_it_is_due_with_a_tenth_more_samples_and_when_it_is_outdated():
    kept = fitted(np.zeros(50), samples=1000)
    assert [kept.is_due(n) for n in (1000, 1099, 1100)] == [False, False, True]
    outdated = kept.outdated()
    assert outdated.is_due(1)
    assert (outdated.temperature, outdated.threshold(0.5)) == (kept.temperature, kept.threshold(0.5))
    assert Calibration().is_due(0)


def test_novelty_beyond_the_histogram_counts_at_its_ends():
    kept = fitted(np.array([-1e6, -1e6, 1e6, 1e6]))
    assert (kept.known[0], kept.known[-1]) == (2, 2)
    assert kept.threshold(0.25) > 1e4
    assert kept.threshold(0.75) < -1e4


def test_a_file_has_the_same_numbers():
    kept = fitted(np.linspace(-3, 3, 50))
    read = Calibration.unpacked(kept.packed())
    assert read.packed().tolist() == kept.packed().tolist()
    assert (read.samples, read.weight, read.temperature) == (50, 50, kept.temperature)
    assert read.threshold(0.1) == kept.threshold(0.1)
    assert Calibration.unpacked(None).known is None


def test_nothing_calibrated_is_the_usual_temperature_and_no_threshold():
    assert Calibration().temperature == pytest.approx(calibration.USUAL)
    assert Calibration().threshold(0.05) is None
    with pytest.raises(ValueError, match="between 0 and 1"):
        Calibration().threshold(1.5)


def test_of_very_many_scores_some_are_looked_at_that_lie_evenly(monkeypatch):
    assert np.arange(10)[evenly(10, 10)].tolist() == list(range(10))
    assert np.arange(150)[evenly(150, 4)].tolist() == [0, 50, 99, 149]
    scores, own = answers(1000, 0.1, classes=10)
    for table, fewest, looked_at in ((2000, 7, 200), (50, 7, 7), (10**6, 7, 1000)):
        monkeypatch.setattr(calibration, "TABLE", table)
        monkeypatch.setattr(calibration, "FEWEST", fewest)
        assert Calibration().after(1000, scores, np.zeros(1000), own).weight == looked_at
