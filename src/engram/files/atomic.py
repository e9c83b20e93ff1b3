"""Write a file whole or not at all: beside its target under another name, synced, then renamed."""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from glob import escape
from pathlib import Path

_SUFFIX = ".tmp"
_ABANDONED = 600.0  # seconds after which an unfinished file is nobody's work any more


@contextlib.contextmanager
def replacing(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary file beside `target` that takes its place, durably, when the block succeeds.

    A link stays a link, and the file it leads to is replaced. Its owner and permissions stay as they were.
    """
    target = Path(os.path.realpath(target))
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=_SUFFIX, dir=target.parent)
    temporary = Path(name)
    try:
        os.close(handle)
        yield temporary
        move_durably(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def move_durably(temporary: Path, target: Path) -> None:
    """Put a finished file in the place of `target`; after a power cut either the old one or the new one is there."""
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    own_like(temporary, target)
    temporary.chmod(_mode_for(target))
    os.replace(temporary, target)
    sync_folder(target.parent)


def own_like(path: Path, other: Path) -> None:
    """Give a file or folder the owner and group of another: what root writes beside a model stays its owner's."""
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):  # the other is not there, or only root may do this
            owner = other.stat()
            os.chown(path, owner.st_uid, owner.st_gid)


def sync_folder(folder: Path) -> None:
    """Make a rename itself durable, where the system lets a folder be opened."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def temporaries(folder: Path, name: str | None = None) -> list[Path]:
    """Unfinished files in a folder: those to be called `name`, or all."""
    return list(folder.glob(f".{'*' if name is None else escape(name)}.*{_SUFFIX}"))


def remove_abandoned(folder: Path, name: str | None = None) -> None:
    """Remove what killed processes left unfinished long ago; recent files may be another process's work."""
    for path in temporaries(folder, name):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED:
                path.unlink()


def _mode_for(target: Path) -> int:
    """The permissions of the file to be replaced, or what a new file would get."""
    try:
        return target.stat().st_mode & 0o777
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
