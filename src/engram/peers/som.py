"""A self-organising map: prototypes on a square grid, neighbours on the grid alike."""

import torch
from torch import Tensor

from engram.peers.neighbours import squared_distances


def grid_distances(side: int, device: torch.device) -> Tensor:
    """Squared distances of all cells to each other on a grid of side x side, (cells, cells)."""
    at = torch.cartesian_prod(torch.arange(side, device=device), torch.arange(side, device=device)).float()
    return torch.cdist(at, at).square()


def adapt(prototypes: Tensor, x: Tensor, weights: Tensor, grid: Tensor, radius: float, rate: float) -> Tensor:
    """Move every prototype towards the samples of a mini-batch that are won in its neighbourhood.

    A sample pulls a prototype by `weights` times a Gaussian, of width `radius`, of how far the prototype is on the grid
    from the one nearest to the sample. A sample of weight 0 pulls nothing.
    """
    winners = squared_distances(x, prototypes).argmin(dim=1)
    pull = torch.exp(-grid[winners] / (2 * radius**2)) * weights[:, None]
    total = pull.sum(dim=0)[:, None]
    wanted = (pull.T @ x) / total.clamp(min=1e-12)
    return prototypes + rate * total.clamp(max=1) * (wanted - prototypes)
