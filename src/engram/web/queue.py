"""The queue of lessons: the worker process learns one at a time, the others wait. All of it lives in memory."""

import functools
import itertools
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engram.store import ImageBytes, Plan
from engram.web.limits import Limits, RefusedError
from engram.web.stamp import file_stamp
from engram.web.worker import Learn, Outcome, Update, Worker

_REMEMBERED = 20  # lessons that have ended
_ENDED = ("done", "failed", "cancelled")


@dataclass
class Lesson:
    """One lesson, from the upload to its result. `pictures` is emptied as soon as the worker has them."""

    number: int
    classes: dict[str, int]
    base: bool
    plan: Plan = field(repr=False)
    pictures: dict[str, dict[int, ImageBytes]] = field(repr=False)
    unreadable: list[dict[str, Any]]
    state: str = "waiting"
    stage: str = ""
    current: str = ""
    done: int = 0
    total: int = 0
    loss: float | None = None
    message: str = ""
    began: float | None = None
    stage_began: float = 0.0
    seconds: float = 0.0
    result: dict[str, Any] | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)

    def bytes(self) -> int:
        """The memory its pictures take."""
        return sum(len(picture) for pictures in self.pictures.values() for picture in pictures.values())

    @property
    def seconds_left(self) -> float | None:
        """An estimate of what the current stage still takes; None if there is nothing to tell it from."""
        if self.state != "learning" or not 0 < self.done < self.total:
            return None
        return (time.monotonic() - self.stage_began) / self.done * (self.total - self.done)


class LessonQueue:
    """The lessons, and the worker that learns them."""

    def __init__(self, model: Path, device: str, limits: Limits) -> None:
        self.model, self.device, self.limits = model, device, limits
        self.revision = 0  # grows with every change that a client may want to see
        self._numbers = itertools.count(1)
        self._lessons: list[Lesson] = []
        self._changed = threading.Condition()
        self._closing = False
        self._worker: Worker
        self._thread = threading.Thread(target=self._run, name="engram-lessons", daemon=True)

    def start(self) -> None:
        """Start the worker now, so that it is ready for the first lesson."""
        self._worker = Worker(self.model, self.device)
        self._thread.start()

    def close(self) -> None:
        """End the worker. The lesson it was learning is lost; the model stays whole."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
            self._worker.kill()
        self._thread.join(timeout=5)

    # --- called for clients ------------------------------------------------------------------------------------------

    def submit(
        self, pictures: Mapping[str, dict[int, ImageBytes]], unreadable: dict[int, str], base: bool, plan: Plan
    ) -> Lesson:
        """Add a lesson to the queue."""
        with self._changed:
            waiting = self._waiting()
            lesson = Lesson(
                next(self._numbers),
                {name: len(numbered) for name, numbered in pictures.items()},
                base,
                plan,
                dict(pictures),
                [{"picture": number, "reason": reason} for number, reason in unreadable.items()],
            )
            if len(waiting) >= self.limits.lessons:
                raise RefusedError(429, f"{len(waiting)} lessons are waiting already; send this one later")
            if sum(other.bytes() for other in waiting) + lesson.bytes() > self.limits.waiting_bytes:
                raise RefusedError(429, "the lessons that wait hold too many pictures already; send this one later")
            self._lessons.append(lesson)
            self._touch()
        return lesson

    def cancel(self, number: int) -> Lesson:
        """Take a lesson out of the queue, or stop it; a lesson that has ended stays as it is."""
        with self._changed:
            lesson = next((lesson for lesson in self._lessons if lesson.number == number), None)
            if lesson is None:
                raise RefusedError(404, f"there is no lesson {number}")
            if lesson.state == "waiting":
                self._end(lesson, Outcome("cancelled", "taken out of the queue"))
            elif lesson.state == "learning" and not lesson.cancelled.is_set():
                lesson.cancelled.set()
                lesson.message = "stopping"
                self._touch()
        return lesson

    def lessons(self) -> list[Lesson]:
        """Every lesson that is remembered, oldest first."""
        with self._changed:
            return list(self._lessons)

    def busy(self) -> bool:
        """Whether a lesson is being learned or waiting."""
        return any(lesson.state not in _ENDED for lesson in self.lessons())

    # --- the queue's own thread --------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._waiting())
                if self._closing:
                    return
                lesson = self._waiting()[0]
                lesson.state, lesson.began = "learning", time.monotonic()
                numbers = {p.name: number for each in lesson.pictures.values() for number, p in each.items()}
                pictures = {name: list(numbered.values()) for name, numbered in lesson.pictures.items()}
                command = Learn(lesson.number, pictures, lesson.plan)
                lesson.pictures = {}
                self._touch()
            before = file_stamp(self.model)
            outcome = self._worker.learn(command, functools.partial(self._follow, lesson), lesson.cancelled)
            if outcome is None:
                self._worker.kill()  # it is dead already, or did not stop in time
            with self._changed:
                if self._closing:
                    return
                if outcome is None:
                    self._worker = Worker(self.model, self.device)
                    outcome = _outcome_without_worker(lesson, changed=file_stamp(self.model) != before)
                for name, reason in outcome.unreadable:
                    if name in numbers:
                        lesson.unreadable.append({"picture": numbers[name], "reason": reason})
                for misfit in (outcome.result or {}).get("misfits", ()):
                    misfit["picture"] = numbers[misfit["picture"]]
                self._end(lesson, outcome)

    def _follow(self, lesson: Lesson, update: Update) -> None:
        with self._changed:
            if update.stage != lesson.stage:
                lesson.stage_began = time.monotonic()
            lesson.stage, lesson.done, lesson.total, lesson.loss = update.stage, update.done, update.total, update.loss
            lesson.current = update.current if update.current in lesson.classes else ""
            if update.waiting_for:
                lesson.message = f"waiting for {update.waiting_for}"
            elif not lesson.cancelled.is_set():
                lesson.message = ""
            self._touch()

    # --- with the lock held ------------------------------------------------------------------------------------------

    def _waiting(self) -> list[Lesson]:
        return [lesson for lesson in self._lessons if lesson.state == "waiting"]

    def _end(self, lesson: Lesson, outcome: Outcome) -> None:
        lesson.pictures = {}
        lesson.message, lesson.result, lesson.loss = outcome.message, outcome.result, None
        lesson.seconds = time.monotonic() - lesson.began if lesson.began is not None else 0.0
        lesson.state = outcome.state  # last: readers that see it see the rest
        old = [other for other in self._lessons if other.state in _ENDED][:-_REMEMBERED]
        self._lessons = [other for other in self._lessons if other not in old]
        self._touch()

    def _touch(self) -> None:
        self.revision += 1
        self._changed.notify_all()


def _outcome_without_worker(lesson: Lesson, changed: bool) -> Outcome:
    """How a lesson ended whose process died: if the file has changed, the class had been saved before."""
    if changed:
        return Outcome("done")
    if lesson.cancelled.is_set():
        return Outcome("cancelled", "stopped; the model is as it was")
    return Outcome("failed", "the learning process ended; the model is as it was")
