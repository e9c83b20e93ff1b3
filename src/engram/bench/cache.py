"""Features on disk: φ is frozen, so each image goes through it once.

Below the cache's root there is one folder per encoder, preprocessing and number format, and in it files that never
change (see `engram.bench.cache_file`), each with a name of its own. So processes need no lock: each adds files, none
changes one, and two that compute the same image at once merely keep it twice. A damaged file is set aside, under
another name, and what was in it is computed again.
"""

import contextlib
import os
import sys
from collections.abc import Iterator, KeysView
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from engram.bench.cache_file import (
    SUFFIX,
    CacheFile,
    DamagedCacheFileError,
    MappedRows,
    folder_name,
    open_cache_file,
    write_cache_file,
)
from engram.bench.cached_features import Array, CachedFeatures, Features
from engram.bench.content_keys import UnchangedImages, content_keys
from engram.encoders.base import Encoder
from engram.files.atomic import remove_abandoned, temporaries
from engram.images.decode import ImageError
from engram.images.stream import Progress, Sources, check_sources, encode

SET_ASIDE = ".damaged"  # behind the name of a file that is not what was written
ROWS_PER_FILE = 1024  # a kill costs at most this many pictures; 32 MB at 8192 dimensions


@dataclass(frozen=True)
class CacheEntry:
    """What the cache holds for one encoder and preprocessing."""

    identity: str
    preprocess: str
    dtype: str
    count: int
    bytes: int
    path: Path


class FeatureCache:
    """Features kept below `root`: by default the folder ENGRAM_CACHE names, or the platform's cache folder.

    `dtype="float16"` halves the disk space at three significant digits. `set_aside` are the damaged files met so far,
    under the names they have now.

    Examples
    --------
    >>> cache = FeatureCache("/tmp/somewhere")  # made when something is kept
    >>> [entry.count for entry in cache.entries()]
    []
    """

    def __init__(
        self, root: str | os.PathLike[str] | None = None, dtype: Literal["float32", "float16"] = "float32"
    ) -> None:
        if dtype not in ("float32", "float16"):
            raise ValueError(f"dtype is {dtype!r}; it must be 'float32' or 'float16'")
        self.root = Path(root or os.environ.get("ENGRAM_CACHE") or _platform_folder()).expanduser()
        self.dtype = np.dtype(dtype)
        self.set_aside: list[Path] = []
        self._verified: set[Path] = set()  # files never change, so checking each once is enough

    def features(
        self,
        images: Sources,
        encoder: Encoder,
        *,
        progress: Progress | None = None,
        threads: int | None = None,
        strict: bool = False,
    ) -> Features:
        """The features of images, of which only those are computed that the cache does not hold yet.

        Images that cannot be read are skipped and named in the result, or with `strict` are an `ImageError`.
        """
        cached = self.fill(images, encoder, progress=progress, threads=threads, strict=strict)
        return Features(cached[:], cached.kept, cached.skipped)

    def fill(
        self,
        images: Sources,
        encoder: Encoder,
        *,
        progress: Progress | None = None,
        threads: int | None = None,
        strict: bool = False,
    ) -> CachedFeatures:
        """Do as `features` does, but leave the features on disk: memory stays bounded however many there are."""
        check_sources(images)
        folder = self._folder(encoder)
        remove_abandoned(folder)
        keys, unreadable = content_keys(images, threads, strict)
        first: dict[bytes, int] = {}  # of equal images only the first is computed
        for position, key in enumerate(keys):
            if key is not None:
                first.setdefault(key, position)
        files: list[MappedRows] = []
        places: dict[bytes, tuple[int, int]] = {}

        def enter(file: CacheFile, file_keys: list[bytes]) -> None:
            places.update((key, (len(files), row)) for row, key in enumerate(file_keys) if key in first)
            files.append(file.map())

        for file, file_keys in self._usable(folder, first.keys()):
            enter(file, file_keys)
        missing = [position for key, position in first.items() if key not in places]
        done = len(images) - len(missing)
        if progress is not None:
            progress(done, len(images))
        about = {"identity": encoder.identity.text, "preprocess": encoder.preprocess.key()}
        writer = _Writer(folder, self.dtype, about)
        sources = images if isinstance(images, np.ndarray) else UnchangedImages(images, keys)
        try:
            for batch in encode(sources, encoder, positions=missing, threads=threads):
                writer.add([keys[position] or b"" for position in batch.kept], batch.features)
                if strict and batch.unreadable:
                    raise ImageError(*batch.unreadable[0][1:])
                unreadable += batch.unreadable
                done += len(batch.kept) + len(batch.unreadable)
                if progress is not None:
                    progress(done, len(images))
        finally:
            writer.flush()  # also when interrupted: what was computed is kept
        for path, file_keys in writer.written:
            enter(open_cache_file(path), file_keys)
        return CachedFeatures.gather(images, keys, unreadable, places, files, encoder.dim)

    def entries(self) -> list[CacheEntry]:
        """List what is kept, per encoder and preprocessing; of damaged files see `damaged`."""
        found = []
        for folder in self._folders():
            files = [file for file in map(_open, _files(folder)) if isinstance(file, CacheFile)]
            if files:
                about = files[0].metadata
                count = len({key for file in files for key in file.keys()})  # noqa: SIM118 (a method of ours)
                size = sum(file.size for file in files)
                dtype = files[0].dtype.name
                found.append(CacheEntry(about["identity"], about["preprocess"], dtype, count, size, folder))
        return found

    def damaged(self) -> list[Path]:
        """The files that cannot be used: those set aside, and those whose header is not what was written."""
        files = [path for folder in self._folders() for path in _files(folder)]
        aside = [path for folder in self._folders() for path in _set_aside(folder)]
        return aside + [path for path in files if isinstance(_open(path), DamagedCacheFileError)]

    def clear(self, identity: str | None = None) -> int:
        """Remove the features of one encoder, or all, and no file that is not the cache's; return the bytes freed."""
        folders = self._folders() if identity is None else [e.path for e in self.entries() if e.identity == identity]
        freed = 0
        for folder in folders:
            for path in [*_files(folder), *_set_aside(folder), *temporaries(folder)]:
                freed += path.stat().st_size
                path.unlink()
            if not any(folder.iterdir()):
                folder.rmdir()
        return freed

    def _folder(self, encoder: Encoder) -> Path:
        return self.root / "features" / folder_name(encoder.identity.text, encoder.preprocess.key(), self.dtype)

    def _folders(self) -> list[Path]:
        parent = self.root / "features"
        return sorted(path for path in parent.iterdir() if path.is_dir()) if parent.is_dir() else []

    def _usable(self, folder: Path, wanted: KeysView[bytes]) -> Iterator[tuple[CacheFile, list[bytes]]]:
        """Yield the files that hold something wanted; damaged ones are set aside, so that they are computed again."""

        def check(path: Path) -> tuple[CacheFile, list[bytes]] | None:
            file = _open(path)
            if isinstance(file, DamagedCacheFileError):
                self._put_aside(path)
            if not isinstance(file, CacheFile) or wanted.isdisjoint(keys := file.keys()):
                return None
            if path not in self._verified and not file.intact():
                self._put_aside(path)
                return None
            self._verified.add(path)
            return file, keys

        with ThreadPoolExecutor(os.cpu_count(), "engram-check") as pool:
            yield from (usable for usable in pool.map(check, _files(folder)) if usable is not None)

    def _put_aside(self, path: Path) -> None:
        aside = path.with_name(path.name + SET_ASIDE)
        with contextlib.suppress(OSError):  # gone by now, or of a folder where nothing may be changed
            path.replace(aside)
            self.set_aside.append(aside)


