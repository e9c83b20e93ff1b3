"""Lessons: one is learned at a time, by the worker process, and the others wait. All of it lives in memory."""

import itertools
import multiprocessing
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np

from engram.store import ImageBytes, Plan
from engram.web.limits import Limits, RefusedError
from engram.web.worker import Cancel, Ended, Lesson, Told, work

_REMEMBERED = 20  # lessons that have ended
_EXAMPLES = 20  # of each class, to check it with
_GRACE = 10.0  # seconds for a lesson to stop by itself, before its process is ended
ENDED = ("done", "failed", "cancelled")


@dataclass
class Job:
    """One lesson, as it is shown. `pictures` are gone as soon as the worker has them."""

    number: int
    classes: dict[str, int]
    base: bool
    pictures: dict[str, dict[int, ImageBytes]] = field(repr=False)
    unreadable: list[dict[str, Any]]
    state: str = "waiting"
    stage: str = ""
    done: int = 0
    total: int = 0
    loss: float | None = None
    message: str = ""
    began: float | None = None
    stage_began: float = 0.0
    seconds: float = 0.0
    result: dict[str, Any] | None = None

    def bytes(self) -> int:
        """The memory that its pictures take."""
        return sum(len(picture) for pictures in self.pictures.values() for picture in pictures.values())

    def seconds_left(self) -> float | None:
        """Of the stage at hand, as far as can be said."""
        if self.state != "learning" or not 0 < self.done < self.total:
            return None
        return (time.monotonic() - self.stage_began) / self.done * (self.total - self.done)


