"""Pictures in, features out: decoding and the model share the machine, and memory stays bounded.

Pictures travel in batches through a short queue, in order. On a CPU each core takes whole batches, decodes them and
runs the model on them by itself: single-threaded models side by side never wait for each other, and a small batch stays
in the core's cache. With a GPU, threads decode ahead of it, and results are copied back while it computes.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from PIL import Image

from engram.backbones import Backbone, Preprocess
from engram.device import resolve_device
from engram.features.images import ImageError, ImageSource, load_image, source_name

Array = np.ndarray[Any, Any]
Images = Sequence[ImageSource] | Array  # uint8 (N, H, W, 3) or (N, H, W) where it is one array
Progress = Callable[[int, int], None]  # images done, images in all
Skipped = tuple[str, str]  # name, reason

# Pixels per batch. Measured: on CPUs about 200,000 (4 pictures of 224×224) keep a layer's activations in the cache; a
# GPU wants enough to be busy, and is at its full rate from about 3 million on.
_CPU_PIXELS, _CPU_MOST = 200_000, 64
_GPU_PIXELS, _GPU_MOST = 3_200_000, 1024
_IN_FLIGHT = 2  # batches the GPU may be ahead of what was copied back

T = TypeVar("T")


@dataclass(frozen=True)
class Features:
    """Features of the pictures that could be read.

    Attributes
    ----------
    values : float32 (n, dim), in the order the pictures came in.
    kept : for each row of `values`, the position of its picture in the input.
    skipped : name and reason of each picture that could not be read.
    """

    values: Array
    kept: Array
    skipped: list[Skipped] = field(default_factory=list)


class Bad(NamedTuple):
    """A picture that could not be read."""

    position: int
    name: str
    reason: str


class Batch(NamedTuple):
    """What became of some pictures; `kept` are positions in the input."""

    values: Array
    kept: list[int]
    bad: list[Bad]


class _Decoded(NamedTuple):
    pixels: torch.Tensor  # uint8 (n, 3, H, W), channels last in memory
    kept: list[int]
    bad: list[Bad]


def extract(
    images: Images,
    backbone: Backbone,
    *,
    batch_size: int | None = None,
    device: str | torch.device = "auto",
    workers: int | None = None,
    strict: bool = False,
    progress: Progress | None = None,
) -> Features:
    """Compute the features of pictures: paths, PIL images, bytes of files, or one uint8 array (N, H, W, 3).

    Pictures that cannot be read are skipped and named in the result, or an `ImageError` if `strict`. The backbone is
    moved to `device`. `batch_size` and `workers` (threads) are chosen to suit the machine if not given.
    """
    values: Array | None = None
    kept: list[int] = []
    skipped: list[Skipped] = []
    for batch in stream(images, backbone, batch_size=batch_size, device=device, workers=workers, strict=strict):
        if batch.kept:
            if values is None:
                values = np.empty((len(images), batch.values.shape[1]), np.float32)
            # torch copies with all cores: one core alone is slower than a GPU makes features.
            torch.from_numpy(values[len(kept) : len(kept) + len(batch.kept)]).copy_(torch.from_numpy(batch.values))
        kept += batch.kept
        skipped += [(bad.name, bad.reason) for bad in batch.bad]
        if progress is not None:
            progress(len(kept) + len(skipped), len(images))
    if values is None:
        values = np.empty((0, backbone.dim or 0), np.float32)
    return Features(values[: len(kept)], np.asarray(kept, np.intp), skipped)


def stream(
    images: Images,
    backbone: Backbone,
    *,
    positions: Sequence[int] | None = None,
    batch_size: int | None = None,
    device: str | torch.device = "auto",
    workers: int | None = None,
    strict: bool = False,
) -> Iterator[Batch]:
    """Yield the features of the pictures at `positions` (all) batch by batch, in order; see `extract`.

    Only a few batches exist at any time: whoever takes them slowly slows the work down, and memory stays bounded.
    """
    check_images(images)
    where = resolve_device(device)
    backbone.to(where).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    size = batch_size or _batch_size(images, backbone.preprocess.size, where)
    if size < 1 or (workers is not None and workers < 1):
        raise ValueError(f"batch_size and workers must be at least 1, got {batch_size} and {workers}")
    if positions is None:
        positions = range(len(images))
    chunks = [positions[start : start + size] for start in range(0, len(positions), size)]

    def decode(chunk: Sequence[int]) -> _Decoded:
        return _decode(images, chunk, backbone.preprocess, strict, pin=where.type == "cuda")

    run = _on_cpu if where.type == "cpu" else _on_gpu
    return run(chunks, decode, backbone, where, workers)


def check_images(images: Images) -> None:
    """Refuse what is not a sequence of pictures, before any work is done."""
    if isinstance(images, np.ndarray):
        if images.dtype != np.uint8 or not (images.ndim == 3 or (images.ndim == 4 and images.shape[3] == 3)):
            raise ValueError(f"expected a uint8 array (N, H, W, 3) or (N, H, W), got {images.dtype} {images.shape}")
    elif isinstance(images, str | bytes | os.PathLike | Image.Image) or not hasattr(images, "__getitem__"):
        raise TypeError(f"expected a list of pictures or one uint8 array, got a single {type(images).__name__}")


def _batch_size(images: Images, side: int | None, device: torch.device) -> int:
    if side is not None:
        pixels = side * side
    elif isinstance(images, np.ndarray):
        pixels = images.shape[1] * images.shape[2]
    else:
        return 1  # pictures of unknown, perhaps different sizes
    budget, most = (_CPU_PIXELS, _CPU_MOST) if device.type == "cpu" else (_GPU_PIXELS, _GPU_MOST)
    return max(1, min(most, budget // max(1, pixels)))


def _decode(images: Images, positions: Sequence[int], preprocess: Preprocess, strict: bool, pin: bool) -> _Decoded:
    if isinstance(images, np.ndarray) and images.ndim == 4 and preprocess.fits(images.shape[1], images.shape[2]):
        pixels = torch.empty((len(positions), *images.shape[1:]), dtype=torch.uint8, pin_memory=pin)
        np.take(images, positions, axis=0, out=pixels.numpy(), mode="clip")  # "raise" would copy once more
        return _Decoded(pixels.permute(0, 3, 1, 2), list(positions), [])
    pictures: list[Array] = []
    kept: list[int] = []
    bad: list[Bad] = []
    for position in positions:
        try:
            source = images[position]
            picture = preprocess.image(load_image(source, source_name(source) or f"image {position}"))
        except ImageError as error:
            if strict:
                raise
            bad.append(Bad(position, error.name, error.reason))
            continue
        if pictures and picture.shape != pictures[0].shape:
            raise ValueError(
                f"pictures of {pictures[0].shape[1:]} and {picture.shape[1:]} pixels in one batch;"
                " use batch_size=1, or a backbone that resizes"
            )
        pictures.append(picture)
        kept.append(position)
    if not pictures:
        return _Decoded(torch.empty((0, 3, 1, 1), dtype=torch.uint8), kept, bad)
    depth, height, width = pictures[0].shape
    pixels = torch.empty((len(pictures), height, width, depth), dtype=torch.uint8, pin_memory=pin)
    np.stack([picture.transpose(1, 2, 0) for picture in pictures], out=pixels.numpy())
    return _Decoded(pixels.permute(0, 3, 1, 2), kept, bad)


def _infer(backbone: Backbone, pixels: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        values: torch.Tensor = backbone(backbone.preprocess.normalise(pixels))
        return values.float()


_NOTHING = np.empty((0, 0), np.float32)


def _on_cpu(
    chunks: list[Sequence[int]],
    decode: Callable[[Sequence[int]], _Decoded],
    backbone: Backbone,
    device: torch.device,
    workers: int | None,
) -> Iterator[Batch]:
    cores = torch.get_num_threads()  # as many as the user lets torch have
    workers = max(1, min(workers or cores, len(chunks)))

    def work(chunk: Sequence[int]) -> Batch:
        decoded = decode(chunk)
        values = _infer(backbone, decoded.pixels).numpy() if decoded.kept else _NOTHING
        return Batch(values, decoded.kept, decoded.bad)

    threads = max(1, cores // workers)  # of torch, inside each worker
    with ThreadPoolExecutor(workers, "engram-extract", torch.set_num_threads, (threads,)) as pool:
        try:
            yield from _in_order(pool, work, chunks, 2 * workers)
        finally:
            torch.set_num_threads(cores)


def _on_gpu(
    chunks: list[Sequence[int]],
    decode: Callable[[Sequence[int]], _Decoded],
    backbone: Backbone,
    device: torch.device,
    workers: int | None,
) -> Iterator[Batch]:
    cuda = device.type == "cuda"
    workers = max(1, min(workers or os.cpu_count() or 1, len(chunks)))

    def launch(decoded: _Decoded) -> tuple[torch.Tensor, torch.cuda.Event | None, _Decoded]:
        values = _infer(backbone, decoded.pixels.to(device, non_blocking=True))
        if not cuda:
            return values.cpu(), None, decoded
        host = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
        host.copy_(values, non_blocking=True)
        done = torch.cuda.Event()
        done.record()
        return host, done, decoded

    def finish(host: torch.Tensor, done: torch.cuda.Event | None, decoded: _Decoded) -> Batch:
        if done is not None:
            done.synchronize()
        return Batch(host.numpy(), decoded.kept, decoded.bad)

    flight: deque[tuple[torch.Tensor, torch.cuda.Event | None, _Decoded]] = deque()
    with ThreadPoolExecutor(workers, "engram-decode") as pool:
        for decoded in _in_order(pool, decode, chunks, workers + 2):
            if not decoded.kept:
                while flight:
                    yield finish(*flight.popleft())
                yield Batch(_NOTHING, [], decoded.bad)
                continue
            flight.append(launch(decoded))
            if len(flight) > _IN_FLIGHT:
                yield finish(*flight.popleft())
        while flight:
            yield finish(*flight.popleft())


def _in_order(
    pool: ThreadPoolExecutor, work: Callable[[Sequence[int]], T], chunks: list[Sequence[int]], most: int
) -> Iterator[T]:
    """Do the work on the pool and yield results in order, with at most `most` begun and not yet taken."""
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
