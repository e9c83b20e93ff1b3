"""The distance to the nearest stored sample of every class."""

import torch
from torch import Tensor


def nearest_per_class(features: Tensor, stored: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Euclidean distances (n, classes); infinite for a class of which nothing is stored.

    ‖x - s‖² = ‖x‖² - 2 x·s + ‖s‖², one matrix product, of vectors moved to the stored samples' mean first: so small
    differences of large numbers stay small.
    """
    middle = stored.mean(dim=0)
    x, s = features - middle, (stored - middle)[targets.argsort()]
    squares = x.square().sum(dim=1, keepdim=True) - 2 * (x @ s.T) + s.square().sum(dim=1)
    nothing = torch.full((len(x),), torch.inf, device=x.device)
    by_class = torch.split(squares, torch.bincount(targets, minlength=classes).tolist(), dim=1)
    nearest = [own.amin(dim=1) if own.shape[1] else nothing for own in by_class]
    return torch.stack(nearest, dim=1).clamp(min=0).sqrt()
