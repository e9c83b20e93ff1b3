"""Which folders of pictures a model has learned, without reading them again.

A folder is recognised by its class's name and its files' names, sizes and some bytes of each. So that nobody has to
read these bytes of pictures that have not changed since, a file beside the model remembers which sizes and times of
change they belong to. It may be lost: then each picture is read once.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engram.files.atomic import replacing
from engram.images.crop import Crop
from engram.images.decode import ImageError
from engram.store.image_bytes import ImageBytes, ImageUrl, Source, file_of, file_size

SAMPLE = 4096  # bytes from the middle of a file, to recognise it by


class ReadOnce(Sequence[Any]):
    """Pictures to be decoded, each read once: what they are recognised by is taken from the same bytes."""

    def __init__(self, images: Sequence[Source]) -> None:
        self.images = images
        self._middles: dict[int, tuple[int, bytes]] = {}

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, position: Any) -> Any:
        image = self.images[position]
        if not isinstance(image, Path):
            return image
        try:
            content = ImageBytes(image.read_bytes())
        except OSError as error:
            raise ImageError(str(image), error.strerror or str(error)) from error
        self._middles[position] = len(content), _middle_of(content)
        content.filename = str(image)
        return content

    def mark(self, name: str, positions: Sequence[int]) -> str:
        """The checksum of the folder that the pictures at these positions are, as far as they were read."""
        return fingerprint(name, [(self.images[at], self._middles.get(at)) for at in positions])


def fingerprint(name: str, images: Sequence[tuple[Source, tuple[int, bytes] | None]]) -> str:
    """A checksum of a class's name, and its files' names, sizes and some bytes of each, those known given beside them.

    Names and sizes alone are not enough: uncompressed images, numbered in every folder, have both in common.
    """
    digest = hashlib.blake2b(os.fsencode(name), digest_size=8)
    for image, known in sorted(images, key=lambda one: os.fsencode(one[0].name)):
        size, middle = known or (file_size(image), _middle(image))
        digest.update(b"\0%s\0%d\0%s" % (os.fsencode(image.name), size, middle))
    return digest.hexdigest()


class Recognition:
    """The marks of folders by their files' names, sizes and times of change, in a file beside the model."""

    def __init__(self, model: Path) -> None:
        self.path = model.with_name(f".{model.name}.seen")
        self._marks: dict[str, str] = {}
        with contextlib.suppress(OSError, ValueError):
            content = json.loads(self.path.read_text())
            self._marks = {str(key): str(mark) for key, mark in content.items()} if isinstance(content, dict) else {}
        self._written = dict(self._marks)

    def mark(self, name: str, images: Sequence[Source]) -> str:
        """The checksum of a folder; files that have not changed are not opened."""
        key = _stat_key(name, images)
        if key is None or key not in self._marks:
            mark = fingerprint(name, [(image, None) for image in images])
            self.remember(name, images, mark)
            return mark
        return self._marks[key]

    def remember(self, name: str, images: Sequence[Source], mark: str) -> None:
        """Have a mark at hand the next time."""
        if key := _stat_key(name, images):
            self._marks[key] = mark

    def is_known(self, name: str, images: Sequence[Source]) -> bool:
        """Whether the mark of these pictures is at hand."""
        return (key := _stat_key(name, images)) is not None and key in self._marks

    def save(self, marks: set[str]) -> None:
        """Keep what belongs to these marks; where that cannot be, pictures are read again the next time."""
        kept = {key: mark for key, mark in self._marks.items() if mark in marks}
        if kept == self._written:
            return
        with contextlib.suppress(OSError), replacing(self.path) as temporary:
            temporary.write_text(json.dumps(kept))


def _stat_key(name: str, images: Sequence[Source]) -> str | None:
    """A checksum of names, sizes and times of change; None where not all are files."""
    digest = hashlib.blake2b(os.fsencode(name), digest_size=16)
    for image in sorted(images, key=lambda one: os.fsencode(one.name)):
        if not isinstance(image, Path | Crop):
            return None
        try:
            state = file_of(image).stat()
        except OSError:
            return None
        part = image.box if isinstance(image, Crop) else ""
        digest.update(
            f"\0{file_of(image)}\0{state.st_size}\0{state.st_mtime_ns}\0{part}".encode(errors="surrogateescape")
        )
    return digest.hexdigest()


def _middle_of(content: bytes) -> bytes:
    start = max(0, len(content) - SAMPLE) // 2
    return content[start : start + SAMPLE]


def _middle(image: Source) -> bytes:
    """Some bytes of a file; of a part of one, also which part."""
    if isinstance(image, ImageUrl):
        return b""
    if isinstance(image, ImageBytes):
        return _middle_of(image)
    part = repr(image.box).encode() if isinstance(image, Crop) else b""
    try:
        with file_of(image).open("rb") as file:
            file.seek(max(0, file_size(image) - SAMPLE) // 2)
            return file.read(SAMPLE) + part
    except OSError:  # whoever looks at it will be told why
        return b""


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
    content = image if isinstance(image, ImageBytes) else file_of(image).read_bytes()
    return hashlib.blake2b(content, digest_size=16).digest()
