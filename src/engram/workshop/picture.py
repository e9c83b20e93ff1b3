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
