"""The losses of the paper, Eq. 2-7 and 13, each a small pure function of one mini-batch.

Sums run over dimensions, as the equations are written; batches are averaged, so that a last, smaller batch weighs its
samples as the others do.
"""

import torch
from torch import Tensor

from engram.paper.distance import similarity


def reconstruction(reconstructed: Tensor, features: Tensor) -> Tensor:
    """Eq. 2: L_MSE = ‖g(h(x)) - x‖²."""
    return (reconstructed - features).square().sum(dim=1).mean()


def cosine_pairs(codes: Tensor, labels: Tensor, pairs: Tensor | None) -> Tensor:
    """Eq. 3: L_cos = 1 - cos for two codes of one class, max(0, cos) for two of different classes.

    `pairs` (P, 2) holds the positions of the pairs to compare; None compares every pair of two different samples.
    """
    n = len(codes)
    if n < 2:  # a batch of one has no pair
        return codes.new_zeros(())
    alike = similarity(codes)
    loss = torch.where(labels[:, None] == labels, 1 - alike, alike.clamp(min=0))
    if pairs is None:
        times = torch.ones_like(loss).triu(diagonal=1)
    else:  # how often each pair was drawn; picking them out of `loss` instead is many times slower backwards
        drawn = pairs[:, 0] * n + pairs[:, 1]
        times = (
            torch.zeros_like(loss).view(-1).scatter_add(0, drawn, torch.ones_like(drawn, dtype=loss.dtype)).view(n, n)
        )
    return (loss * times).sum() / (n * (n - 1) / 2 if pairs is None else len(pairs))


def draw_pairs(n: int, count: int, generator: torch.Generator) -> Tensor:
    """`count` random pairs of two different positions below `n` (Eq. 3 draws as many pairs as a batch has samples)."""
    first = torch.randint(n, (count,), generator=generator, device=generator.device)
    gap = torch.randint(1, n, (count,), generator=generator, device=generator.device)
    return torch.stack([first, (first + gap) % n], dim=1)


def sparsity(codes: Tensor) -> Tensor:
    """Eq. 4: L_L1 = Σ_i |h_i(x)|."""
    return codes.abs().sum(dim=1).mean()


def center(codes: Tensor, means: Tensor, labels: Tensor) -> Tensor:
    """Eq. 6: L_center = ‖h(x) - μ_new,y‖², y the sample's class."""
    return (codes - means[labels]).square().sum(dim=1).mean()
