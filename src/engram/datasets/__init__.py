"""Data sets in their official layouts in, images and the names of their classes out."""

from pathlib import Path

from engram.datasets.cifar import cifar100
from engram.datasets.cub import cub200
from engram.datasets.dataset import DataError, Dataset, LeftOut, Split, data_root
from engram.datasets.detections import Detections, read_detections
from engram.datasets.digits import digits
from engram.datasets.folders import class_folders, image_folder, is_film, scan_classes, scan_pictures
from engram.datasets.listing import read_listing


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


__all__ = [
    "DataError",
    "Dataset",
    "Detections",
    "LeftOut",
    "Split",
    "cifar100",
    "class_folders",
    "cub200",
    "digits",
    "image_folder",
    "is_film",
    "load",
    "read_detections",
    "read_listing",
    "scan_classes",
    "scan_pictures",
]
