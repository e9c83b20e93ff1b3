"""What leave-one-out scores say about a softmax and about the unknown, kept as a few numbers and pooled over tasks."""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

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


def pool(before: Tensor | None, scores: Tensor, targets: Tensor, familiarity: Tensor) -> Tensor:
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


def temperature(calibration: Tensor) -> float:
    """T."""
    return math.exp(float(calibration[1]))


def threshold(calibration: Tensor, share: float) -> float:
    """The familiarity that this share of known samples does not reach."""
    return float(torch.quantile(calibration[2:], share))


def _mix(one: Tensor, m: float, two: Tensor, n: float, levels: Tensor) -> Tensor:
    """Quantiles of two samples together: where the mean of their distribution functions, each linear between its
    quantiles, reaches each level. A sample mixed with itself, or with next to nothing, stays as it is."""
    a, b, at = one.cpu().numpy(), two.cpu().numpy(), levels.cpu().numpy()
    values = np.sort(np.concatenate([a, b]))
    reached = (m * np.interp(values, a, at) + n * np.interp(values, b, at)) / (m + n)
    return torch.from_numpy(np.interp(at, reached, values)).to(one)
