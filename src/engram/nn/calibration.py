"""What leave-one-out scores say about a softmax and about the unknown, kept as a few numbers that follow the model."""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engram.nn.layout import Kept, Layout
from engram.nn.whitening import Space, leave_one_out

GROWTH = 1.1  # samples now over samples when calibrated last, from which on it is done again
MEMORY = 0.9  # weight of all earlier calibrations beside a new one: the space they were measured in has moved on
BINS, WIDEST = 512, 10.0  # of the histogram of familiarity, over its inverse hyperbolic sine: fine near 0, and far
USUAL, DOUBT = 0.03, 5.0  # a temperature to start from, and how many wrong answers it takes to leave it
TABLE, FEWEST = 2**22, 256  # scores a task is calibrated with at most, and samples at least: so it is linear in classes
COLDEST, HOTTEST, STEPS = 1e-3, 1.0, 40


def layout() -> Layout:
    """What it has to be where there is one: nothing in it is negative but ln T, which has bounds of its own."""
    least, most = torch.zeros(3 + BINS, dtype=torch.float64), torch.full((3 + BINS,), torch.inf, dtype=torch.float64)
    least[2], most[2] = math.log(COLDEST), math.log(HOTTEST)
    return {"consolidation.calibration": Kept((3 + BINS,), (torch.float64,), least, most, optional=True)}


def calibrate(
    before: Tensor | None, make_space: Callable[[], Space], z: Tensor, targets: Tensor, counts: Tensor
) -> Tensor | None:
    """Calibration with one more task, whose samples are at hand: each is judged as if it had not been learned.

    That costs as much as preparing to answer, so it is done when there are a tenth more samples than the last time.
    """
    several = counts[targets] > 1
    if len(counts) < 2 or not several.any() or (before is not None and counts.sum() < GROWTH * before[0]):
        return before
    judged = several.nonzero().flatten()
    most = max(FEWEST, TABLE // len(counts))
    if len(judged) > most:  # evenly, as samples of a class often follow each other
        judged = judged[torch.linspace(0, len(judged) - 1, most, device=judged.device).round().long()]
    space, own = make_space(), targets[judged]
    scores, familiarity = leave_one_out(space, space.whiten(z[judged]), own, counts)
    return pool(before, int(counts.sum()), scores, familiarity, own)


def pool(before: Tensor | None, samples: int, scores: Tensor, familiarity: Tensor, targets: Tensor) -> Tensor:
    """The samples there are now, their weight, ln T, and how many of them have which familiarity."""
    seen = torch.histc(familiarity.double().asinh().clamp(-WIDEST, WIDEST), BINS, -WIDEST, WIDEST)
    weight, log_t = float(len(scores)), math.log(fit_temperature(scores, targets))
    if before is not None:
        old = MEMORY * float(before[1])
        log_t = (old * float(before[2]) + weight * log_t) / (old + weight)
        weight, seen = old + weight, seen + MEMORY * before[3:]
    return torch.cat([seen.new_tensor([samples, weight, log_t]), seen])


def unite(several: Sequence[Tensor | None]) -> Tensor | None:
    """The calibrations of models that become one: all that was measured, by its weight.

    It was measured where each model had fewer classes than all have now, so the next task calibrates again.
    """
    present = [one for one in several if one is not None]
    if not present:
        return None
    weight = torch.stack([one[1] for one in present])
    log_t = (weight * torch.stack([one[2] for one in present])).sum() / weight.sum()
    seen = torch.stack([one[3:] for one in present]).sum(dim=0)
    return torch.cat([torch.stack([torch.zeros_like(log_t), weight.sum(), log_t]), seen])


def temperature(calibration: Tensor | None) -> float:
    """T; what is usual, as long as nothing could be calibrated."""
    return USUAL if calibration is None else math.exp(float(calibration[2]))


def threshold(calibration: Tensor | None, share: float) -> float | None:
    """The familiarity that this share of known samples does not reach; None as long as nothing could be calibrated."""
    if not 0 <= share <= 1:
        raise ValueError(f"a share lies between 0 and 1, and {share} does not")
    if calibration is None:
        return None
    below = calibration[3:].cumsum(0)
    wanted = share * below[-1]
    at = int(torch.searchsorted(below, wanted).clamp(max=BINS - 1))
    inside = 1 - float((below[at] - wanted) / calibration[3 + at]) if calibration[3 + at] > 0 else 0.0
    return math.sinh(WIDEST * (2 * (at + inside) / BINS - 1))


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
