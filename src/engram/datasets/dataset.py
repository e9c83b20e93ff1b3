"""What every data set looks like once it is read."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


class DataError(ValueError):
    """A data set that is not there, or not what it should be; the message says what to do."""


class LeftOut(NamedTuple):
    """A file or folder among the pictures that is not taken for one, and why."""

    path: Path
    reason: str


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
