"""The distance to the nearest stored sample of every class."""

import torch
from torch import Tensor


def nearest_per_class(features: Tensor, stored: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Euclidean distances (n, classes); infinite for a class of which nothing is stored.

    ‖x - s‖² = ‖x‖² - 2 x·s + ‖s‖², one matrix product, of vectors moved to the stored samples' mean first: so small
    differences of large numbers stay small.
    """
    middle = stored.mean(dim=0)
    x, s = features - middle, stored - middle
    squares = x.square().sum(dim=1, keepdim=True) - 2 * (x @ s.T) + s.square().sum(dim=1)
    nearest = torch.full((len(x), classes), torch.inf, device=x.device)
    nearest.scatter_reduce_(1, targets.expand(len(x), -1), squares, "amin")
    return nearest.clamp(min=0).sqrt()
