"""Anyone's own pictures: one folder per class."""

import os
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from engram.datasets.dataset import DataError, Dataset, LeftOut, Split

SPLITS = frozenset({"train", "test", "val", "valid", "validation"})
SUFFIXES = frozenset({".avif", ".bmp", ".gif", ".jp2", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})
_HEIC = frozenset({".heic", ".heif"})
_FILMS = frozenset({".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".webm"})


@dataclass(frozen=True)
class ClassFolders:
    """The pictures of each class, which may have none yet, and what lies among them and is none."""

    classes: dict[str, list[Path]]
    left_out: list[LeftOut]


def image_folder(root: str | Path) -> Dataset:
    """Read `root`/CLASS/… or, where `root` is split, `root`/train/CLASS/… and `root`/test/CLASS/….

    Pictures may lie deeper inside their class's folder. Hidden files and folders are passed over; other files that are
    no pictures are in `Split.left_out`. Classes are in alphabetical order.
    """
    root = Path(root).expanduser()
    if not root.is_dir():
        raise DataError(f"{root} is not a folder")
    if not _is_split(root):
        train, classes = _split(root)
        return Dataset(root.resolve().name, train, None, classes)
    train, classes = _split(root / "train")
    test, test_classes = _split(root / "test") if (root / "test").is_dir() else (None, [])
    if unknown := sorted(set(test_classes) - set(classes)):
        raise DataError(f"{root / 'test'} has classes that {root / 'train'} has not: {', '.join(unknown)}")
    return Dataset(root.resolve().name, train, test, classes)


def scan_classes(root: str | Path) -> ClassFolders:
    """The pictures of each class below `root`, or its `train` where it is split; and what is left out."""
    root = Path(root).expanduser()
    if not root.is_dir():
        raise DataError(f"{root} is not a folder")
    classes: dict[str, list[Path]] = {}
    left_out: list[LeftOut] = []
    for entry in _visible(root / "train" if _is_split(root) else root):
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


def _split(folder: Path) -> tuple[Split, list[str]]:
    found = scan_classes(folder)
    if not found.classes:
        raise DataError(f"{folder} holds no folders; expected one folder of pictures per class")
    for name, pictures in found.classes.items():
        if not pictures:
            inside = [one for one in found.left_out if (folder / name) in (one.path, *one.path.parents)]
            why = f" ({inside[0].path.name}: {inside[0].reason})" if inside else ""
            raise DataError(f"{folder / name} holds no pictures{why}; add some, or remove the folder")
    labelled = [(path, name) for name, pictures in found.classes.items() for path in pictures]
    split = Split([path for path, _ in labelled], [name for _, name in labelled], tuple(found.left_out))
    return split, list(found.classes)


def _is_split(root: Path) -> bool:
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
