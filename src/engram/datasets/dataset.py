"""What every data set looks like once it is read."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engram.datasets.folders import LeftOut, is_split, scan_classes
from engram.errors import DataError as DataError


@dataclass(frozen=True)
class Split:
    """Images and, at the same positions, the *names* of their classes.

    `images` is either one array (pictures: uint8 (N, H, W, 3); feature vectors: float32 (N, d)) or a list of paths.
    `left_out` are the files that lay among the images and are none.
    """

    images: np.ndarray[Any, Any] | Sequence[Path]
    labels: list[str]
    left_out: Sequence[LeftOut] = ()

    def __post_init__(self) -> None:
        if len(self.images) != len(self.labels):
            raise DataError(f"{len(self.images)} images but {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True)
class Dataset:
    """A named data set; `test` is None where its owner made no split. `classes` are in the data set's own order."""

    name: str
    train: Split
    test: Split | None
    classes: list[str]


def data_root(root: str | Path | None) -> Path:
    """Return where data sets are kept: `root`, or the folder the environment variable ENGRAM_DATA names."""
    chosen = root or os.environ.get("ENGRAM_DATA")
    if not chosen:
        raise DataError("where is the data? pass root=FOLDER, or set the environment variable ENGRAM_DATA")
    return Path(chosen).expanduser()


def image_folder(root: str | Path) -> Dataset:
    """Read `root`/CLASS/… or, where `root` is split, `root`/train/CLASS/… and `root`/test/CLASS/….

    Pictures may lie deeper inside their class's folder. Hidden files and folders are passed over; other files that are
    no pictures are in `Split.left_out`. Classes are in alphabetical order.
    """
    root = Path(root).expanduser()
    if not root.is_dir():
        raise DataError(f"{root} is not a folder")
    if not is_split(root):
        train, classes = _split(root)
        return Dataset(root.resolve().name, train, None, classes)
    train, classes = _split(root / "train")
    test, test_classes = _split(root / "test") if (root / "test").is_dir() else (None, [])
    if unknown := sorted(set(test_classes) - set(classes)):
        raise DataError(f"{root / 'test'} has classes that {root / 'train'} has not: {', '.join(unknown)}")
    return Dataset(root.resolve().name, train, test, classes)


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
