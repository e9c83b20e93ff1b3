"""Anyone's own pictures: one folder per class."""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from engram.errors import DataError

SPLITS = frozenset({"train", "test", "val", "valid", "validation"})
SUFFIXES = frozenset({".avif", ".bmp", ".gif", ".jp2", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})
_HEIC = frozenset({".heic", ".heif"})
_FILMS = frozenset({".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".webm"})


class LeftOut(NamedTuple):
    """A file or folder among the pictures that is not taken for one, and why."""

    path: Path
    reason: str


@dataclass(frozen=True)
class ClassFolders:
    """The pictures of each class, which may have none yet, and what lies among them and is none."""

    classes: dict[str, list[Path]]
    left_out: list[LeftOut]


def scan_classes(root: str | Path) -> ClassFolders:
    """The pictures of each class below `root`, or its `train` where it is split; and what is left out."""
    root = Path(root).expanduser()
    if not root.is_dir():
        raise DataError(f"{root} is not a folder")
    classes: dict[str, list[Path]] = {}
    left_out: list[LeftOut] = []
    for entry in _visible(root / "train" if is_split(root) else root):
        if entry.is_dir():
            classes[entry.name], others = scan_pictures(entry)
            left_out += others
        else:
            left_out.append(LeftOut(entry, _why_no_picture(entry) or "it lies in the folder of no class"))
    return ClassFolders(classes, left_out)


def class_folders(root: str | Path) -> dict[str, list[Path]]:
    """The pictures of each class below `root`, as in `scan_classes`."""
    return scan_classes(root).classes


def scan_pictures(folder: Path) -> tuple[list[Path], list[LeftOut]]:
    """All pictures in a folder and deeper inside it, and what else lies there that is not hidden."""
    found: list[Path] = []
    left_out: list[LeftOut] = []

    def refused(error: OSError) -> None:
        left_out.append(LeftOut(Path(error.filename), error.strerror or str(error)))

    for place, folders, files in os.walk(folder, onerror=refused):
        folders[:] = [name for name in folders if not name.startswith(".")]
        links = [Path(place, name) for name in folders if os.path.islink(os.path.join(place, name))]
        left_out += [LeftOut(link, "a link to a folder, which is not followed") for link in links]
        for path in (Path(place, name) for name in files if not name.startswith(".")):
            if reason := _why_no_picture(path):
                left_out.append(LeftOut(path, reason))
            else:
                found.append(path)
    return sorted(found), sorted(left_out)


def is_film(source: object) -> bool:
    """Whether this is a film by its name, or the address of a stream."""
    if not isinstance(source, str | os.PathLike):
        return False
    return "://" in str(source) or Path(source).suffix.lower() in _FILMS


def _why_no_picture(path: Path) -> str | None:
    """Why a file is not taken for a picture, by its name and kind alone; None if it is."""
    try:
        if not path.is_file():
            return "a link to nothing" if path.is_symlink() else "not a file"
    except OSError as error:
        return error.strerror or str(error)
    suffix = path.suffix.lower()
    if suffix in _HEIC:
        return None if find_spec("pillow_heif") else "HEIC takes one more package: pip install 'engram-learn[heic]'"
    return None if suffix in SUFFIXES else "by its name not a picture that engram reads"


def is_split(root: Path) -> bool:
    """Whether `root`/train holds classes and is none: that has pictures of its own, or other classes beside it."""
    if not (root / "train").is_dir():
        return False
    inside = _visible(root / "train")
    if not any(entry.is_dir() for entry in inside) or any(entry.suffix.lower() in SUFFIXES for entry in inside):
        return False
    beside = [entry for entry in _visible(root) if entry.is_dir() and entry.name not in SPLITS]
    return not any(scan_pictures(entry)[0] for entry in beside)


def _visible(folder: Path) -> list[Path]:
    try:
        return [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith(".")]
    except OSError as error:
        raise DataError(f"cannot read {folder}: {error.strerror}") from error
