"""Data sets in their official layouts in, images and the names of their classes out."""

from pathlib import Path

from engram.bench.datasets.cifar import cifar100 as cifar100
from engram.bench.datasets.cub import cub200 as cub200
from engram.bench.datasets.digits import digits as digits
from engram.datasets.dataset import DataError, Dataset, data_root, image_folder


def load(name: str, root: str | Path | None = None, *, download: bool = False) -> Dataset:
    """Read a data set by name: "cifar100", "cub200", "digits", or "folder" for one folder of pictures per class."""
    if name == "digits":
        return digits()
    if name == "folder":
        return image_folder(data_root(root))
    official = {"cifar100": cifar100, "cub200": cub200}
    if name not in official:
        raise DataError(f"no data set is called {name!r}; there are cifar100, cub200, digits and folder")
    return official[name](root, download=download)