class Lessons:
    """The queue, its worker, and the examples that earlier classes are checked with.

    An example is the feature vector of a picture that was held back. They are in this process's memory only: enough to
    see forgetting while the page is used, and gone when the server ends.
    """

    def __init__(self, model: Path, plan: Plan, device: str, limits: Limits) -> None:
        self.model, self.plan, self.device, self.limits = model, plan, device, limits
        self.examples: dict[str, np.ndarray[Any, Any]] = {}
        self.revision = 0  # grows with every change that somebody may want to see
        self._numbers = itertools.count(1)
        self._jobs: list[Job] = []
        self._changed = threading.Condition()
        self._cancelled_at: float | None = None
        self._closing = False
        self._worker: BaseProcess | None = None
        self._pipe: Connection | None = None
        self._thread = threading.Thread(target=self._run, name="engram-lessons", daemon=True)

    def start(self) -> None:
        """Start the worker, so that it is ready when the first lesson comes."""
        self._hire()
        self._thread.start()

    def close(self) -> None:
        """End the worker; what it was learning is lost, the model is whole."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._dismiss()
        self._thread.join(timeout=5)

    # --- what clients do ---------------------------------------------------------------------------------------------

    def submit(self, pictures: Mapping[str, dict[int, ImageBytes]], unreadable: dict[int, str], base: bool) -> Job:
        """Put a lesson into the queue."""
        with self._changed:
            waiting = [job for job in self._jobs if job.state == "waiting"]
            job = Job(
                next(self._numbers),
                {name: len(each) for name, each in pictures.items()},
                base,
                dict(pictures),
                [{"picture": number, "reason": reason} for number, reason in unreadable.items()],
            )
            if len(waiting) >= self.limits.lessons:
                raise RefusedError(429, f"{len(waiting)} lessons are waiting already; send this one later")
            if sum(other.bytes() for other in waiting) + job.bytes() > self.limits.waiting_bytes:
                raise RefusedError(429, "the lessons that wait hold too many pictures already; send this one later")
            self._jobs.append(job)
            self._touch()
        return job

    def cancel(self, number: int) -> Job:
        """Take a lesson out of the queue, or stop it; one that has ended stays as it is."""
        with self._changed:
            job = next((job for job in self._jobs if job.number == number), None)
            if job is None:
                raise RefusedError(404, f"there is no lesson {number}")
            if job.state == "waiting":
                self._end(job, Ended("cancelled", "taken out of the queue"))
            elif job.state == "learning" and self._cancelled_at is None:
                self._cancelled_at = time.monotonic()  # the thread tells the worker, as nobody else may use the pipe
                job.message = "stopping"
                self._touch()
        return job

    def jobs(self) -> list[Job]:
        """Oldest first."""
        with self._changed:
            return list(self._jobs)

    def learning(self) -> bool:
        """Whether a lesson is under way or waiting."""
        return any(job.state not in ENDED for job in self.jobs())

    def forget(self, name: str, new: str | None = None) -> None:
        """Drop the examples of a class, or keep them under its new name."""
        with self._changed:
            held = self.examples.pop(name, None)
            if new is not None and held is not None:
                self.examples[new] = held

    # --- what the thread does ----------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or any(job.state == "waiting" for job in self._jobs))
                if self._closing:
                    return
                job = next(job for job in self._jobs if job.state == "waiting")
                job.state, job.began, self._cancelled_at = "learning", time.monotonic(), None
                names = {picture.name: number for each in job.pictures.values() for number, picture in each.items()}
                folders = {name: list(numbered.values()) for name, numbered in job.pictures.items()}
                job.pictures = {}
                lesson = Lesson(job.number, folders, self.plan, dict(self.examples))
                self._touch()
            before = stamp(self.model)
            ended = self._teach(job, lesson)
            if self._closing:
                return
            if ended is None:  # the process was ended, or died; the file says which side of the commit that was on
                changed, asked = stamp(self.model) != before, self._cancelled_at is not None
                ended = Ended("done") if changed else Ended("cancelled" if asked else "failed", _DIED[asked])
                self._hire()
            with self._changed:
                found = ({"picture": names[name], "reason": why} for name, why in ended.unreadable if name in names)
                job.unreadable += found
                for name, values in ended.examples.items():
                    self.examples[name] = np.concatenate([values, self.examples.get(name, values[:0])])[:_EXAMPLES]
                self._end(job, ended)

    def _teach(self, job: Job, lesson: Lesson) -> Ended | None:
        """Follow a lesson to its end; None if the worker is gone."""
        pipe, cancelled = self._pipe, False
        assert pipe is not None
        try:
            pipe.send(lesson)
            lesson.folders.clear()  # the pictures are the worker's now
            while True:
                if self._cancelled_at is not None:
                    if not cancelled:
                        cancelled = True
                        pipe.send(Cancel(job.number))
                    if time.monotonic() - self._cancelled_at > _GRACE:
                        return None
                if pipe.poll(0.1):
                    told = pipe.recv()
                    if isinstance(told, Ended):
                        return told
                    self._follow(job, told)
        except (EOFError, OSError):
            return None

    def _follow(self, job: Job, told: Told) -> None:
        with self._changed:
            if told.stage != job.stage:
                job.stage_began = time.monotonic()
            job.stage, job.done, job.total, job.loss = told.stage, told.done, told.total, told.loss
            if told.who:
                job.message = f"waiting for {told.who}"
            elif self._cancelled_at is None:
                job.message = ""
            self._touch()

    def _end(self, job: Job, ended: Ended) -> None:
        job.pictures = {}
        job.message, job.result, job.loss = ended.message, ended.result, None
        job.seconds = time.monotonic() - job.began if job.began is not None else 0.0
        job.state = ended.state  # last: whoever sees it sees the rest
        old = [other for other in self._jobs if other.state in ENDED][:-_REMEMBERED]
        self._jobs = [other for other in self._jobs if other not in old]
        self._touch()

    def _touch(self) -> None:
        self.revision += 1
        self._changed.notify_all()

    def _hire(self) -> None:
        self._dismiss()
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._worker = context.Process(
            target=work, args=(theirs, self.model, self.device), name="engram-worker", daemon=True
        )
        self._worker.start()
        theirs.close()  # so that its end is noticed here

    def _dismiss(self) -> None:
        """Whatever it was doing: a model file is written whole or not at all."""
        if self._worker is not None:
            self._worker.kill()
            self._worker.join(timeout=5)
        if self._pipe is not None:
            self._pipe.close()


_DIED = {True: "stopped; the model is as it was", False: "the learning process ended; the model is as it was"}


def stamp(path: Path) -> tuple[int, int, int] | None:
    """What changes whenever the file does; None if there is none."""
    try:
        about = os.stat(path)
    except OSError:
        return None
    return about.st_mtime_ns, about.st_size, about.st_ino
