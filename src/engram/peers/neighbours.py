"""Euclidean distances, and the nearest stored sample of every class."""

import torch
from torch import Tensor


def squared_distances(x: Tensor, points: Tensor) -> Tensor:
    """‖x - p‖² = ‖x‖² - 2 x·p + ‖p‖², (n, points), with one matrix product."""
    squares = x.square().sum(dim=1, keepdim=True) - 2 * (x @ points.T) + points.square().sum(dim=1)
    return squares.clamp_(min=0)


def nearest_per_class(features: Tensor, stored: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Distances (n, classes); infinite for a class of which nothing is stored."""
    middle = stored.mean(dim=0)  # seen from there, vectors are short, and their small differences are not rounded away
    squares = squared_distances(features - middle, (stored - middle)[targets.argsort()])
    nothing = torch.full((len(features),), torch.inf, device=features.device)
    by_class = torch.split(squares, torch.bincount(targets, minlength=classes).tolist(), dim=1)
    nearest = [own.amin(dim=1) if own.shape[1] else nothing for own in by_class]
    return torch.stack(nearest, dim=1).sqrt()
