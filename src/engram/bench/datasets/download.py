"""Fetch a published archive: the official address, resumed where it broke off, checked, then unpacked in one move."""

import hashlib
import os
import tarfile
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from engram.datasets.dataset import DataError
from engram.files.atomic import move_durably

Progress = Callable[[int, int], None]  # bytes so far, bytes in all

_ATTEMPTS = 5  # connections to try before giving up
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Archive:
    """A published tar file and the one folder in it that is wanted."""

    url: str
    md5: str
    folder: str

    @property
    def filename(self) -> str:
        """What the file is called."""
        return self.url.rpartition("/")[2]


def obtain(archive: Archive, root: Path, *, download: bool, progress: Progress | None = None) -> Path:
    """Return the unpacked folder, fetching and unpacking it first if that was asked for."""
    if root.name == archive.folder and root.is_dir():
        return root  # the folder itself was named instead of the one it lies in
    folder = root / archive.folder
    if folder.is_dir():
        return folder
    file = root / archive.filename
    if not download:
        raise DataError(f"{folder} is not there; pass download=True, or unpack {archive.url} in {root} by hand")
    root.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        _fetch(archive, file, progress)
    elif _md5(file) != archive.md5:
        raise DataError(f"{file} is damaged or another file (its md5 is not {archive.md5}); remove it and try again")
    _unpack(archive, file, folder)
    return folder


def _fetch(archive: Archive, file: Path, progress: Progress | None) -> None:
    part = file.with_name(file.name + ".part")
    for _ in range(_ATTEMPTS):
        reason: object = "the connection keeps breaking off"
        try:
            if _transfer(archive.url, part, progress):
                break
        except urllib.error.HTTPError as error:
            raise DataError(f"cannot download {archive.url} ({error}); put the file at {file} by hand") from error
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
    else:
        raise DataError(f"cannot download {archive.url} ({reason}); try again, or put the file at {file} by hand")
    if _md5(part) != archive.md5:
        part.unlink()
        raise DataError(f"what {archive.url} sent does not have the md5 {archive.md5}; it was removed, try again")
    move_durably(part, file)


def _transfer(url: str, part: Path, progress: Progress | None) -> bool:
    """Append to `part` what is missing; return whether it is complete."""
    done = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        response = urllib.request.urlopen(request, timeout=30)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # nothing lies beyond what we have
            return True
        raise
    with response:
        if response.status != 206:
            done = 0  # the server sends it all, from the beginning
        length = response.headers.get("Content-Length")
        total = None if length is None else done + int(length)
        with part.open("ab" if done else "wb") as file:
            while block := response.read(_BLOCK):
                file.write(block)
                done += len(block)
                if progress is not None:
                    progress(done, total or done)
    # A broken connection looks like the end of the file; only the length tells them apart.
    return total is None or done >= total


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _unpack(archive: Archive, file: Path, folder: Path) -> None:
    """Unpack beside the goal and rename, so that a folder of that name is always whole."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".unpack-") as scratch:
        try:
            with tarfile.open(file) as tar:
                tar.extractall(scratch, filter="data")
        except (tarfile.TarError, EOFError, OSError) as error:
            raise DataError(f"cannot unpack {file}: {error}") from error
        inside = Path(scratch) / archive.folder
        if not inside.is_dir():
            raise DataError(f"{file} holds no folder {archive.folder}")
        try:
            os.replace(inside, folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise
