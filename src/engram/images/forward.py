"""Run the frozen network over batches that have to be decoded first, with every part of the machine busy.

Batches travel through a short queue, in order. On a CPU each core takes whole batches, decodes them and runs the
network on them by itself: single-threaded networks side by side never wait for each other, and a small batch stays in
the core's cache. With a GPU, threads decode ahead of it, and copies in and out happen while it computes.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch

from engram.backbones import Backbone

Array = np.ndarray[Any, Any]
T = TypeVar("T")

_DECODERS = 8  # threads that decode for a GPU; more of them mostly wait for each other
_IN_FLIGHT = 2  # batches a GPU may be ahead of what was copied back


class Unreadable(NamedTuple):
    """An image that could not be read, and why."""

    position: int
    name: str
    reason: str


class Batch(NamedTuple):
    """The features of some images; `kept` are positions in the input."""

    values: Array
    kept: list[int]
    unreadable: list[Unreadable]


class Decoded(NamedTuple):
    """Images ready for the network."""

    pixels: torch.Tensor  # uint8 (n, 3, H, W), channels last in memory
    kept: list[int]
    unreadable: list[Unreadable]


Decode = Callable[[Sequence[int]], Decoded]
_NOTHING = np.empty((0, 0), np.float32)


def on_cpu(
    chunks: list[Sequence[int]], decode: Decode, backbone: Backbone, device: torch.device, workers: int | None
) -> Iterator[Batch]:
    """Decode and compute each chunk of positions on one of `workers` threads."""
    cores = torch.get_num_threads()  # as many as the user lets torch have
    workers = max(1, min(workers or cores, len(chunks)))

    def work(chunk: Sequence[int]) -> Batch:
        decoded = decode(chunk)
        if not decoded.kept:
            return Batch(_NOTHING, [], decoded.unreadable)
        with torch.inference_mode():
            values: torch.Tensor = backbone(backbone.preprocess.normalise(decoded.pixels))
        return Batch(values.float().numpy(), decoded.kept, decoded.unreadable)

    if workers == 1:  # by the caller itself: a thread for each question costs a server more than it brings
        yield from map(work, chunks)
        return
    threads = max(1, cores // workers)  # of torch, inside each worker
    with ThreadPoolExecutor(workers, "engram-extract", torch.set_num_threads, (threads,)) as pool:
        try:
            yield from _in_order(pool, work, chunks, 2 * workers)
        finally:
            torch.set_num_threads(cores)


def on_gpu(
    chunks: list[Sequence[int]], decode: Decode, backbone: Backbone, device: torch.device, workers: int | None
) -> Iterator[Batch]:
    """Decode each chunk of positions on one of `workers` threads, and compute on the device."""
    workers = max(1, min(workers or min(_DECODERS, os.cpu_count() or 1), len(chunks)))
    launch = _cuda_launcher(backbone, device) if device.type == "cuda" else _plain_launcher(backbone, device)
    flight: deque[tuple[Callable[[], Array], Decoded]] = deque()

    def land() -> Batch:
        result, decoded = flight.popleft()
        return Batch(result(), decoded.kept, decoded.unreadable)

    with ThreadPoolExecutor(workers, "engram-decode") as pool:
        for decoded in _in_order(pool, decode, chunks, workers + 2):
            flight.append((launch(decoded.pixels) if decoded.kept else lambda: _NOTHING, decoded))
            if len(flight) > _IN_FLIGHT:
                yield land()
        while flight:
            yield land()


def _plain_launcher(backbone: Backbone, device: torch.device) -> Callable[[torch.Tensor], Callable[[], Array]]:
    def launch(pixels: torch.Tensor) -> Callable[[], Array]:
        with torch.inference_mode():
            values: torch.Tensor = backbone(backbone.preprocess.normalise(pixels.to(device)))
        return lambda: values.float().cpu().numpy()

    return launch


def _cuda_launcher(backbone: Backbone, device: torch.device) -> Callable[[torch.Tensor], Callable[[], Array]]:
    """A function that starts the work on a batch and returns at once, with a function that waits for the result.

    Copies in and out have streams of their own beside the network's: at 32 pixels they would cost a third of its rate.
    """
    computing, inward, outward = torch.cuda.current_stream(device), torch.cuda.Stream(device), torch.cuda.Stream(device)

    def launch(pixels: torch.Tensor) -> Callable[[], Array]:
        with torch.inference_mode():
            with torch.cuda.stream(inward):
                batch = backbone.preprocess.normalise(pixels.to(device, non_blocking=True))
            computing.wait_stream(inward)
            batch.record_stream(computing)  # its memory is not used again before the network is done with it
            values: torch.Tensor = backbone(batch).float()
            outward.wait_stream(computing)
            with torch.cuda.stream(outward):
                host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
                host.copy_(values, non_blocking=True)
                values.record_stream(outward)
                done = outward.record_event()

        def wait() -> Array:
            done.synchronize()
            result: Array = host.numpy()
            return result

        return wait

    return launch


def _in_order(
    pool: ThreadPoolExecutor, work: Callable[[Sequence[int]], T], chunks: list[Sequence[int]], most: int
) -> Iterator[T]:
    """Do the work on the pool and yield results in order; at most `most` are begun and not yet taken."""
    pending: deque[Future[T]] = deque()
    try:
        for chunk in chunks:
            if len(pending) == most:
                yield pending.popleft().result()
            pending.append(pool.submit(work, chunk))
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()
