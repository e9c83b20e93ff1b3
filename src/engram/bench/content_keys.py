"""The key of an image in the cache, 16 bytes: the hash of its file, or of its pixels where there is no file."""

import hashlib
import io
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from engram.bench.cache_file import KEY_BYTES
from engram.images.decode import ImageError, ImageSource, load_image, source_name
from engram.images.stream import Sources, Unreadable

_PER_TASK = 256  # pictures per task of the pool: a CIFAR picture hashes faster than a task is handed over


def content_keys(images: Sources, threads: int | None, strict: bool) -> tuple[list[bytes | None], list[Unreadable]]:
    """Hash every image; one that cannot be read has None for a key and an entry in the second list."""

    def some(start: int) -> list[bytes | ImageError]:
        return [_key_or_error(images, at) for at in range(start, min(start + _PER_TASK, len(images)))]

    keys: list[bytes | None] = []
    unreadable: list[Unreadable] = []
    with ThreadPoolExecutor(threads or os.cpu_count(), "engram-hash") as pool:
        for chunk in pool.map(some, range(0, len(images), _PER_TASK)):
            for key in chunk:
                if isinstance(key, ImageError):
                    if strict:
                        raise key
                    unreadable.append(Unreadable(len(keys), key.name, key.reason))
                keys.append(None if isinstance(key, ImageError) else key)
    return keys, unreadable


class UnchangedImages(Sequence[ImageSource]):
    """The images; reading one whose file has changed since it was hashed is an `ImageError`.

    Hours may lie between the two, and a feature filed under the hash of another image would stay wrong for ever.
    """

    def __init__(self, images: Sources, keys: Sequence[bytes | None]) -> None:
        self.images, self.keys = images, keys

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, position: Any) -> Any:
        source = self.images[position]
        if not isinstance(source, str | os.PathLike):
            return source
        content = _read(source, str(source))
        if _hash(b"file", content) != self.keys[position]:
            raise ImageError(str(source), "changed while the features were being computed; run again")
        return _Named(content, str(source))


class _Named(io.BytesIO):
    """The content of a file that still knows its name, for messages."""

    def __init__(self, content: bytes, name: str) -> None:
        super().__init__(content)
        self.name = name


def _key_or_error(images: Sources, position: int) -> bytes | ImageError:
    try:
        source = images[position]
        return _key(source, source_name(source) or f"image {position}")
    except ImageError as error:
        return error


def _key(source: ImageSource, name: str) -> bytes:
    if isinstance(source, str | os.PathLike):
        return _hash(b"file", _read(source, name))
    if isinstance(source, bytes):
        return _hash(b"file", source)
    pixels = source if isinstance(source, np.ndarray) else np.asarray(load_image(source, name))
    return _hash(b"pixels %s %s" % (str(pixels.dtype).encode(), str(pixels.shape).encode()), pixels.tobytes())


def _hash(kind: bytes, content: bytes) -> bytes:
    digest = hashlib.blake2b(kind + b"\0", digest_size=KEY_BYTES)
    digest.update(content)
    return digest.digest()


def _read(path: str | os.PathLike[str], name: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ImageError(name, error.strerror or str(error)) from error
