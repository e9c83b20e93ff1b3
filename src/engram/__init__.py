"""Teach an image classifier new classes one at a time; keep one mean vector per class and none of the old pictures."""

__version__ = "0.1.0"

from engram.classifier import IncrementalClassifier
from engram.modelfile import ModelFileError
from engram.nn.training import Progress

__all__ = ["IncrementalClassifier", "ModelFileError", "Progress", "__version__"]
