"""Counts and means of classes, updated exactly: data in pieces gives what the same data at once would."""

from typing import NamedTuple

import torch
from torch import Tensor


class Update(NamedTuple):
    """What new samples make of class statistics."""

    counts: Tensor  # (classes,)
    means: Tensor  # (classes, d)
    centred: Tensor  # (n, d), every sample less the mean of its class's new samples
    between: Tensor  # (classes, d), √(n·m / (n + m)) (old mean - new samples' mean) of classes that had n, got m


def update(counts: Tensor | None, means: Tensor | None, features: Tensor, targets: Tensor, classes: int) -> Update:
    """Add samples to counts and means; both may be of fewer classes than there are now, or None at first."""
    dtype, device = features.dtype, features.device
    rows, own, added = targets.unique(return_inverse=True, return_counts=True)  # the others' means stay as they are
    sums = torch.zeros(len(rows), features.shape[1], dtype=torch.float64, device=device)
    sums.index_add_(0, own, features.double())
    new_means = sums / added[:, None]
    all_counts = torch.zeros(classes, dtype=torch.int64, device=device)
    all_means = torch.zeros(classes, features.shape[1], dtype=dtype, device=device)
    if counts is not None and means is not None:
        all_counts[: len(counts)], all_means[: len(means)] = counts.long(), means.to(dtype)
    between = torch.zeros_like(all_means)
    between[rows] = unite(all_counts, all_means, rows, added, sums).to(dtype)
    return Update(all_counts, all_means, features - new_means.to(dtype)[own], between)


def unite(counts: Tensor, means: Tensor, rows: Tensor, added: Tensor, sums: Tensor) -> Tensor:
    """Add `added` samples with these `sums` to the classes at `rows`, in place; what that adds to the scatter, as B.

    Of two groups of n and m samples, the scatter around their common mean is that around each one's own and
    n·m / (n + m)·(μ₁ - μ₂)(μ₁ - μ₂)ᵀ (Chan, Golub, LeVeque, 1979). All of the latter is BᵀB, B one row for each class.
    """
    old_counts, old_means = counts[rows], means[rows].double()
    total = old_counts + added
    counts[rows] = total
    means[rows] = ((old_means * old_counts[:, None] + sums) / total[:, None]).to(means.dtype)
    weight = ((old_counts * added).double() / total).sqrt()[:, None]
    return weight * (old_means - sums / added[:, None])


def with_rows(tensor: Tensor, rows: int) -> Tensor:
    """A copy with zero rows added where it has fewer."""
    longer = tensor.new_zeros((rows, *tensor.shape[1:]))
    longer[: len(tensor)] = tensor
    return longer


def shrunk(covariance: Tensor, shrinkage: float) -> Tensor:
    """(1 - ε) Σ + ε·mean(diag Σ)·I: every direction keeps some variance, whatever the unit of the features."""
    sphere = covariance.diagonal(dim1=-2, dim2=-1).mean(dim=-1)[..., None, None]
    identity = torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
    # Where nothing varies at all, as with one sample of each class, what is left is the identity.
    return (1 - shrinkage) * covariance + (shrinkage * sphere + (sphere <= 0)) * identity


def scale_to_rms(features: Tensor, rms: float | None) -> float:
    """What to multiply features with so that their root mean square is `rms`; None leaves them as they are."""
    if rms is None:
        return 1.0
    norm = float(torch.linalg.vector_norm(features, dtype=torch.float64))
    return rms * features.numel() ** 0.5 / norm if norm > 0 else 1.0