class _Writer:
    """Gathers rows and writes a file whenever there are enough of them."""

    def __init__(self, folder: Path, dtype: np.dtype[Any], about: dict[str, str]) -> None:
        self.folder, self.dtype, self.about = folder, dtype, about
        self.written: list[tuple[Path, list[bytes]]] = []
        self.keys: list[bytes] = []
        self.values: Array | None = None

    def add(self, keys: list[bytes], values: Array) -> None:
        while keys:
            if self.values is None:
                self.values = np.empty((ROWS_PER_FILE, values.shape[1]), self.dtype)
            start, take = len(self.keys), min(len(keys), ROWS_PER_FILE - len(self.keys))
            self.values[start : start + take] = values[:take]
            self.keys += keys[:take]
            keys, values = keys[take:], values[take:]
            if len(self.keys) == ROWS_PER_FILE:
                self.flush()

    def flush(self) -> None:
        if self.values is None or not self.keys:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = write_cache_file(self.folder, self.keys, self.values[: len(self.keys)], self.about)
        self.written.append((path, self.keys))
        self.keys = []


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{'[0-9a-f]' * 32}{SUFFIX}"))


def _set_aside(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{'[0-9a-f]' * 32}{SUFFIX}{SET_ASIDE}"))


def _open(path: Path) -> CacheFile | DamagedCacheFileError | None:
    """None for a file that may not be read, or that another process has removed since it was listed."""
    try:
        return open_cache_file(path)
    except OSError:
        return None
    except DamagedCacheFileError as error:
        return error


def _platform_folder() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "engram" / "Cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "engram"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "engram"
