"""Teach an image classifier new classes one at a time; keep one mean vector per class and none of the old pictures."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from engram.errors import ModelFileError
    from engram.estimator import IncrementalClassifier
    from engram.learners.base import Progress
    from engram.model import Model

__all__ = ["IncrementalClassifier", "Model", "ModelFileError", "Progress", "__version__"]

_HOMES = {
    "IncrementalClassifier": "engram.estimator",
    "Model": "engram.model",
    "ModelFileError": "engram.errors",
    "Progress": "engram.learners.base",
}


def __getattr__(name: str) -> Any:
    """Import on first use: `engram --help` needs none of it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'engram' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
