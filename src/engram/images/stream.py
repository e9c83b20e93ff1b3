"""From pictures to features: decoded, upright, resized and encoded on every core at once, in order.

Each thread takes a few pictures, decodes them and has the encoder compute their features by itself: computations of one
thread each never wait for each other, and what they work on stays in the core's cache.

>>> from engram.encoders.registry import create
>>> encode_all([np.zeros((40, 30, 3), np.uint8), b"no picture"], create("efficientnet_lite0")).unreadable
[Unreadable(position=1, name='image 1', reason='not a picture in any format Pillow knows')]
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from engram.encoders.base import Encoder, Features, Pixels, Preprocess
from engram.images.crop import Crop
from engram.images.decode import ImageError, ImageSource, load_image, source_name

# Paths, files' bytes, open files, uint8 arrays, PIL images and crops; or one uint8 array (n, h, w, 3) or (n, h, w).
# An item is read by the thread that decodes it, once.
Sources = Sequence[ImageSource] | NDArray[np.uint8]
Progress = Callable[[int, int], None]  # pictures done, pictures in all


class Unreadable(NamedTuple):
    """A picture that could not be read, and why."""

    position: int
    name: str
    reason: str


class Batch(NamedTuple):
    """The features of some pictures; `kept` are their positions among the sources."""

    features: Features
    kept: list[int]
    unreadable: list[Unreadable]


@dataclass(frozen=True)
class Encoded:
    """The features of all pictures that could be read, in the order of the sources; `kept` are their positions."""

    features: Features
    kept: NDArray[np.intp]
    unreadable: list[Unreadable]


def encode_all(
    sources: Sources,
    encoder: Encoder,
    *,
    progress: Progress | None = None,
    threads: int | None = None,
    strict: bool = False,
) -> Encoded:
    """Compute the features of pictures; of those that cannot be read, say which and why, or if `strict` fail."""
    features = np.empty((len(sources), encoder.dim), np.float32)
    kept: list[int] = []
    unreadable: list[Unreadable] = []
    for batch in encode(sources, encoder, threads=threads):
        features[len(kept) : len(kept) + len(batch.kept)] = batch.features
        kept += batch.kept
        unreadable += batch.unreadable
        if strict and unreadable:
            raise ImageError(unreadable[0].name, unreadable[0].reason)
        if progress is not None:
            progress(len(kept) + len(unreadable), len(sources))
    return Encoded(features[: len(kept)], np.asarray(kept, np.intp), unreadable)


def encode(
    sources: Sources, encoder: Encoder, *, positions: Sequence[int] | None = None, threads: int | None = None
) -> Iterator[Batch]:
    """Yield the features of the sources at `positions` (all) batch by batch, in order.

    Only a few batches exist at any time: whoever takes them slowly slows the work down, and memory stays bounded.
    """
    check_sources(sources)
    positions = range(len(sources)) if positions is None else positions
    threads = threads or cores()
    size = max(1, min(encoder.batch, -(-len(positions) // threads)))
    chunks = [positions[start : start + size] for start in range(0, len(positions), size)]

    def work(chunk: Sequence[int]) -> Batch:
        pixels, kept, unreadable = _prepare_all(sources, chunk, encoder.preprocess)
        return Batch(encoder.encode(pixels), kept, unreadable)

    return _in_order(work, chunks, min(threads, len(chunks)))


def prepare(source: ImageSource, preprocess: Preprocess, name: str = "image") -> Pixels:
    """Decode a picture as an encoder takes it, uint8 (size, size, 3); it is called `name` if it has no name.

    What has been prepared passes through untouched.
    """
    return preprocess.image(load_image(source, source_name(source) or name, preprocess.enough))


def holds_pictures(X: object) -> bool:
    """Whether X is pictures: uint8 of three or four dimensions, or a list of paths, crops, images, files' bytes."""
    if isinstance(X, np.ndarray):
        if X.ndim > 1:
            return X.dtype == np.uint8 and X.ndim in (3, 4)
        X = X.tolist() if X.dtype.kind in "OU" else []
    if not isinstance(X, list | tuple) or not X:
        return False
    if isinstance(X[0], np.ndarray):
        return X[0].dtype == np.uint8 and X[0].ndim in (2, 3)
    return isinstance(X[0], str | os.PathLike | bytes | Image.Image | Crop)


def check_sources(sources: object) -> None:
    """Refuse what is not a sequence of pictures, before any work is done."""
    if isinstance(sources, np.ndarray):
        colours = sources.ndim == 4 and sources.shape[3] == 3
        if sources.dtype.kind not in "OU" and (sources.dtype != np.uint8 or not (sources.ndim == 3 or colours)):
            raise ValueError(f"expected a uint8 array (n, h, w, 3) or (n, h, w), got {sources.dtype} {sources.shape}")
    elif isinstance(sources, str | bytes | os.PathLike) or not hasattr(sources, "__getitem__"):
        raise TypeError(f"expected a list of pictures or one uint8 array, got a single {type(sources).__name__}")


def cores() -> int:
    """How many threads to use: as many as there are cores for this process, or what OMP_NUM_THREADS says."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdecimal() and int(wanted):
        return int(wanted)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _prepare_all(
    sources: Sources, positions: Sequence[int], preprocess: Preprocess
) -> tuple[Pixels, list[int], list[Unreadable]]:
    pixels = np.empty((len(positions), preprocess.size, preprocess.size, 3), np.uint8)
    kept: list[int] = []
    unreadable: list[Unreadable] = []
    for position in positions:
        try:
            pixels[len(kept)] = prepare(sources[position], preprocess, f"image {position}")
        except ImageError as error:
            unreadable.append(Unreadable(position, error.name, error.reason))
        else:
            kept.append(position)
    return pixels[: len(kept)], kept, unreadable


def _in_order(work: Callable[[Sequence[int]], Batch], chunks: list[Sequence[int]], threads: int) -> Iterator[Batch]:
    """Do the work on some threads and yield results in order; at most two a thread are begun and not yet taken."""
    if threads <= 1:  # by the caller itself: a thread for each question costs a server more than it brings
        yield from map(work, chunks)
        return
    pending: deque[Future[Batch]] = deque()
    with ThreadPoolExecutor(threads, "engram-encode") as pool:
        for chunk in chunks:
            if len(pending) == 2 * threads:
                yield pending.popleft().result()
            pending.append(pool.submit(work, chunk))
        while pending:
            yield pending.popleft().result()
