"""The images a class is taught with: files, parts of them, or bytes in memory that were never a file."""

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from engram.images import Crop

_SAMPLE = 4096  # bytes from the middle of a file, to recognise it by


class ImageBytes(bytes):
    """The bytes of an image file, as it was uploaded. Its name is a checksum, so the same image is recognised again."""

    @cached_property
    def name(self) -> str:
        """A checksum of the content."""
        return hashlib.blake2b(self, digest_size=16).hexdigest()


class ImageUrl(str):
    """The address of an image that is read where it is needed, and known by its address alone."""

    @property
    def name(self) -> str:
        """The address."""
        return str(self)


Source = Path | Crop | ImageBytes | ImageUrl


def file_size(image: Source) -> int:
    """How many bytes an image's file has; 0 for one that lies elsewhere."""
    if isinstance(image, ImageUrl):
        return 0
    return len(image) if isinstance(image, ImageBytes) else _file(image).stat().st_size


def _file(image: Path | Crop) -> Path:
    return image.path if isinstance(image, Crop) else image


def twins(classes: Mapping[str, Sequence[Source]]) -> list[tuple[str, Source, str, Source]]:
    """Files of the same content in two classes: the class and file of the first, and of each that follows.

    Only files whose size and middle are the same are read as a whole; those that cannot be read are passed over.
    """
    alike: dict[tuple[int, bytes], list[tuple[str, Source]]] = {}
    for name, images in classes.items():
        for image in images:
            with contextlib.suppress(OSError):
                alike.setdefault((file_size(image), _middle(image)), []).append((name, image))
    found = []
    for group in alike.values():
        if len({name for name, _ in group}) > 1:
            first: dict[bytes, tuple[str, Source]] = {}
            for name, image in group:
                with contextlib.suppress(OSError):
                    other = first.setdefault(_content(image), (name, image))
                    if other[0] != name:
                        found.append((*other, name, image))
    return found


def _content(image: Source) -> bytes:
    """What tells one image from another: a checksum, or the address."""
    if isinstance(image, ImageUrl):
        return image.encode()
    content = image if isinstance(image, ImageBytes) else _file(image).read_bytes()
    return hashlib.blake2b(content, digest_size=16).digest()


def fingerprint(name: str, images: Sequence[Source]) -> str:
    """A checksum to recognise a class's folder by: its name, and its files' names, sizes and some bytes of each.

    Names and sizes alone are not enough: uncompressed images, numbered in every folder, have both in common.
    """
    digest = hashlib.blake2b(os.fsencode(name), digest_size=8)
    for image in sorted(images, key=lambda image: os.fsencode(image.name)):
        digest.update(b"\0%s\0%d\0%s" % (os.fsencode(image.name), file_size(image), _middle(image)))
    return digest.hexdigest()


def _middle(image: Source) -> bytes:
    """Some bytes of a file; of a part of one, also which part."""
    if isinstance(image, ImageUrl):
        return b""
    start = max(0, file_size(image) - _SAMPLE) // 2
    if isinstance(image, ImageBytes):
        return image[start : start + _SAMPLE]
    part = repr(image.box).encode() if isinstance(image, Crop) else b""
    try:
        with _file(image).open("rb") as file:
            file.seek(start)
            return file.read(_SAMPLE) + part
    except OSError:  # whoever looks at it will be told why
        return b""
