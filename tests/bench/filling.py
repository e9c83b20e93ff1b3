"""A small encoder, and a process that fills a cache with it; a module of its own, so that processes can import it."""

import os
import threading
import time

import numpy as np

from engram.bench import cache
from engram.encoders.base import Identity, Preprocess


class CountingEncoder:
    """Notes how many pictures it saw. Features: scaled pixels, channel by channel."""

    def __init__(self, size=8, factor=1.0, before=None, batch=4):
        self.preprocess = Preprocess(size=size, mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0), interpolation="nearest")
        self.dim = 3 * size * size
        self.identity = Identity(f"fake@{size}*{factor}")
        self.factor, self.batch = factor, batch
        self.before = before  # called with each batch
        self.seen = 0
        self.lock = threading.Lock()

    def encode(self, pictures):
        if self.before is not None:
            self.before(pictures)
        with self.lock:
            self.seen += len(pictures)
        return pictures.transpose(0, 3, 1, 2).reshape(len(pictures), self.dim).astype(np.float32) / 255 * self.factor


def fill(root, paths, rows_per_file, nap, log, start):
    """Wait at the barrier, fill the cache, slowly, and log how many pictures the encoder saw as they pass."""
    cache.ROWS_PER_FILE = rows_per_file

    def before(batch):
        time.sleep(nap)
        with open(log, "ab", buffering=0) as file:  # unbuffered: a kill must not lose it
            file.write(b"." * len(batch))

    start.wait()
    cache.FeatureCache(root).fill(paths, CountingEncoder(before=before), threads=2)
    os._exit(0)
