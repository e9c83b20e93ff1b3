"""Images in, features out: decoding and the network share the machine, and memory stays bounded."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import NamedTuple, TypedDict, Unpack

import numpy as np
import torch
from PIL import Image

from engram.backbones import Backbone, Preprocess
from engram.device import resolve_device
from engram.images.crop import Crop
from engram.images.decode import ImageError, ImageSource, load_image, source_name
from engram.images.forward import Array, Batch, Decoded, Unreadable, on_cpu, on_gpu


class Prepared(NamedTuple):
    """An image as a network takes it, made by `prepare` where decoding has to happen elsewhere."""

    pixels: Array  # uint8 (3, H, W)


# What the classifier takes: paths, PIL images, crops, or one uint8 array (N, H, W, 3).
Pictures = Sequence[str | os.PathLike[str] | Image.Image | Crop] | Array
Images = Sequence[ImageSource] | Array  # uint8 (N, H, W, 3) or (N, H, W) where it is one array
Lookable = Images | Sequence[Prepared]
Progress = Callable[[int, int], None]  # images done, images in all
Skipped = tuple[str, str]  # name, reason

# Pixels per batch. Measured: on CPUs about 100,000 (2 pictures of 224×224) keep a layer's activations in the cache; a
# GPU wants enough to be busy, and is at its full rate from about a million on.
_CPU_PIXELS, _CPU_MOST = 110_000, 64
_GPU_PIXELS, _GPU_MOST = 3_200_000, 1024


class Options(TypedDict, total=False):
    """How to extract. `batch_size` and `workers` (threads) suit the machine if not given.

    Images that cannot be read are skipped and named in the result, or with `strict` are an `ImageError`.
    """

    batch_size: int | None
    device: str | torch.device
    workers: int | None
    strict: bool


@dataclass(frozen=True)
class Features:
    """Features of the images that could be read.

    Attributes
    ----------
    values : float32 (n, dim), in the order the images came in.
    kept : for each row of `values`, the position of its image in the input.
    skipped : name and reason of each image that could not be read.
    """

    values: Array
    kept: Array
    skipped: list[Skipped] = field(default_factory=list)


def extract(
    images: Images, backbone: Backbone, *, progress: Progress | None = None, **options: Unpack[Options]
) -> Features:
    """Compute the features of images: paths, PIL images, bytes of files, or one uint8 array (N, H, W, 3).

    The backbone is moved to the device.
    """
    values: Array | None = None
    kept: list[int] = []
    skipped: list[Skipped] = []
    # Beside the loop, and by torch, which copies with all cores: a GPU makes features faster than one core moves them.
    with ThreadPoolExecutor(1, "engram-copy") as copier:
        copying: Future[torch.Tensor] | None = None
        for batch in stream(images, backbone, **options):
            if batch.kept:
                if values is None:
                    values = np.empty((len(images), batch.values.shape[1]), np.float32)
                goal = torch.from_numpy(values[len(kept) : len(kept) + len(batch.kept)])
                if copying is not None:
                    copying.result()
                copying = copier.submit(goal.copy_, torch.from_numpy(batch.values))
            kept += batch.kept
            skipped += [(one.name, one.reason) for one in batch.unreadable]
            if progress is not None:
                progress(len(kept) + len(skipped), len(images))
    if values is None:
        values = np.empty((0, backbone.dim or 0), np.float32)
    return Features(values[: len(kept)], np.asarray(kept, np.intp), skipped)


def stream(
    images: Lookable, backbone: Backbone, *, positions: Sequence[int] | None = None, **options: Unpack[Options]
) -> Iterator[Batch]:
    """Yield the features of the images at `positions` (all) batch by batch, in order; see `extract`.

    Only a few batches exist at any time: whoever takes them slowly slows the work down, and memory stays bounded.
    """
    check_images(images)
    device = resolve_device(options.get("device", "auto"))
    batch_size, workers, strict = options.get("batch_size"), options.get("workers"), options.get("strict", False)
    _place(backbone, device)
    size = batch_size or _batch_size(images, backbone.preprocess.size, device)
    if size < 1 or (workers is not None and workers < 1):
        raise ValueError(f"batch_size and workers must be at least 1, got {batch_size} and {workers}")
    if positions is None:
        positions = range(len(images))
    chunks = [positions[start : start + size] for start in range(0, len(positions), size)]

    def decode(chunk: Sequence[int]) -> Decoded:
        return _decode(images, chunk, backbone.preprocess, strict, pin=device.type == "cuda")

    run = on_cpu if device.type == "cpu" else on_gpu
    return run(chunks, decode, backbone, device, workers)


def prepare(source: ImageSource | Prepared, preprocess: Preprocess, name: str = "image") -> Prepared:
    """Decode an image for a network that asks for this preprocessing; it is called `name` if it has no name."""
    if isinstance(source, Prepared):
        return source
    return Prepared(preprocess.image(load_image(source, source_name(source) or name)))


def holds_pictures(X: object) -> bool:
    """Whether X is images: uint8 of three or four dimensions, or a list of paths, crops, images, files' bytes."""
    if isinstance(X, np.ndarray):
        if X.ndim > 1:
            return X.dtype == np.uint8 and X.ndim in (3, 4)
        X = X.tolist() if X.dtype.kind in "OU" else []
    if not isinstance(X, list | tuple) or not X:
        return False
    if isinstance(X[0], np.ndarray):
        return X[0].dtype == np.uint8 and X[0].ndim in (2, 3)
    return isinstance(X[0], str | os.PathLike | bytes | Image.Image | Crop)


