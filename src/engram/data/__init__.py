"""Data sets in their official layouts in, images and the names of their classes out."""

from engram.data.cifar import cifar100
from engram.data.cub import cub200
from engram.data.dataset import DataError, Dataset, Split
from engram.data.folder import image_folder
from engram.data.handwriting import digits

__all__ = ["DataError", "Dataset", "Split", "cifar100", "cub200", "digits", "image_folder"]
