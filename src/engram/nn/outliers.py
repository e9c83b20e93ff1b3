"""Class means without local outliers."""

import torch
from sklearn.neighbors import LocalOutlierFactor
from torch import Tensor


def inliers(codes: Tensor, neighbours: int) -> Tensor:
    """The codes of one class that Local Outlier Factor (cosine) keeps.

    A class with no more samples than `neighbours` is judged by all the others it has; with fewer than three there is
    no density to compare, and all stay.
    """
    if len(codes) < 3:
        return codes
    factor = LocalOutlierFactor(n_neighbors=min(neighbours, len(codes) - 1), metric="cosine")
    keep = torch.from_numpy(factor.fit_predict(codes.cpu().numpy()) == 1).to(codes.device)
    return codes[keep] if keep.any() else codes
