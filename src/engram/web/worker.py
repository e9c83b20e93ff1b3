"""The learning process: the messages to and from it, the handle the server holds, and what it runs.

It has low priority, so predictions come first, and it ends when the server does.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engram.store import ImageBytes, Plan, Step

_NICENESS = 10
_UPDATE_EVERY = 0.1  # seconds
_MISFITS = 12  # told of a lesson
_GRACE = 10.0  # seconds a cancelled lesson has to stop by itself


@dataclass(frozen=True)
class Learn:
    """To the worker: learn these pictures, by class."""

    number: int
    pictures: dict[str, list["ImageBytes"]]
    plan: "Plan"


@dataclass(frozen=True)
class Cancel:
    """To the worker: stop the lesson of this number."""

    number: int


@dataclass(frozen=True)
class Update:
    """From the worker: how far the lesson is, or which process holds the model meanwhile."""

    stage: str
    done: int = 0
    total: int = 0
    loss: float | None = None
    current: str = ""
    waiting_for: str = ""


@dataclass(frozen=True)
class Outcome:
    """From the worker: how the lesson ended; `result` is set if something was learned."""

    state: str
    message: str = ""
    result: dict[str, Any] | None = None
    unreadable: tuple[tuple[str, str], ...] = ()


class Worker:
    """The server's handle to the learning process. One thread uses `learn`; any thread may `kill`."""

    def __init__(self, path: Path, device: str) -> None:
        from engram.images.stream import cores

        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        threads = max(1, cores() - 1)  # one core is left to predictions
        arguments = theirs, path, device, threads
        self._process = context.Process(target=work, args=arguments, name="engram-worker", daemon=True)
        self._process.start()
        theirs.close()  # otherwise the end of the process would go unnoticed here

    def learn(self, lesson: Learn, report: Callable[[Update], None], cancelled: threading.Event) -> Outcome | None:
        """Follow one lesson to its end; None if the process died, or did not stop in time when cancelled."""
        deadline: float | None = None
        with contextlib.suppress(EOFError, OSError):
            self._pipe.send(lesson)
            lesson.pictures.clear()  # the process has them now
            while deadline is None or time.monotonic() < deadline:
                if deadline is None and cancelled.is_set():
                    deadline = time.monotonic() + _GRACE
                    self._pipe.send(Cancel(lesson.number))
                if self._pipe.poll(0.1):
                    message = self._pipe.recv()
                    if isinstance(message, Outcome):
                        return message
                    report(message)
        return None

    def kill(self) -> None:
        """End the process at once. The model survives: its file is replaced whole or not at all."""
        self._process.kill()
        self._process.join(timeout=5)


# --- inside the process ----------------------------------------------------------------------------------------------


class _CancelledError(Exception):
    pass


def lower_priority() -> None:
    """Let other processes go first, where the system supports it."""
    if hasattr(os, "nice"):
        os.nice(_NICENESS)


def work(pipe: Connection, path: Path, device: str, threads: int) -> None:
    """Learn what comes through the pipe until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then ends this process
    lower_priority()
    os.environ["OMP_NUM_THREADS"] = str(threads)  # which decoding and encoding heed
    import engram.store.learn  # noqa: F401  (now, rather than during the first lesson)

    with contextlib.suppress(EOFError, OSError):
        while True:
            message = pipe.recv()
            if isinstance(message, Learn):
                pipe.send(_learn(pipe, path, device, message))
            del message  # and the pictures with it


def _learn(pipe: Connection, path: Path, device: str, lesson: Learn) -> Outcome:
    from engram.errors import ModelFileError
    from engram.store import ModelStore, learn_classes

    last, saved = 0.0, False

    def report_step(step: "Step") -> None:
        nonlocal last, saved
        saved = saved or step.stage == "saved"
        while not saved and pipe.poll():
            message = pipe.recv()
            if isinstance(message, Cancel) and message.number == lesson.number:
                raise _CancelledError
        if time.monotonic() - last > _UPDATE_EVERY or step.done == step.total:
            last = time.monotonic()
            pipe.send(Update(step.stage, step.done, step.total, step.loss, step.name))

    store = ModelStore(path, device=device, wait=600.0, waiting=lambda who: pipe.send(Update("wait", waiting_for=who)))
    try:
        report = learn_classes(store, lesson.pictures, lesson.plan, report_step)
    except _CancelledError:
        return Outcome("cancelled", "stopped; the model is as it was")
    except (ModelFileError, ValueError, OSError) as error:
        if isinstance(error, BrokenPipeError | ConnectionError):
            raise
        return Outcome("failed", " ".join(str(error).split()))
    unreadable = tuple(report.unreadable)
    if not report.learned:
        reasons = [reason for _, reason in report.skipped]
        message = reasons[0] if reasons else "these pictures have been learned already"
        return Outcome("failed", message, unreadable=unreadable)
    result = {
        "learned": list(map(asdict, report.learned)),
        "misfits": list(map(asdict, report.misfits[:_MISFITS])),
        "seconds": round(report.seconds, 2),
    }
    return Outcome("done", result=result, unreadable=unreadable)
