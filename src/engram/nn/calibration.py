"""What leave-one-out scores say about a softmax and about the unknown, kept as a few numbers and pooled over tasks."""

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engram.nn.whitening import Space, leave_one_out

GROWTH = 1.1  # samples now over samples when calibrated last, from which on it is done again
LEVELS = 65  # quantiles kept of the familiarity of known samples
COLDEST, HOTTEST = 1e-3, 1.0
USUAL, DOUBT = 0.03, 5.0  # a temperature to start from, and how many wrong answers it takes to leave it
STEPS = 40


def fit_temperature(scores: Tensor, targets: Tensor) -> float:
    """The T with the least cross-entropy of softmax(scores / T), by golden-section search over its logarithm.

    Answers that are all right, as with two classes, would make it zero; so it is held near what is usual.
    """
    ratio = (math.sqrt(5) - 1) / 2
    low, high = math.log(COLDEST), math.log(HOTTEST)
    for _ in range(STEPS):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        loss = [_loss(scores, targets, t) for t in (left, right)]
        low, high = (low, right) if loss[0] <= loss[1] else (left, high)
    return math.exp((low + high) / 2)


def _loss(scores: Tensor, targets: Tensor, log_t: float) -> float:
    surprise = float(cross_entropy(scores.double() / math.exp(log_t), targets, reduction="sum"))
    return surprise + DOUBT * (log_t - math.log(USUAL)) ** 2


def calibrate(
    before: Tensor | None, make_space: Callable[[], Space], z: Tensor, targets: Tensor, counts: Tensor
) -> Tensor | None:
    """Calibration with one more task, whose samples are at hand: each is judged as if it had not been learned.

    That costs as much as preparing to answer, so it is done when there are a tenth more samples than the last time.
    """
    several = counts[targets] > 1
    if len(counts) < 2 or not several.any() or (before is not None and counts.sum() < GROWTH * before[0]):
        return before
    space, own = make_space(), targets[several]
    return pool(before, *leave_one_out(space, space.whiten(z[several]), own, counts), own)


def pool(before: Tensor | None, scores: Tensor, familiarity: Tensor, targets: Tensor) -> Tensor:
    """Calibration with one more task: how many samples it is of, ln T, and quantiles of familiarity."""
    n = len(scores)
    levels = torch.linspace(0, 1, LEVELS, dtype=torch.float64, device=scores.device)
    quantiles = torch.quantile(familiarity.double(), levels)
    temperature = math.log(fit_temperature(scores, targets))
    if before is not None:
        m = float(before[0])
        temperature = (m * float(before[1]) + n * temperature) / (m + n)
        quantiles = _mix(before[2:], m, quantiles, n, levels)
        n += int(m)
    return torch.cat([quantiles.new_tensor([n, temperature]), quantiles])


def temperature(calibration: Tensor | None) -> float:
    """T; what is usual, as long as nothing could be calibrated."""
    return USUAL if calibration is None else math.exp(float(calibration[1]))


def threshold(calibration: Tensor | None, share: float) -> float | None:
    """The familiarity that this share of known samples does not reach; None as long as nothing could be calibrated."""
    return None if calibration is None else float(torch.quantile(calibration[2:], share))


def _mix(one: Tensor, m: float, two: Tensor, n: float, levels: Tensor) -> Tensor:
    """Quantiles of two samples together: each quantile stands for an equal share of its sample."""
    values, order = torch.cat([one, two]).sort()
    weights = torch.cat([torch.full_like(one, m), torch.full_like(two, n)])[order]
    middle = (weights.cumsum(0) - weights / 2) / weights.sum()
    at = torch.searchsorted(middle, levels).clamp(1, len(middle) - 1)
    step = (levels - middle[at - 1]) / (middle[at] - middle[at - 1])
    return values[at - 1] + step.clamp(0, 1) * (values[at] - values[at - 1])