def check_images(images: Lookable) -> None:
    """Refuse what is not a sequence of images, before any work is done."""
    if isinstance(images, np.ndarray):
        if images.dtype != np.uint8 or not (images.ndim == 3 or (images.ndim == 4 and images.shape[3] == 3)):
            raise ValueError(f"expected a uint8 array (N, H, W, 3) or (N, H, W), got {images.dtype} {images.shape}")
    elif isinstance(images, str | bytes | os.PathLike | Image.Image) or not hasattr(images, "__getitem__"):
        raise TypeError(f"expected a list of pictures or one uint8 array, got a single {type(images).__name__}")


def _place(backbone: Backbone, device: torch.device) -> None:
    """Move the network to the device, channels last; not again if it is there, which takes a millisecond or two."""
    first = next(backbone.parameters(), None)
    if first is None or first.device.type != device.type or device.index not in (None, first.device.index):
        backbone.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]


def _batch_size(images: Lookable, side: int | None, device: torch.device) -> int:
    if side is not None:
        pixels = side * side
    elif isinstance(images, np.ndarray):
        pixels = images.shape[1] * images.shape[2]
    else:
        return 1  # images of unknown, perhaps different sizes
    budget, most = (_CPU_PIXELS, _CPU_MOST) if device.type == "cpu" else (_GPU_PIXELS, _GPU_MOST)
    return max(1, min(most, budget // max(1, pixels)))


def _decode(images: Lookable, positions: Sequence[int], preprocess: Preprocess, strict: bool, pin: bool) -> Decoded:
    if isinstance(images, np.ndarray) and images.ndim == 4 and preprocess.fits(images.shape[1], images.shape[2]):
        pixels = torch.empty((len(positions), *images.shape[1:]), dtype=torch.uint8, pin_memory=pin)
        np.take(images, positions, axis=0, out=pixels.numpy(), mode="clip")  # "raise" would copy once more
        return Decoded(pixels.permute(0, 3, 1, 2), list(positions), [])
    pictures: list[Array] = []
    kept: list[int] = []
    unreadable: list[Unreadable] = []
    for position in positions:
        try:
            picture = prepare(images[position], preprocess, f"image {position}").pixels
        except ImageError as error:
            if strict:
                raise
            unreadable.append(Unreadable(position, error.name, error.reason))
            continue
        if pictures and picture.shape != pictures[0].shape:
            raise ValueError(
                f"pictures of {pictures[0].shape[1:]} and {picture.shape[1:]} pixels in one batch;"
                " use batch_size=1, or a backbone that resizes"
            )
        pictures.append(picture)
        kept.append(position)
    if not pictures:
        return Decoded(torch.empty((0, 3, 1, 1), dtype=torch.uint8), kept, unreadable)
    depth, height, width = pictures[0].shape
    pixels = torch.empty((len(pictures), height, width, depth), dtype=torch.uint8, pin_memory=pin)
    np.stack([picture.transpose(1, 2, 0) for picture in pictures], out=pixels.numpy())
    return Decoded(pixels.permute(0, 3, 1, 2), kept, unreadable)
