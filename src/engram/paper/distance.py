"""How two vectors are compared: by the cosine of the angle between them. Nobody else decides that."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

METRIC = "cosine"  # scikit-learn's name for it

CHUNK = 4096  # means compared at a time


def similarity(codes: Tensor, means: Tensor | None = None) -> Tensor:
    """The cosine of every code with every mean, (codes, means) (Eq. 1 takes the largest); or of codes with each other.

    >>> similarity(torch.tensor([[2.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 3.0]])).tolist()
    [[1.0, 0.0]]
    """
    unit = normalize(codes, dim=1)
    return unit @ (unit if means is None else normalize(means, dim=1)).T


def angles(codes: Tensor, others: Tensor) -> Tensor:
    """The angle between each code and its counterpart, in degrees.

    >>> angles(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 3.0]])).tolist()
    [90.0]
    """
    return (normalize(codes, dim=1) * normalize(others, dim=1)).sum(dim=1).clamp(-1, 1).acos().rad2deg()


def nearest(codes: Tensor, means: Tensor, k: int = 1) -> tuple[Tensor, Tensor]:
    """The `k` means most similar to each code, best first: similarities and rows, both (n, k).

    Goes through the means a few thousand at a time, so that millions of classes take no room beside their means, and a
    chunk is still in the processor's cache when its lengths are needed.
    """
    unit = normalize(codes, dim=1)
    best = codes.new_empty(len(codes), 0)
    rows = torch.empty(len(codes), 0, dtype=torch.int64, device=codes.device)
    for start in range(0, len(means), CHUNK):
        part = means[start : start + CHUNK]
        length = torch.linalg.vector_norm(part, dim=1).clamp(min=1e-12)  # as `normalize` has it
        found, at = ((unit @ part.T) / length).topk(min(k, len(part)), dim=1)
        best, kept = torch.cat([best, found], dim=1).topk(min(k, best.shape[1] + found.shape[1]), dim=1)
        rows = torch.cat([rows, at + start], dim=1).gather(1, kept)
    return best, rows
