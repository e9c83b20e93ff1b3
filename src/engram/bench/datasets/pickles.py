"""Read a pickle of plain containers and numeric numpy arrays, and nothing else.

A pickle is a program. Here the few calls that rebuild an array get stand-ins that only note their arguments, so that
not even numpy's own constructors run on what the file says; every other call is refused before it happens. Before it
is run at all it is read through: room is only made for what the file really holds.
"""

import mmap
import pickle
import pickletools
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from engram.datasets.dataset import DataError

_REMEMBER = ("PUT", "BINPUT", "LONG_BINPUT")
_KINDS = "biuf"  # booleans, integers, floats: nothing that holds Python objects


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)


class _DType:
    """Stands in for numpy.dtype."""

    def __init__(self, code: Any, *_: Any) -> None:
        self.dtype: np.dtype[Any] = np.dtype(_text(code))
        if self.dtype.kind not in _KINDS:
            raise pickle.UnpicklingError(f"an array of {_text(code)!r}, which is not numeric")

    def __setstate__(self, state: Any) -> None:
        self.dtype = self.dtype.newbyteorder(_text(state[1]))  # type: ignore[arg-type]


class _Array:
    """Stands in for the empty array numpy makes first and fills by its state."""

    def __init__(self, *_: Any) -> None:
        self.value: np.ndarray[Any, Any] | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        self.value = np.frombuffer(raw, dtype.dtype).reshape(shape, order="F" if fortran else "C")


def _frombuffer(raw: Any, dtype: _DType, shape: Any, order: str) -> _Array:
    array = _Array()
    array.__setstate__((1, shape, dtype, order == "F", raw))
    return array


def _encode(text: str, encoding: str) -> bytes:
    """Stand in for _codecs.encode, which is how Python 3 writes bytes in the old protocols."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"text encoded as {encoding!r}")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], Any] = {
    ("numpy", "dtype"): _DType,
    ("numpy", "ndarray"): None,  # only ever an argument; None cannot be called
    ("_codecs", "encode"): _encode,
}
for _core in ("numpy.core", "numpy._core"):  # numpy 1 and numpy 2
    _ALLOWED[f"{_core}.multiarray", "_reconstruct"] = _Array
    _ALLOWED[f"{_core}.numeric", "_frombuffer"] = _frombuffer


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}")
        return _ALLOWED[module, name]


def _require_sizes(program: mmap.mmap) -> None:
    """Refuse instructions that announce more than the file holds: 7 bytes could ask for gigabytes.

    pickletools itself refuses data that is not there. What is left are frames, and places to remember things at: pickle
    fills a list up to that number, and whoever writes a pickle numbers them one by one.
    """
    remembered = 0
    for instruction, argument, _ in pickletools.genops(cast(IO[bytes], program)):
        number: Any = argument
        if instruction.name == "FRAME" and number > len(program):
            raise pickle.UnpicklingError(f"it announces {number:,} bytes and has {len(program):,}")
        remembered += instruction.name in (*_REMEMBER, "MEMOIZE")
        if instruction.name in _REMEMBER and number > remembered:
            raise pickle.UnpicklingError(f"it remembers {remembered:,} things and numbers one {number:,}")


def read_pickle(path: Path) -> dict[str, Any]:
    """Return the dictionary in the file at `path`: keys as text, arrays as numpy arrays, Python 2 strings as bytes."""
    try:
        with path.open("rb") as file:
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as program:
                _require_sizes(program)
            content = _Unpickler(file, encoding="bytes").load()
        if not isinstance(content, dict):
            raise pickle.UnpicklingError(f"it holds a {type(content).__name__}, not a dictionary")
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # whatever a hostile or cut file makes pickle raise
        raise DataError(f"{path} is not a pickle of plain numeric data: {error or type(error).__name__}") from error
    return {_text(key): value.value if isinstance(value, _Array) else value for key, value in content.items()}
