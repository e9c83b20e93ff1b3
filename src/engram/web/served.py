"""The model that is being served: the last one committed, whoever did that, and what it says to pictures."""

import asyncio
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from engram.store import Answer, Model, ModelStore, Unreadable, predict_images
from engram.web.lessons import stamp
from engram.web.limits import Limits, RefusedError
from engram.web.looks import Look, look_at

TOP = 5


@dataclass(frozen=True)
class Snapshot:
    """A model with all that is shown of it."""

    stamp: tuple[int, int, int]
    model: Model
    info: dict[str, Any]
    looks: list[Look]
    map_shows: float


class Served:
    """Predictions, each on one of a few threads with one torch thread: side by side they do not wait for each other."""

    def __init__(self, workshop: ModelStore, limits: Limits) -> None:
        self.workshop, self.limits = workshop, limits
        self._snapshot: Snapshot | None = None
        self._reading = threading.Lock()
        self._asked = 0
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1, "engram-predict", torch.set_num_threads, (1,))

    def current(self) -> Snapshot | None:
        """The model as the file has it; None if there is none. While a new one is read, the one before."""
        now, known = stamp(self.workshop.path), self._snapshot
        if known is not None and known.stamp == now:
            return known
        if not self._reading.acquire(blocking=known is None or now is None):
            return known
        try:
            now = stamp(self.workshop.path)  # before it is read: if it changes meanwhile, it is read again
            if now is None:
                self._snapshot = None
            elif self._snapshot is None or self._snapshot.stamp != now:
                self._snapshot = self._read(now)
            return self._snapshot
        finally:
            self._reading.release()

    def _read(self, now: tuple[int, int, int]) -> Snapshot:
        known = self._snapshot
        try:  # the backbone takes longer to make than the model to read
            model = self.workshop.read(known.model.clf.backbone_ if known else None)
        except ValueError:
            model = self.workshop.read()
        if model.clf.backbone_identity_ is None:
            raise ValueError(f"{self.workshop.path} was taught feature vectors, and the page is about pictures")
        if known is None and model.names:  # the first answer of a network takes long: let it be this one
            list(predict_images(model, np.zeros((1, 64, 64, 3), np.uint8), device=self.workshop.device))
        looks, shown = look_at(_vectors(model).astype(float))
        return Snapshot(now, model, self.workshop.info(model), looks, shown)

    async def predict(self, pictures: Sequence[bytes]) -> tuple[list[Answer | Unreadable], Model, float]:
        """Answers in order, the model that gave them, and the milliseconds that took."""
        began = time.perf_counter()
        if self._asked >= self.limits.predictions:
            raise RefusedError(429, f"{self._asked} questions are waiting already; ask again in a moment")
        self._asked += 1
        try:
            found, model = await asyncio.get_running_loop().run_in_executor(self._pool, self._answers, list(pictures))
        finally:
            self._asked -= 1
        return found, model, (time.perf_counter() - began) * 1000

    def _answers(self, pictures: list[bytes]) -> tuple[list[Answer | Unreadable], Model]:
        snapshot = self.current()
        if snapshot is None or not snapshot.model.names:
            raise RefusedError(409, "there is nothing to compare with yet; teach a class first")
        model, unknown = snapshot.model, snapshot.model.notes.unknown
        threshold = unknown.similarity if unknown else None
        found = list(predict_images(model, pictures, top=TOP, unknown=threshold, device=self.workshop.device))
        return found, model

    def close(self) -> None:
        """Let the threads go."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _vectors(model: Model) -> np.ndarray[Any, Any]:
    """Where the classes lie; on one spot for a method that has no vector of a class."""
    vectors = model.clf.class_vectors_
    return np.ones((len(model.names), 1)) if vectors is None else vectors
