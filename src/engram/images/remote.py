"""Images that may lie elsewhere: `s3://…`, `gs://…`, `https://…`, whatever fsspec can read."""

import io
from collections.abc import Sequence
from typing import Any

from engram.images.decode import ImageError


class ReadableImages(Sequence[Any]):
    """Paths as they are, and of addresses the content, read when it is asked for."""

    def __init__(self, images: Sequence[Any]) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, position: Any) -> Any:
        source = self.images[position]
        if not is_address(source):
            return source
        import fsspec

        try:
            with fsspec.open(str(source), "rb") as file:
                content = _Named(file.read())
        except Exception as error:  # every file system has errors of its own
            raise ImageError(str(source), " ".join(str(error).split()) or type(error).__name__) from error
        content.name = str(source)
        return content


def is_address(source: object) -> bool:
    """Whether a source is to be read through fsspec."""
    return isinstance(source, str) and "://" in source


class _Named(io.BytesIO):
    name: str
