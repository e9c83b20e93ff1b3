"""A small backbone, and a process that fills a cache with it; a module of its own, so that processes can import it."""

import os
import threading
import time

import torch

from engram.backbones import Preprocess
from engram.images import FeatureCache, cache


class FakeBackbone(torch.nn.Module):
    """Has what extraction asks of a backbone; notes how many pictures it saw. Features: scaled pixels."""

    def __init__(self, size=8, factor=1.0, before=None):
        super().__init__()
        self.preprocess = Preprocess(size=size, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0), interpolation="nearest")
        self.dim = 3 * size * size
        self.identity = f"fake@{size}*{factor}"
        self.factor = factor
        self.before = before  # called with each batch
        self.seen = 0
        self.lock = threading.Lock()

    def forward(self, batch):
        assert batch.dtype == torch.float32
        if self.before is not None:
            self.before(batch)
        with self.lock:
            self.seen += len(batch)
        return batch.flatten(1) * self.factor


def fill(root, paths, rows_per_file, nap, log, start):
    """Wait at the barrier, fill the cache, slowly, and log how many pictures the backbone saw as they pass."""
    cache.ROWS_PER_FILE = rows_per_file

    def before(batch):
        time.sleep(nap)
        with open(log, "ab", buffering=0) as file:  # unbuffered: a kill must not lose it
            file.write(b"." * len(batch))

    start.wait()
    FeatureCache(root).fill(paths, FakeBackbone(before=before), batch_size=4, workers=2, device="cpu")
    os._exit(0)
