"""Noticing that a file was replaced, by whomever."""

import os
from pathlib import Path

Stamp = tuple[int, int, int]


def file_stamp(path: Path) -> Stamp | None:
    """A value that changes whenever the file does; None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
