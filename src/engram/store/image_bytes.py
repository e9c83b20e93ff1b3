"""The images a class is taught with: files, parts of them, or bytes in memory that were never a file."""

import hashlib
from functools import cached_property
from pathlib import Path

from engram.images.crop import Crop


class ImageBytes(bytes):
    """The bytes of an image file, as it was uploaded. Its name is a checksum, so the same image is recognised again."""

    filename = ""  # where it was read from, if anywhere

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
    return len(image) if isinstance(image, ImageBytes) else file_of(image).stat().st_size


def file_of(image: Path | Crop) -> Path:
    """The file that an image, or the part of one, lies in."""
    return image.path if isinstance(image, Crop) else image
