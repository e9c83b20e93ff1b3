"""An encoder that takes no time: per-cell averages of the pixels through one matrix, in numpy."""

import threading
from collections.abc import Callable
from typing import Self

import numpy as np

from engram.encoders.base import Features, Identity, Pixels, Preprocess


class FakeEncoder:
    """Features change with the seed; `seen` counts the pictures, and `before` is called with each batch of them."""

    def __init__(
        self, size: int = 16, dim: int = 8, seed: int = 0, batch: int = 2, name: str | None = "fake",
        before: Callable[[Pixels], object] = len,
    ) -> None:  # fmt: skip
        self.identity = Identity(f"fake@{size}:{dim}:{seed}", name)
        self.dim, self.batch, self.before, self.seen = dim, batch, before, 0
        self.preprocess = Preprocess(size=size)
        self._matrix = np.random.default_rng(seed).normal(size=(12, dim)).astype(np.float32)
        self._lock = threading.Lock()

    @classmethod
    def by_name(cls, name: str, device: str) -> Self:
        """For `engram.encoders.registry.register`."""
        return cls(name=name)

    def encode(self, pictures: Pixels) -> Features:
        self.before(pictures)
        with self._lock:
            self.seen += len(pictures)
        n, size = len(pictures), self.preprocess.size
        assert pictures.dtype == np.uint8
        assert pictures.shape == (n, size, size, 3)
        cells = pictures.reshape(n, 2, size // 2, 2, size // 2, 3).mean(axis=(2, 4), dtype=np.float32)
        rows = [row.reshape(-1) / np.float32(255) @ self._matrix for row in cells]  # the same bits in any batch
        return np.stack(rows) if rows else np.empty((0, self.dim), np.float32)
