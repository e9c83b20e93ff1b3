"""Which samples of a class are local outliers."""

import torch
from sklearn.neighbors import LocalOutlierFactor
from torch import Tensor

from engram.paper.distance import METRIC


def inliers(codes: Tensor, targets: Tensor, neighbours: int) -> Tensor:
    """Which codes Local Outlier Factor keeps, each class judged by itself; without neighbours all."""
    keep = torch.ones_like(targets, dtype=torch.bool)
    for row in targets.unique().tolist() if neighbours else ():
        own = targets == row
        keep[own] = _inliers_of_a_class(codes[own], neighbours)
    return keep


def _inliers_of_a_class(codes: Tensor, neighbours: int) -> Tensor:
    """A class with no more samples than `neighbours` is judged by all the others it has; with fewer than three there is
    no density to compare, and all stay, as they do where all would go.
    """
    everything = torch.ones(len(codes), dtype=torch.bool, device=codes.device)
    if len(codes) < 3:
        return everything
    factor = LocalOutlierFactor(n_neighbors=min(neighbours, len(codes) - 1), metric=METRIC)
    keep = torch.from_numpy(factor.fit_predict(codes.cpu().numpy()) == 1).to(codes.device)
    return keep if keep.any() else everything
