"""The losses of the paper, Eq. 2-7 and 13, each a small pure function of one mini-batch.

Sums run over dimensions, as the equations are written; batches are averaged, so that a last, smaller batch weighs its
samples as the others do.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize


def reconstruction(reconstructed: Tensor, features: Tensor) -> Tensor:
    """Eq. 2: L_MSE = ‖g(h(x)) - x‖²."""
    return (reconstructed - features).square().sum(dim=1).mean()


def cosine_pairs(codes: Tensor, labels: Tensor, pairs: Tensor | None) -> Tensor:
    """Eq. 3: L_cos = 1 - cos for two codes of one class, max(0, cos) for two of different classes.

    `pairs` (P, 2) holds the positions of the pairs to compare; None compares every pair of two different samples.
    """
    if len(codes) < 2:  # a batch of one has no pair
        return codes.new_zeros(())
    unit = normalize(codes, dim=1)
    if pairs is None:
        first, second = torch.triu_indices(len(codes), len(codes), offset=1, device=codes.device)
        cosine = (unit @ unit.T)[first, second]
    else:
        first, second = pairs[:, 0], pairs[:, 1]
        cosine = (unit[first] * unit[second]).sum(dim=1)
    return torch.where(labels[first] == labels[second], 1 - cosine, cosine.clamp(min=0)).mean()


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
