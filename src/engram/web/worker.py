"""The process that learns. It has a core's time only when predictions leave it, and dies with its server."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

_NICE = 10  # predictions come first
_TELL_EVERY = 0.1  # seconds


@dataclass(frozen=True)
class Lesson:
    """What the worker is sent: classes with the bytes of their pictures, and what to check earlier classes with."""

    number: int
    folders: dict[str, list[Any]]  # of engram.store.ImageBytes
    plan: Any
    examples: dict[str, Any]


@dataclass(frozen=True)
class Cancel:
    """Stop the lesson of this number."""

    number: int


@dataclass(frozen=True)
class Told:
    """How far a lesson is."""

    stage: str
    done: int = 0
    total: int = 0
    loss: float | None = None
    who: str = ""


@dataclass(frozen=True)
class Ended:
    """How a lesson ended; `result` is there if something was learned."""

    state: str
    message: str = ""
    result: dict[str, Any] | None = None
    examples: dict[str, Any] = field(default_factory=dict)
    unreadable: tuple[tuple[str, str], ...] = ()


class _CancelledError(Exception):
    pass


def stand_back() -> None:
    """Let other processes go first, where the system can do that."""
    if hasattr(os, "nice"):
        os.nice(_NICE)


def work(pipe: Connection, path: Path, device: str) -> None:
    """Learn whatever comes through the pipe, until its other end is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which then ends this process
    stand_back()
    import torch

    import engram.store  # noqa: F401  (now, and not when the first lesson comes)

    torch.set_num_threads(max(1, (os.cpu_count() or 1) - 1))  # one is left for predictions

    with contextlib.suppress(EOFError, OSError):
        while True:
            message = pipe.recv()
            if isinstance(message, Lesson):
                pipe.send(_learn(pipe, path, device, message))
            del message  # the pictures are not needed any more


def _learn(pipe: Connection, path: Path, device: str, lesson: Lesson) -> Ended:
    from engram.io.model_file import ModelFileError
    from engram.store import ModelStore, Step, learn_classes

    last, saved = 0.0, False

    def tell(step: Step) -> None:
        nonlocal last, saved
        saved = saved or step.stage == "saved"
        while not saved and pipe.poll():
            message = pipe.recv()
            if isinstance(message, Cancel) and message.number == lesson.number:
                raise _CancelledError
        if time.monotonic() - last > _TELL_EVERY or step.done == step.total:
            last = time.monotonic()
            pipe.send(Told(step.stage, step.done, step.total, step.loss))

    place = ModelStore(path, device=device, wait=600.0, waiting=lambda who: pipe.send(Told("wait", who=who)))
    try:
        report = learn_classes(place, lesson.folders, lesson.plan, tell, lesson.examples)
    except _CancelledError:
        return Ended("cancelled", "stopped; the model is as it was")
    except (ModelFileError, ValueError, OSError) as error:
        if isinstance(error, BrokenPipeError | ConnectionError):
            raise
        return Ended("failed", " ".join(str(error).split()))
    unreadable = tuple(report.unreadable)
    if not report.learned:
        reasons = [reason for _, reason in report.skipped]
        return Ended(
            "failed", reasons[0] if reasons else "these pictures have been learned already", None, {}, unreadable
        )
    checks = {"new": report.check_new, "before": report.check_before, "after": report.check_known}
    result = {
        "learned": [{"name": one.name, "pictures": one.pictures, "held_back": one.held_back} for one in report.learned],
        "seconds": round(report.seconds, 2),
        **{what: {"pictures": check.pictures, "right": check.right} for what, check in checks.items()},
    }
    return Ended("done", "", result, report.held, unreadable)
