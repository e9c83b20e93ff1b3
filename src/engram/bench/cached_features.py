"""Features on disk that are used like an array."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from engram.bench.cache_file import MappedRows
from engram.images.decode import source_name
from engram.images.stream import Sources, Unreadable

Array = np.ndarray[Any, Any]
Skipped = tuple[str, str]  # name, reason


@dataclass(frozen=True)
class Features:
    """Features of the images that could be read.

    Attributes
    ----------
    values : float32 (n, dim), in the order the images came in.
    kept : for each row of `values`, the position of its image in the input.
    skipped : name and reason of each image that could not be read.
    """

    values: Array
    kept: Array
    skipped: list[Skipped]


@dataclass(frozen=True)
class CachedFeatures:
    """Features in the cache, memory-mapped: `cached[a:b]`, or any other index of rows, reads only those.

    `kept` and `skipped` are as in `Features`.
    """

    kept: Array
    skipped: list[Skipped]
    dim: int
    _files: list[MappedRows]
    _file_of: Array
    _row_of: Array

    def __len__(self) -> int:
        return len(self.kept)

    def __getitem__(self, index: Any) -> Array:
        """Return rows as float32: (dim,) for a number, (n, dim) for a slice, a mask or a list of numbers."""
        chosen = np.arange(len(self))[index]
        file_of, row_of = self._file_of[chosen].reshape(-1), self._row_of[chosen].reshape(-1)
        values = np.empty((chosen.size, self.dim), np.float32)
        for number in np.unique(file_of):
            here = np.flatnonzero(file_of == number)
            values[here] = self._files[number].values[row_of[here]]
            self._files[number].release()
        return values.reshape(*chosen.shape, self.dim)

    @classmethod
    def gather(
        cls,
        images: Sources,
        keys: Sequence[bytes | None],
        unreadable: Sequence[Unreadable],
        places: Mapping[bytes, tuple[int, int]],
        files: list[MappedRows],
        dim: int,
    ) -> Self:
        """Find every image's row: `places` says per content hash in which file and which row."""
        kept: list[int] = []
        where: list[tuple[int, int]] = []
        skipped: list[Skipped] = []
        reasons = {keys[one.position]: one.reason for one in unreadable}  # equal images fail for equal reasons
        named = {one.position: (one.name, one.reason) for one in unreadable}
        for position, key in enumerate(keys):
            if key is not None and key in places:
                kept.append(position)
                where.append(places[key])
            else:
                again = (source_name(images[position]) or f"image {position}", reasons[key])
                skipped.append(named.get(position, again))
        places_of = np.asarray(where, np.intp).reshape(-1, 2)
        dim = files[0].values.shape[1] if files else dim
        return cls(np.asarray(kept, np.intp), skipped, dim, files, places_of[:, 0], places_of[:, 1])
