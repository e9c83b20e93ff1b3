"""Anyone's own pictures: one folder per class."""

from pathlib import Path

from engram.datasets.dataset import DataError, Dataset, Split

SPLITS = frozenset({"train", "test", "val", "valid", "validation"})
SUFFIXES = frozenset({".avif", ".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"})


def image_folder(root: str | Path) -> Dataset:
    """Read `root`/CLASS/… or, where `root` is split, `root`/train/CLASS/… and `root`/test/CLASS/….

    Pictures may lie deeper inside their class's folder. Hidden files and folders are passed over; other files that are
    no pictures by their suffix are counted in `Split.ignored`. Classes are in alphabetical order.
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


def class_folders(root: str | Path) -> dict[str, list[Path]]:
    """The pictures of each class below `root`, or its `train` where it is split; a class may have none yet."""
    root = Path(root).expanduser()
    if not root.is_dir():
        raise DataError(f"{root} is not a folder")
    folder = root / "train" if _is_split(root) else root
    return {entry.name: _pictures(entry)[0] for entry in _visible(folder) if entry.is_dir()}


def pictures_below(folder: Path) -> list[Path]:
    """All pictures in a folder and deeper inside it."""
    return _pictures(folder)[0]


def _split(folder: Path) -> tuple[Split, list[str]]:
    entries = _visible(folder)
    classes = [entry for entry in entries if entry.is_dir()]
    if not classes:
        raise DataError(f"{folder} holds no folders; expected one folder of pictures per class")
    images: list[Path] = []
    labels: list[str] = []
    ignored = len(entries) - len(classes)
    for entry in classes:
        found, others = _pictures(entry)
        if not found:
            raise DataError(f"{entry} holds no pictures; add some, or remove the folder")
        ignored += others
        images += found
        labels += [entry.name] * len(found)
    return Split(images, labels, ignored), [entry.name for entry in classes]


def _is_split(root: Path) -> bool:
    """Whether `root`/train holds classes and is none: that has pictures of its own, or other classes beside it."""
    if not (root / "train").is_dir():
        return False
    inside = _visible(root / "train")
    if not any(entry.is_dir() for entry in inside) or any(entry.suffix.lower() in SUFFIXES for entry in inside):
        return False
    beside = [entry for entry in _visible(root) if entry.is_dir() and entry.name not in SPLITS]
    return not any(_pictures(entry)[0] for entry in beside)


def _visible(folder: Path) -> list[Path]:
    return [entry for entry in sorted(folder.iterdir()) if not entry.name.startswith(".")]


def _pictures(folder: Path) -> tuple[list[Path], int]:
    """The pictures in a folder and deeper inside it, and how many other files lie among them."""
    visible = [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]
    found = [path for path in visible if path.suffix.lower() in SUFFIXES]
    return found, len(visible) - len(found)
