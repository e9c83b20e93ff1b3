"""Counts, means and scatter of classes, updated exactly: data in pieces gives what the same data at once would."""

from typing import NamedTuple

import torch
from torch import Tensor


class Update(NamedTuple):
    """What new samples make of class statistics."""

    counts: Tensor  # (classes,)
    means: Tensor  # (classes, d)
    centred: Tensor  # (n, d), every sample less the mean of its class's new samples
    between: Tensor  # (classes, d), √(n·m / (n + m)) (old mean - new samples' mean) of classes that had n, got m

    @property
    def scatter(self) -> Tensor:
        """What the samples add to Σ (x - μ_y)(x - μ_y)ᵀ, also where they moved a mean that was there before."""
        return self.centred.T @ self.centred + self.between.T @ self.between


def update(counts: Tensor | None, means: Tensor | None, features: Tensor, targets: Tensor, classes: int) -> Update:
    """Add samples to counts and means; both may be of fewer classes than there are now, or None at first."""
    d = features.shape[1]
    added = torch.bincount(targets, minlength=classes)
    sums = torch.zeros(classes, d, dtype=torch.float64, device=features.device)
    sums.index_add_(0, targets, features.double())
    new_means = sums / added.clamp(min=1)[:, None]
    old_counts, old_means = torch.zeros_like(added), torch.zeros_like(new_means)
    if counts is not None and means is not None:
        old_counts[: len(counts)], old_means[: len(means)] = counts, means.double()
    total = old_counts + added
    merged = (old_means * old_counts[:, None] + sums) / total.clamp(min=1)[:, None]
    weight = (old_counts * added / total.clamp(min=1)).sqrt()[:, None]
    dtype = features.dtype
    return Update(
        total,
        merged.to(dtype),
        features - new_means.to(dtype)[targets],
        (weight * (old_means - new_means)).to(dtype),
    )


def shrunk(covariance: Tensor, shrinkage: float) -> Tensor:
    """(1 - ε) Σ + ε·mean(diag Σ)·I: every direction keeps some variance, whatever the unit of the features."""
    sphere = covariance.diagonal(dim1=-2, dim2=-1).mean(dim=-1)[..., None, None]
    identity = torch.eye(covariance.shape[-1], dtype=covariance.dtype, device=covariance.device)
    # Where nothing varies at all, as with one sample of each class, what is left is the identity.
    return (1 - shrinkage) * covariance + (shrinkage * sphere + (sphere <= 0)) * identity
