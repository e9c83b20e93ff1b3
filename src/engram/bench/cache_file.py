"""One file of the feature cache: immutable, checksummed, memory-mapped.

It is a safetensors file with two tensors, `keys` (uint8 (n, 16): content hashes of images) and `values` ((n, dim):
their features); its metadata says what they were computed with, as the name of its folder does. It appears under its
name once it is whole.
"""

import hashlib
import json
import mmap
import re
import struct
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from engram.files.atomic import replacing

Array = np.ndarray[Any, Any]

KEY_BYTES = 16
SUFFIX = ".safetensors"
_FORMAT = "engram features 1"
_METADATA = {"identity", "preprocess", "format", "crc32"}
_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}
_BLOCK = 1 << 20


class DamagedCacheFileError(ValueError):
    """A file that is not what was written there."""


@dataclass(frozen=True)
class CacheFile:
    """One file of the cache: what it holds, and where in it keys and values begin."""

    path: Path
    metadata: dict[str, str]
    rows: int
    dim: int
    dtype: np.dtype[Any]
    keys_at: int
    values_at: int
    size: int

    def keys(self) -> list[bytes]:
        """Read the content hashes, in the order of the rows."""
        with self.path.open("rb") as file:
            file.seek(self.keys_at)
            raw = file.read(self.rows * KEY_BYTES)
        return [raw[at : at + KEY_BYTES] for at in range(0, len(raw), KEY_BYTES)]

    def intact(self) -> bool:
        """Compare the content with its checksum; read, not mapped, so that it does not become resident."""
        checksum = 0
        with self.path.open("rb") as file:
            for start, left in (
                (self.values_at, self.rows * self.dim * self.dtype.itemsize),
                (self.keys_at, self.rows * KEY_BYTES),
            ):
                file.seek(start)
                while left and (block := file.read(min(left, _BLOCK))):
                    checksum = zlib.crc32(block, checksum)
                    left -= len(block)
        return self.metadata["crc32"] == f"{checksum:08x}"

    def map(self) -> "MappedRows":
        """Map the features into memory; rows become resident as they are touched."""
        with self.path.open("rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        values = np.frombuffer(mapped, self.dtype, self.rows * self.dim, self.values_at).reshape(self.rows, self.dim)
        return MappedRows(values, mapped)


@dataclass(frozen=True)
class MappedRows:
    """The mapped features of one file."""

    values: Array
    mapped: mmap.mmap

    def release(self) -> None:
        """Let the system take touched pages back at once: what was copied out need not be resident twice."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self.mapped.madvise(mmap.MADV_DONTNEED)


def folder_name(identity: str, preprocess: str, dtype: np.dtype[Any]) -> str:
    """What the folder is called in which features of this backbone, preprocessing and number format lie."""
    text = "\0".join([identity, preprocess, dtype.name])
    legible = re.sub(r"[^A-Za-z0-9._-]+", "-", identity)[:60].strip("-.")
    return f"{legible}-{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}"


def write_cache_file(folder: Path, keys: list[bytes], values: Array, about: Mapping[str, str]) -> Path:
    """Write a new file into the folder, all of it or nothing, and return its path."""
    index = np.frombuffer(b"".join(keys), np.uint8).reshape(len(keys), KEY_BYTES)
    checksum = zlib.crc32(index.data, zlib.crc32(values.data))
    content = save({"keys": index, "values": values}, {**about, "format": _FORMAT, "crc32": f"{checksum:08x}"})
    path = folder / f"{uuid.uuid4().hex}{SUFFIX}"
    with replacing(path) as temporary:
        temporary.write_bytes(content)
    return path


def open_cache_file(path: Path) -> CacheFile:
    """Read a file's header; `DamagedCacheFileError` if it is not exactly what would be written there.

    Nothing in it is free: what it was computed with is in the name of the folder, and the rest follows from the size.
    """
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            header_bytes = struct.unpack("<Q", file.read(8))[0]
            header = json.loads(file.read(min(header_bytes, _BLOCK)))
        metadata, keys, values = header["__metadata__"], header["keys"], header["values"]
        (rows, width), (value_rows, dim) = keys["shape"], values["shape"]
        if not all(type(number) is int for number in (rows, width, value_rows, dim)):
            raise TypeError("its shapes are no whole numbers")
        dtype, start = _DTYPES[values["dtype"]], 8 + header_bytes
        between, end = rows * dim * dtype.itemsize, rows * (dim * dtype.itemsize + KEY_BYTES)
        if (metadata["format"], keys["dtype"], width, value_rows) != (_FORMAT, "U8", KEY_BYTES, rows):
            raise ValueError("its parts do not fit together")
        if [*values["data_offsets"], *keys["data_offsets"], size - start] != [0, between, between, end, end]:
            raise ValueError("it is not as long as its header says")
        computed_with = folder_name(metadata["identity"], metadata["preprocess"], dtype)
        if set(metadata) != _METADATA or computed_with != path.parent.name:
            raise ValueError("it was not computed with what its folder says")
        return CacheFile(path, metadata, rows, dim, dtype, start + between, start, size)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, struct.error) as error:
        raise DamagedCacheFileError(f"{path}: {error}") from error
