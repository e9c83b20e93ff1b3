"""Temperatures that are known beforehand are found again; quantiles of parts give quantiles of the whole."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from engram.methods import tensors
from engram.methods.whitened import Whitened
from engram.nn import calibration
from engram.nn.whitening import leave_one_out


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
    scores, targets = answers(3000, 0.2)
    familiarity = torch.randn(3000, generator=torch.Generator().manual_seed(1)) * 4
    kept = calibration.pool(None, 12345, scores, familiarity, targets)
    assert kept[:2].tolist() == [12345, 3000]
    assert calibration.temperature(kept) == pytest.approx(calibration.fit_temperature(scores, targets), rel=1e-12)
    for share in (0.05, 0.25, 0.5, 0.9):  # bins are some hundredths wide near 0, and wider further out
        expected = float(torch.quantile(familiarity.double(), share))
        assert calibration.threshold(kept, share) == pytest.approx(expected, abs=0.3), share
    refused = (familiarity < calibration.threshold(kept, 0.05)).double().mean()
    assert float(refused) == pytest.approx(0.05, abs=0.01)


def test_earlier_tasks_weigh_nine_tenths_of_what_they_did():
    """Of ln T and of the histogram, by samples; the space they were measured in has moved on."""
    one, two = answers(300, 0.05), answers(100, 0.5)
    familiarity = torch.full((300,), -1.0), torch.full((100,), 2.0)
    first = calibration.pool(None, 300, one[0], familiarity[0], one[1])
    both = calibration.pool(first, 400, two[0], familiarity[1], two[1])
    log = [math.log(calibration.fit_temperature(*task)) for task in (one, two)]
    assert both[:2].tolist() == pytest.approx([400, 370])
    assert math.log(calibration.temperature(both)) == pytest.approx((270 * log[0] + 100 * log[1]) / 370, rel=1e-12)
    assert sorted(both[3:][both[3:] > 0].tolist()) == pytest.approx([100, 270])
    assert calibration.threshold(both, 269 / 370) == pytest.approx(-1, abs=0.07)
    assert calibration.threshold(both, 272 / 370) == pytest.approx(2, abs=0.1)


def test_many_small_tasks_like_the_first_leave_the_threshold_where_it_was():
    """Quantiles that were pooled instead had moved towards the minimum with every task."""
    rng = np.random.default_rng(0)
    scores, targets = answers(500, 0.1)
    kept = first = calibration.pool(None, 500, scores, torch.from_numpy(rng.normal(size=500)), targets)
    few_scores, few_targets = answers(30, 0.1)
    for _ in range(100):
        kept = calibration.pool(kept, 500, few_scores, torch.from_numpy(rng.normal(size=30)), few_targets)
    assert calibration.threshold(kept, 0.05) == pytest.approx(-1.645, abs=0.25)
    assert calibration.threshold(kept, 0.05) == pytest.approx(calibration.threshold(first, 0.05), abs=0.3)


def test_familiarity_beyond_the_histogram_counts_at_its_ends():
    scores, targets = answers(4, 0.1)
    kept = calibration.pool(None, 4, scores, torch.tensor([-1e6, -1e6, 1e6, 1e6]), targets)
    assert (float(kept[3]), float(kept[-1])) == (2, 2)
    assert calibration.threshold(kept, 0.25) < -1e4
    assert calibration.threshold(kept, 0.75) > 1e4


def test_large_familiarities_are_told_apart():
    scores, targets = answers(1000, 0.1)
    familiarity = torch.linspace(20, 60, 1000)
    kept = calibration.pool(None, 1000, scores, familiarity, targets)
    for share in (0.05, 0.5, 0.9):
        assert calibration.threshold(kept, share) == pytest.approx(20 + 40 * share, abs=1.5)


def test_a_share_lies_between_nothing_and_all():
    with pytest.raises(ValueError, match="between 0 and 1"):
        calibration.threshold(None, 1.5)


def test_nothing_calibrated_is_the_usual_temperature_and_no_threshold():
    assert calibration.temperature(None) == calibration.USUAL
    assert calibration.threshold(None, 0.05) is None


def test_calibrating_takes_no_table_of_all_samples_by_all_classes(monkeypatch):
    """But some samples, spread over the classes, so that fitting stays linear in the number of classes."""
    judged = []

    def watch(space, w, targets, counts):
        judged.append(targets)
        return leave_one_out(space, w, targets, counts)

    monkeypatch.setattr(calibration, "leave_one_out", watch)
    monkeypatch.setattr(calibration, "TABLE", 1000)
    monkeypatch.setattr(calibration, "FEWEST", 7)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 4)).astype(np.float32)
    learner = Whitened(device="cpu")
    learner.learn(X, np.repeat(np.arange(50), 3))
    assert len(judged[0]) == 20
    assert len(judged[0].unique()) == 20
    assert judged[0].max() == 49
    monkeypatch.setattr(calibration, "TABLE", 50)
    Whitened(device="cpu").learn(X, np.repeat(np.arange(50), 3))
    assert len(judged[1]) == 7


def test_leaving_out_goes_chunk_by_chunk(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(60, 4)), np.repeat(np.arange(20), 3)
    learner = Whitened(device="cpu")
    learner.learn(X, y)
    whole = learner.leave_one_out(X, y)
    monkeypatch.setattr(tensors, "TABLE", 20 * 7)
    parts = learner.leave_one_out(X, y)
    assert parts.rows.tolist() == whole.rows.tolist()
    np.testing.assert_allclose(parts.probabilities, whole.probabilities, rtol=1e-5)


def calibrated(weight: float, temperature: float, samples_in: dict[int, float]) -> torch.Tensor:
    made = torch.zeros(3 + calibration.BINS, dtype=torch.float64)
    made[:3] = torch.tensor([weight, weight, math.log(temperature)])
    for at, samples in samples_in.items():
        made[3 + at] = samples
    return made


def test_several_calibrations_become_one_by_their_weight():
    made = calibration.unite([calibrated(30, 0.02, {256: 30}), None, calibrated(10, 0.5, {256: 4, 300: 6})])
    assert calibration.temperature(made) == pytest.approx(0.02**0.75 * 0.5**0.25)
    assert made[[0, 1, 3 + 256, 3 + 300]].tolist() == [0, 40, 34, 6]


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_a_threshold_lies_within_its_bin_by_the_samples_below_it(share):
    halfway = calibration.BINS // 2
    below = calibration.threshold(calibrated(100, 0.1, {halfway + 40: 100}), share)
    assert below == pytest.approx(math.sinh(calibration.WIDEST * (40 + share) / halfway))
