"""CIFAR-100 in its official Python layout."""

from pathlib import Path
from typing import Any

import numpy as np

from engram.bench.datasets.download import Archive, Progress, obtain
from engram.bench.datasets.pickles import read_pickle
from engram.datasets.dataset import DataError, Dataset, Split, data_root

CIFAR100 = Archive(
    url="https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
    md5="eb9058c3a382ffc7106e4002c42a8d85",
    folder="cifar-100-python",
)


def cifar100(root: str | Path | None = None, *, download: bool = False, progress: Progress | None = None) -> Dataset:
    """Read `root`/cifar-100-python/{train,test,meta}: 50,000 + 10,000 pictures of 32×32 pixels in 100 classes.

    `root` defaults to the folder named by ENGRAM_DATA. With `download` the archive is fetched first if need be.
    """
    folder = obtain(CIFAR100, data_root(root), download=download, progress=progress)
    meta = read_pickle(folder / "meta")
    names = meta.get("fine_label_names")
    if not isinstance(names, list):
        raise DataError(f"{folder / 'meta'} has no list fine_label_names")
    classes = [name.decode("latin1") if isinstance(name, bytes) else str(name) for name in names]
    return Dataset("cifar100", _split(folder / "train", classes), _split(folder / "test", classes), classes)


def _split(path: Path, classes: list[str]) -> Split:
    content = read_pickle(path)
    data: Any = content.get("data")
    labels: Any = content.get("fine_labels")
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != 3072:
        raise DataError(f"{path} has no uint8 array data (N, 3072)")
    if not isinstance(labels, list) or not all(isinstance(i, int) and 0 <= i < len(classes) for i in labels):
        raise DataError(f"{path} has no list fine_labels of numbers below {len(classes)}")
    # Stored plane by plane (red, green, blue); pictures have their channels last, and contiguous rows hash fast.
    images = np.ascontiguousarray(data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
    return Split(images, [classes[i] for i in labels])
