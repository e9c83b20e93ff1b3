"""Temperatures that are known beforehand are found again; quantiles of parts give quantiles of the whole."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from engram.nn import calibration


def answers(n: int, temperature: float, classes: int = 6, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores, and targets drawn from their softmax at a known temperature."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.rand(n, classes, generator=generator) * 2 - 1
    targets = (scores / temperature).softmax(dim=1).multinomial(1, generator=generator)[:, 0]
    return scores, targets


@pytest.mark.parametrize("temperature", [0.02, 0.1, 0.4])
def test_the_temperature_that_made_the_answers_is_found(temperature: float):
    found = calibration.fit_temperature(*answers(20_000, temperature))
    assert found == pytest.approx(temperature, rel=0.05)


@pytest.mark.parametrize("n", [6, 40, 400])
def test_it_minimises_cross_entropy_and_the_doubt_that_the_usual_is_wrong(n: int):
    scores, targets = answers(n, 0.3, seed=n)
    p = scores.double().numpy()

    def loss(log_t: float) -> float:
        logits = p / math.exp(log_t)
        surprise = np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1)) + logits.max(1)
        return float((surprise - logits[np.arange(n), targets]).sum() + 5 * (log_t - math.log(0.03)) ** 2)

    best = minimize_scalar(loss, bounds=(math.log(1e-3), 0.0), method="bounded", options={"xatol": 1e-9}).x
    assert math.log(calibration.fit_temperature(scores, targets)) == pytest.approx(best, abs=1e-4)


def test_answers_that_are_all_right_leave_it_near_the_usual():
    found = calibration.fit_temperature(torch.eye(4).repeat(5, 1) * 0.5, torch.arange(4).repeat(5))
    assert calibration.USUAL * 0.7 < found <= calibration.USUAL * 1.01


def test_answers_that_are_all_wrong_make_it_as_hot_as_can_be():
    found = calibration.fit_temperature(torch.eye(4).repeat(500, 1), torch.arange(4).roll(1).repeat(500))
    assert found == pytest.approx(calibration.HOTTEST, rel=1e-4)


def test_the_first_task_gives_its_own_temperature_and_quantiles():
    scores, targets = answers(300, 0.2)
    familiarity = torch.rand(300, generator=torch.Generator().manual_seed(1)) * 4
    kept = calibration.pool(None, scores, familiarity, targets)
    assert float(kept[0]) == 300
    assert calibration.temperature(kept) == pytest.approx(calibration.fit_temperature(scores, targets), rel=1e-12)
    for share in (0.0, 1 / 64, 0.25, 0.5, 1.0):  # the levels that are kept
        expected = float(torch.quantile(familiarity.double(), share))
        assert calibration.threshold(kept, share) == pytest.approx(expected, rel=1e-12)
    refused = (familiarity < calibration.threshold(kept, 0.05)).double().mean()
    assert float(refused) == pytest.approx(0.05, abs=0.01)


def test_tasks_are_pooled_by_their_samples():
    """ln T is the mean weighted by samples; the result counts both."""
    one, two = answers(300, 0.05), answers(100, 0.5)
    familiarity = torch.arange(300.0), torch.arange(100.0)
    first = calibration.pool(None, one[0], familiarity[0], one[1])
    both = calibration.pool(first, two[0], familiarity[1], two[1])
    third = calibration.pool(both, one[0], familiarity[0], one[1])
    log = [math.log(calibration.fit_temperature(*task)) for task in (one, two)]
    assert float(both[0]) == 400
    assert math.log(calibration.temperature(both)) == pytest.approx((3 * log[0] + log[1]) / 4, rel=1e-12)
    assert float(third[0]) == 700
    assert math.log(calibration.temperature(third)) == pytest.approx((6 * log[0] + log[1]) / 7, rel=1e-12)


@pytest.mark.parametrize(("m", "n", "apart"), [(900, 100, 3.0), (500, 500, 0.0), (50, 5000, 1.0), (400, 600, 50.0)])
def test_quantiles_of_two_tasks_are_about_those_of_all_their_samples(m: int, n: int, apart: float):
    rng = np.random.default_rng(0)
    one, two = torch.from_numpy(rng.normal(size=m)), torch.from_numpy(rng.normal(apart, 2, size=n))
    kept = None
    for familiarity in (one, two):
        scores, targets = answers(len(familiarity), 0.1)
        kept = calibration.pool(kept, scores, familiarity, targets)
    assert kept is not None
    union = torch.cat([one, two])
    for share in np.linspace(0.05, 0.95, 19):
        reached = float((union < calibration.threshold(kept, share)).double().mean())
        assert reached == pytest.approx(share, abs=0.015), share
    assert (kept[2:].diff() >= 0).all()
    assert calibration.threshold(kept, 0.0) == pytest.approx(float(union.min()), abs=0.2)
    assert calibration.threshold(kept, 1.0) == pytest.approx(float(union.max()), abs=0.2)


def test_many_small_tasks_like_the_first_leave_everything_where_it_was():
    scores, targets = answers(500, 0.1)
    familiarity = torch.from_numpy(np.random.default_rng(0).normal(size=500))
    first = kept = calibration.pool(None, scores, familiarity, targets)
    for _ in range(300):
        kept = calibration._mix(kept[2:], 500, first[2:], 3, torch.linspace(0, 1, 65, dtype=torch.float64))
        kept = torch.cat([first[:2], kept])
    torch.testing.assert_close(kept, first, atol=1e-9, rtol=0)


def test_nothing_calibrated_is_the_usual_temperature_and_no_threshold():
    assert calibration.temperature(None) == calibration.USUAL
    assert calibration.threshold(None, 0.05) is None
