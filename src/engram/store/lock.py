"""One writer at a time: a lock beside the model file, with a record of who holds it.

The lock is the operating system's, so a process that dies, however it dies, lets go of it. The record beside it only
says who to wait for: one that a killed process left behind is overwritten by the next.
"""

import contextlib
import errno
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from engram.errors import ModelBusyError
from engram.files.atomic import own_like
from engram.history import now

# What file systems say that have no locks, as some that come over a network.
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
_GO_LOCAL = "its file system has no locks: copy the model to a local disk, change it there, and copy it back"


@contextlib.contextmanager
def model_lock(
    model: Path, doing: str, *, wait: float = 60.0, waiting: Callable[[str], None] | None = None
) -> Iterator[None]:
    """Hold the lock of a model file, for instance while `doing` "learn".

    If another process holds it, `waiting` is called once with who that is; after `wait` seconds a ModelBusyError is
    raised.
    """
    target = Path(os.path.realpath(model))
    file, record = target.with_name(f".{target.name}.lock"), target.with_name(f".{target.name}.holder")
    lock = FileLock(file)
    try:
        try:
            lock.acquire(blocking=False)
        except Timeout:
            if waiting is not None:
                waiting(_holder(record))
            lock.acquire(timeout=wait, poll_interval=0.1)
    except Timeout:
        raise ModelBusyError(
            f"{model} is being changed by {_holder(record)}; wait for it to end, or wait longer with --wait"
        ) from None
    except (OSError, NotImplementedError) as error:
        lockless = isinstance(error, NotImplementedError) or error.errno in _NO_LOCKS
        if lockless:
            file.unlink(missing_ok=True)  # nobody can hold it
        reason = getattr(error, "strerror", None) or error
        raise OSError(
            f"{model} cannot be changed: no lock {file.name} can be made beside it: {reason}; "
            + (_GO_LOCAL if lockless else "copy the model to a folder where you may write")
        ) from error
    own_like(file, target)  # should this process be killed, its owner can remove it
    try:
        about = {"pid": os.getpid(), "host": socket.gethostname(), "doing": doing, "since": now()}
        with contextlib.suppress(FileNotFoundError):
            record.unlink()
        with record.open("x") as new:  # a new file: what lies there may be a link to something else
            json.dump(about, new)
        yield
    finally:
        # Both go while the lock is held; whoever opened the file in between notices that it is gone, and starts over.
        for path in (record, file):
            with contextlib.suppress(OSError):
                path.unlink()
        lock.release()


def _holder(record: Path) -> str:
    try:
        about = json.loads(record.read_text())
        return f"process {about['pid']} on {about['host']} (engram {about['doing']}, since {about['since']})"
    except (OSError, ValueError, LookupError, TypeError):
        return "another process"  # which has only just begun, or is about to end
