"""The model being served: the last one committed, by this server or anybody else, and its predictions."""

import asyncio
import functools
import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from engram.encoders.base import Pixels
from engram.store import Answer, Model, ModelStore, Unreadable, predict_images
from engram.web.decoder import Decoder, may_take_long
from engram.web.limits import Limits, RefusedError
from engram.web.neighbours import Near, nearest_classes
from engram.web.stamp import Stamp, file_stamp
from engram.web.uploads import Upload

_TOP = 5
_TOGETHER = 2  # pictures of a question; then others have their turn


@dataclass(frozen=True)
class Snapshot:
    """A model as it was read from its file; `neighbours` are empty if its method keeps no vector per class."""

    stamp: Stamp
    model: Model
    info: dict[str, Any]
    neighbours: list[Near]


class Predictor:
    """Keeps the model in memory, and predicts on as many threads as there are cores."""

    def __init__(self, store: ModelStore, limits: Limits) -> None:
        self.store, self.limits = store, limits
        self._snapshot: Snapshot | None = None
        self._reading = threading.Lock()
        self._waiting = 0
        self._pixels: Counter[str] = Counter()  # of the questions being answered, by client
        self._decoder = Decoder(limits.decode_seconds)
        self._pool = ThreadPoolExecutor(os.cpu_count() or 1, "engram-predict")

    def current(self, *, wait: bool = True) -> Snapshot | None:
        """The model in the file, or None without a file.

        Without `wait`, the previous model while another thread reads a new one: an answer need not wait for it. Whoever
        was told of a change must wait, or would see the model before it and never ask again.
        """
        stamp, known = file_stamp(self.store.path), self._snapshot
        if known is not None and known.stamp == stamp:
            return known
        if not self._reading.acquire(blocking=wait or known is None or stamp is None):
            return known
        try:
            stamp = file_stamp(self.store.path)  # before reading: a change meanwhile makes the next call read again
            if stamp is None:
                self._snapshot = None
            elif self._snapshot is None or self._snapshot.stamp != stamp:
                self._snapshot = self._read(stamp)
            return self._snapshot
        finally:
            self._reading.release()

    def _read(self, stamp: Stamp) -> Snapshot:
        known = self._snapshot
        model = self.store.read(known.model if known else None)
        if model.encoder is None:
            raise ValueError(f"{self.store.path} was taught feature vectors, and the page is about pictures")
        if known is None and (model.names or model.built_in):  # a network's first prediction is slow: get it over with
            list(predict_images(model, np.zeros((1, 64, 64, 3), np.uint8), device=self.store.device))
        vectors = model.class_vectors()
        near = [[] for _ in model.names] if vectors is None else nearest_classes(vectors)
        return Snapshot(stamp, model, self.store.info(model), near)

    async def predict(self, upload: Upload, client: str) -> tuple[list[Answer | Unreadable], Model, float]:
        """Answers in order, the model that gave them, and the milliseconds it took. Ends when it is cancelled."""
        began, limits = time.perf_counter(), self.limits
        pixels, under_way = sum(upload.pixels.values()), self._pixels[client]
        if self._waiting >= limits.predictions:
            raise RefusedError(429, f"{self._waiting} questions are waiting already; ask again in a moment")
        if under_way + pixels > limits.pixels_per_client:
            raise RefusedError(
                429,
                f"{(under_way + pixels) // 1_000_000} million pixels from this address would be under way at a time, "
                f"more than {limits.pixels_per_client // 1_000_000} million; ask again in a moment",
            )
        self._waiting += 1
        self._pixels[client] += pixels
        try:
            found, model = await self._answer(upload)
        finally:
            self._waiting -= 1
            self._pixels[client] -= pixels
            self._pixels += Counter()  # drops those at 0
        return found, model, (time.perf_counter() - began) * 1000

    async def _answer(self, upload: Upload) -> tuple[list[Answer | Unreadable], Model]:
        """Go through the pictures a few at a time, so that questions take turns, and one that is given up ends."""
        look = functools.partial(asyncio.get_running_loop().run_in_executor, self._pool)
        snapshot = self._snapshot
        if snapshot is None or snapshot.stamp != file_stamp(self.store.path):  # otherwise no thread is needed for it
            snapshot = await look(functools.partial(self.current, wait=False))
        if snapshot is None or not (snapshot.model.names or snapshot.model.built_in):
            raise RefusedError(409, "there is nothing to compare with yet; teach a class first")
        model, found = snapshot.model, dict[int, Answer | Unreadable]()
        if strangers := [name for name in upload.among or () if name not in set(model.names)]:
            raise RefusedError(422, f"the model knows no class {strangers[0]!r} that could be an answer")
        easy: list[int] = []
        for number, picture in upload.pictures.items():
            if not may_take_long(picture, upload.pixels[number], self.limits):
                easy.append(number)
                continue
            prepared = await self._decoder.prepare(picture, model.open_encoder(self.store.device).preprocess)
            if isinstance(prepared, str):
                found[number] = Unreadable(number, "", prepared)
            else:
                found[number] = (await look(self._look, snapshot, [prepared], upload.among))[0]
        for start in range(0, len(easy), _TOGETHER):
            numbers = easy[start : start + _TOGETHER]
            answers = await look(self._look, snapshot, [upload.pictures[number] for number in numbers], upload.among)
            found |= zip(numbers, answers, strict=True)
        return [found[number] for number in upload.pictures], model

    def _look(
        self, snapshot: Snapshot, pictures: Sequence[bytes] | Sequence[Pixels], among: Sequence[str] | None
    ) -> list[Answer | Unreadable]:
        model, device = snapshot.model, self.store.device
        above = model.unknown_above()
        return list(predict_images(model, pictures, top=_TOP, unknown=above, among=among, device=device, threads=1))

    def close(self) -> None:
        """Let the threads go, and end the decoding process."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._decoder.close()
