"""A picture that lies in memory and nowhere else."""

import hashlib
from functools import cached_property
from pathlib import Path


class Picture(bytes):
    """The bytes of a picture's file. It is called by its content, so that the same picture is recognised again."""

    @cached_property
    def name(self) -> str:
        """A checksum of the content."""
        return hashlib.blake2b(self, digest_size=16).hexdigest()


def file_size(picture: Path | Picture) -> int:
    """How many bytes a picture's file has."""
    return len(picture) if isinstance(picture, Picture) else picture.stat().st_size


def glimpse(picture: Path | Picture, most: int) -> bytes:
    """At most so many bytes from the middle of a picture's file."""
    start = max(0, file_size(picture) - most) // 2
    if isinstance(picture, Picture):
        return picture[start : start + most]
    with picture.open("rb") as file:
        file.seek(start)
        return file.read(most)
