"""TensorFlow Lite files: write one from a torch module, and run it."""

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

Array = np.ndarray[Any, Any]


def write(module: nn.Module, path: Path, given: str, sample: Tensor, about: dict[str, Any]) -> None:
    """Write a module that takes a batch like `sample`; the names of classes and `about` are appended as a ZIP archive.

    That is where TensorFlow Lite keeps files that belong to a model; `unzip` shows them.
    """
    try:
        import litert_torch
    except ImportError as error:
        raise ValueError(f"{error.name} is not installed; pip install 'engram-learn[tflite]'") from None
    litert_torch.convert(module, sample_kwargs={given: sample}).export(str(path))
    with zipfile.ZipFile(path, "a") as attached:
        attached.writestr("labels.txt", "\n".join(about["labels"]) + "\n")
        attached.writestr("engram.json", json.dumps(about))


def open_runner(path: Path) -> Callable[..., Mapping[str, Array]]:
    """The file, ready to be run on one picture at a time."""
    from ai_edge_litert.interpreter import Interpreter

    run: Callable[..., Mapping[str, Array]] = Interpreter(str(path)).get_signature_runner()
    return run
