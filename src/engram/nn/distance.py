"""How two vectors are compared."""

from torch import Tensor
from torch.nn.functional import normalize


def similarity(codes: Tensor, means: Tensor) -> Tensor:
    """Cosine similarity of every code to every mean."""
    return normalize(codes, dim=1) @ normalize(means, dim=1).T
