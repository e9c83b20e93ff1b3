"""The nearest class means, found approximately: for millions of classes and little time (engram[faiss])."""

from typing import Any

import numpy as np
from torch import Tensor, from_numpy
from torch.nn.functional import normalize

from engram.nn.prototypes import PrototypeMemory

_FEW = 10_000  # classes; below this going through all of them is fast enough


class ApproximateIndex:
    """An index over the means a memory holds now; after learning, forgetting or renaming, make another.

    Means are sorted into √n cells, and only the `probe` cells nearest to a code are looked through: √n / `probe` times
    less work than `PrototypeMemory.nearest` does, and now and then a near class is missed. Takes the room of the means
    once more.
    """

    def __init__(self, memory: PrototypeMemory, *, probe: int = 16) -> None:
        try:
            import faiss
        except ImportError:
            raise ImportError(
                "the approximate index needs faiss; install it with: pip install 'engram[faiss]'"
            ) from None
        n, width = memory.means.shape
        means = normalize(memory.means, dim=1).cpu().numpy()
        index: Any = faiss.IndexFlatIP(width)
        if n >= _FEW:
            cells = int(n**0.5)
            index = faiss.IndexIVFFlat(index, width, cells, faiss.METRIC_INNER_PRODUCT)
            index.train(means[np.random.default_rng(0).permutation(n)[: 64 * cells]])
            index.nprobe = probe
        index.add(means)
        self._index = index

    def nearest(self, codes: Tensor, k: int = 1) -> tuple[Tensor, Tensor]:
        """Cosine similarities and rows of about the `k` nearest means, best first, as `PrototypeMemory.nearest`."""
        unit = normalize(codes, dim=1).cpu().numpy()
        similarity, rows = self._index.search(unit, min(k, self._index.ntotal))
        return from_numpy(similarity).to(codes.device), from_numpy(rows).to(codes.device)
