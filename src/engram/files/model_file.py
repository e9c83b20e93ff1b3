"""One model, one file: safetensors with a JSON header.

The safetensors metadata holds one string, `engram`: JSON of a header (format version, package version, what the file
holds, type, shape and checksum of every array) and the header's own checksum. So any flipped or missing byte that
could change what is loaded is noticed, and nothing in the file is ever executed.
"""

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

import engram
from engram.errors import DamagedModelError, ModelFileError

Array = NDArray[Any]

FORMAT_VERSION = 1
UNTOUCHED = "the file that was there before is untouched"


def write(path: str | os.PathLike[str], arrays: Mapping[str, Array], header: dict[str, Any]) -> None:
    """Write a model file atomically: whatever happens on the way, `path` holds the old model or the new, whole."""
    own = {name: np.ascontiguousarray(array).reshape(array.shape) for name, array in arrays.items()}
    if (found := find_not_finite(own)) is not None:
        raise ModelFileError(f"cannot write {path}: {found[0]} holds {found[1]}; {UNTOUCHED}")
    whole_header = {
        "format_version": FORMAT_VERSION,
        "engram_version": engram.__version__,
        **header,
        "tensors": {name: _fingerprint(array) for name, array in own.items()},
    }
    try:
        checked = {"checksum": _digest(_canonical(whole_header)), "header": whole_header}
        text = json.dumps(checked, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"cannot write {path}: its header is not what JSON holds: {error}; {UNTOUCHED}") from error
    from engram.files.atomic import replacing  # here, as a question writes nothing

    try:
        with replacing(path) as temporary:
            temporary.write_bytes(save(own, metadata={"engram": text}))
            read(temporary)  # what cannot be read back does not take the old model's place
    except (OSError, DamagedModelError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelFileError(f"cannot write {path}: {reason}; {UNTOUCHED}") from error


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Read a model file whole, or raise a ModelFileError that says what is wrong with it."""
    require_readable(path)
    try:
        with safe_open(path, framework="np") as file:
            metadata = file.metadata() or {}
            if "engram" not in metadata:
                raise DamagedModelError(f"{path} is a safetensors file, but not an engram model")
            header = _checked_header(path, metadata["engram"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedModelError(f"{path} is damaged or not an engram model: {one_line(error)}") from error
    if set(arrays) != set(header["tensors"]):
        raise DamagedModelError(f"{path} is damaged: the tensors in it are not the ones its header lists")
    for name, array in arrays.items():
        if _fingerprint(array) != header["tensors"][name]:
            raise DamagedModelError(f"{path} is damaged: tensor {name} does not match its checksum")
    if (found := find_not_finite(arrays)) is not None:
        raise DamagedModelError(f"{path} cannot give answers: {found[0]} holds {found[1]}")
    return arrays, header


def require_readable(path: str | os.PathLike[str]) -> None:
    """ModelFileError for what cannot be opened; opening a pipe would wait for somebody to write into it."""
    try:
        mode = os.stat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise ModelFileError(f"cannot read {path}: it is no file, but a pipe or a device")
        with open(path, "rb"):
            pass
    except OSError as error:
        raise ModelFileError(f"cannot read {path}: {error.strerror}") from error


def find_not_finite(arrays: Mapping[str, Array]) -> tuple[str, float] | None:
    """The name of an array that holds a value which is not finite, and that value; None if there is none."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return name, float(array[~np.isfinite(array)].flat[0])
    return None


def one_line(error: BaseException) -> str:
    """What an error says, without line breaks; its kind if it says nothing."""
    return " ".join(str(error).split()) or type(error).__name__


def _checked_header(path: str | os.PathLike[str], text: str) -> dict[str, Any]:
    outer = json.loads(text, parse_float=_finite, parse_constant=_finite)
    header: dict[str, Any] = outer["header"]
    if outer["checksum"] != _digest(_canonical(header)):
        raise DamagedModelError(f"{path} is damaged: its header does not match its checksum")
    version = header.get("format_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has format version {version}, but engram {engram.__version__} reads {FORMAT_VERSION}; "
            f"it was written by engram {header.get('engram_version')}: install that version"
        )
    if not isinstance(header["tensors"], dict):
        raise TypeError("its header lists no tensors")
    return header


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"its header holds {text}")
    return value


def _fingerprint(array: Array) -> dict[str, Any]:
    """The type has the prefix that the first files have."""
    digest = _digest(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return {"dtype": f"torch.{array.dtype}", "shape": list(array.shape), "checksum": digest}


def _canonical(header: Any) -> bytes:
    return json.dumps(header, sort_keys=True).encode()


def _digest(data: bytes | memoryview) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
