"""Learning from folders of pictures, one class at a time, each saved before the next begins."""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from engram import backbones
from engram.backbones import Backbone
from engram.datasets import class_folders
from engram.estimator import IncrementalClassifier
from engram.images import extract
from engram.learner import Progress
from engram.methods import find_method
from engram.store.checking import calibrate, check, recalibrate, together
from engram.store.picture import Picture, file_size, glimpse
from engram.store.plan import Examples, Learned, Plan, Report, Step, Tell
from engram.store.records import ClassRecord, Event, Notes, now
from engram.store.workshop import Model, Workshop

Source = Path | Picture
Folders = Mapping[str, Sequence[Source]]  # name of a class -> its pictures

_SAMPLE = 4096  # bytes amid a file, to recognise it by
_MOST_CHECKED = 1000  # pictures of classes learned earlier, in the check after learning


def learn(
    workshop: Workshop,
    folders: Folders,
    plan: Plan,
    tell: Tell = lambda step: None,
    examples: Examples | None = None,
) -> Report:
    """Learn the classes that a model does not know yet; all of them at once if there is no model yet.

    Each class is saved before the next is begun: stopped by whatever means, the same call goes on where it was. Known
    classes are checked with `examples`, and with pictures that were held back of them and lie in their folders.
    """
    began = time.perf_counter()
    with workshop.changing("learn"):
        lesson = _Lesson(workshop, plan, tell, examples or {})
        if workshop.exists():
            lesson.increments(workshop.read(), folders)
        else:
            lesson.base(folders)
    lesson.report.seconds = time.perf_counter() - began
    return lesson.report


def watch(
    workshop: Workshop, root: Path, plan: Plan, tell: Tell = lambda step: None, *, every: float = 2.0
) -> Iterator[Report]:
    """Keep learning as folders appear, and report each time. A folder is taken once it has stopped changing."""
    before: Mapping[str, object] = {}
    hopeless: dict[str, object] = {}
    known: set[str] = set()
    file_before: object = None
    while True:
        folders = class_folders(root)
        present = {name: _state(paths) for name, paths in folders.items()}
        file = _state([workshop.path]) if workshop.exists() else None
        if file != file_before:
            known, file_before = set(workshop.read().names) if file else set(), file
        settled = {
            name: folders[name]
            for name, state in present.items()
            if state and state == before.get(name) and state != hopeless.get(name)
        }
        if settled.keys() - known if file else len(settled) > 1:
            report = learn(workshop, settled, plan, tell)
            hopeless |= {name: present[name] for name, _ in report.skipped}
            yield report
        before = present
        time.sleep(every)


def _state(paths: Sequence[Path]) -> list[tuple[Path, int, int]] | None:
    """What changes as long as a folder does; None if it changed while it was looked at."""
    try:
        return [(path, path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    except OSError:
        return None


class _Lesson:
    """One call of `learn`, under the lock."""

    def __init__(self, workshop: Workshop, plan: Plan, tell: Tell, examples: Examples) -> None:
        self.workshop, self.plan, self.tell, self.examples = workshop, plan, tell, examples
        self.report = Report()

    def base(self, folders: Folders) -> None:
        """Train on all classes at once, and calibrate what is unknown."""
        plan, began = self.plan, time.perf_counter()
        backbone = backbones.create(plan.backbone)
        # Now, as they may be gone afterwards.
        marks = {name: fingerprint(name, paths) for name, paths in folders.items()}
        size = sum(file_size(path) for paths in folders.values() for path in paths)
        trained, held = [], []
        for name, paths in folders.items():
            train, back = hold_back(paths, plan.holdout)
            trained += [(name, path) for path in train]
            held += [(name, path) for path in back]
        looked = self._look("the base", [path for _, path in trained + held], backbone)
        labels = np.array([name for name, _ in trained + held])[looked.kept]
        is_train = looked.kept < len(trained)
        train_labels, held_labels = labels[is_train], labels[~is_train]
        counts = {str(name): int(n) for name, n in zip(*np.unique(train_labels, return_counts=True), strict=True)}
        self.report.skipped += [(name, _why(folders[name])) for name in folders if name not in counts]
        if len(counts) < 2:
            raise ValueError(
                f"base training needs the pictures of at least two classes, and found {len(counts)}; "
                "put one folder of pictures per class side by side"
            )
        clf = IncrementalClassifier(
            plan.method,
            config={**find_method(plan.method).few_samples, **plan.settings},
            backbone=plan.backbone,
            random_state=plan.seed,
            device=self.workshop.device,
            progress=self._training("the base"),
        )
        clf.fit(looked.values[is_train], train_labels)
        held_values = looked.values[~is_train]
        unknown = calibrate(clf, looked.values[is_train], held_values)
        seconds = time.perf_counter() - began
        classes = {name: ClassRecord(now(), 0, {marks[name]: plan.holdout}) for name in counts}
        self.report.held = {name: held_values[held_labels == name] for name in counts}
        checked = self.report.check_new = check(clf, self.report.held)
        event = Event(now(), "base", counts, round(seconds, 1), None, size, checked.pictures, checked.right)
        keep = Notes().keep if plan.keep is None else plan.keep
        self.workshop.commit(clf, Notes(1, keep, unknown, (event,), classes), before=None)
        for name, n in counts.items():
            self.report.learned.append(Learned(name, n, len(self.report.held[name]), 0, seconds))
        self.tell(Step("the base", "saved", 1, 1, tuple(self.report.learned)))

    def increments(self, model: Model, folders: Folders) -> None:
        """Learn every class that is new, and with `more` the new pictures of known ones."""
        todo = []
        owners = {mark: name for name, record in model.notes.classes.items() for mark in record.folders}
        for name, paths in folders.items():
            owner = owners.get(fingerprint(name, paths))
            if not paths:
                self.report.skipped.append((name, _why(paths)))
            elif owner == name:
                self.report.known.append(name)
            elif owner is not None:
                self.report.skipped.append((name, f"these pictures have been learned, as {owner}"))
            elif name not in model.names or self.plan.more:
                todo.append(name)
            else:
                self.report.changed.append(name)
        if todo:
            given = {name: values for name, values in self.examples.items() if name in model.names}
            self.examples = together(given, self._held_back_before(model, folders))
            self.report.check_before = check(model.clf, self.examples)
        for number, name in enumerate(todo, 1):
            learned = self._increment(model, name, folders[name])
            if learned is not None:
                model = learned
                self.tell(Step(name, "saved", number, len(todo), (self.report.learned[-1],)))
        if self.report.learned:
            self.report.check_new = check(model.clf, self.report.held)
            self.report.check_known = check(model.clf, self.examples)

    def _increment(self, model: Model, name: str, paths: Sequence[Source]) -> Model | None:
        """Learn one class and save; None if no picture could be read."""
        plan, began, notes = self.plan, time.perf_counter(), model.notes
        known, mark, size = name in model.names, fingerprint(name, paths), sum(map(file_size, paths))
        train, back = hold_back(paths, plan.holdout)
        looked = self._look(name, [*train, *back], model.clf.backbone_)
        is_train = looked.kept < len(train)
        pictures = int(is_train.sum())
        if not pictures:
            self.report.skipped.append((name, _why(paths)))
            return None
        label = model.label(name) if known else model.as_label(name)
        model.clf.progress = self._training(name)
        model.clf.partial_fit(looked.values[is_train], [label] * pictures)
        seconds = time.perf_counter() - began
        increment = notes.increments() + 1
        record = notes.classes.get(name) if known else None
        record = record or ClassRecord(now(), increment, {})
        record = replace(record, folders={**record.folders, mark: plan.holdout})
        held = {**self.report.held, name: looked.values[~is_train]}
        at_hand = together(self.examples, held)
        checked, unknown = check(model.clf, at_hand), recalibrate(model.clf, notes.unknown, at_hand)
        what: Literal["more", "learn"] = "more" if known else "learn"
        event = Event(now(), what, {name: pictures}, round(seconds, 1), None, size, checked.pictures, checked.right)
        after = notes.after(event, classes={**notes.classes, name: record}, unknown=unknown)
        if plan.keep is not None:
            after = replace(after, keep=plan.keep)
        saved = self.workshop.commit(model.clf, after, before=notes)
        self.report.held = held
        self.report.learned.append(Learned(name, pictures, len(held[name]), increment, time.perf_counter() - began))
        return saved

    def _held_back_before(self, model: Model, folders: Folders) -> Examples:
        """Look at the pictures of known classes that lie in the folder and were held back."""
        back = []
        for name in self.report.known:
            shares = model.notes.classes[name].folders
            back += [(name, path) for path in hold_back(folders[name], shares[fingerprint(name, folders[name])])[1]]
        back = back[:: -(-len(back) // _MOST_CHECKED) or 1]
        if not back:
            return {}
        looked = self._look("the check", [path for _, path in back], model.clf.backbone_, "check")
        labels = np.array([name for name, _ in back])[looked.kept]
        return {str(name): looked.values[labels == name] for name in np.unique(labels)}

    def _look(
        self, name: str, paths: Sequence[Source], backbone: Backbone, stage: Literal["look", "check"] = "look"
    ) -> Any:
        def progress(done: int, total: int) -> None:
            self.tell(Step(name, stage, done, total))

        looked = extract(paths, backbone, device=self.workshop.device, progress=progress)
        self.report.unreadable += looked.skipped
        return looked

    def _training(self, name: str) -> Callable[[Progress], None]:
        return lambda at: self.tell(Step(name, "train", at.epoch, at.epochs, loss=at.loss))


def hold_back(paths: Sequence[Source], share: float) -> tuple[list[Source], list[Source]]:
    """Part the pictures of a class into those to learn from and a `share` to check with.

    Which ones depends on their names alone, so that the same folder is parted the same way again.
    """
    ordered = sorted(paths, key=lambda path: hashlib.blake2b(os.fsencode(path.name)).digest())
    held = min(round(share * len(ordered)), len(ordered) - 1)
    return ordered[held:], ordered[:held]


def fingerprint(name: str, paths: Sequence[Source]) -> str:
    """A checksum to recognise a class's folder by: its name, and its files' names, sizes and some bytes amid each.

    Names and sizes alone would not do: pictures without compression, numbered in every folder, have all in common.
    """
    digest = hashlib.blake2b(os.fsencode(name), digest_size=8)
    for path in sorted(paths, key=lambda path: os.fsencode(path.name)):
        digest.update(b"\0%s\0%d\0%s" % (os.fsencode(path.name), file_size(path), glimpse(path, _SAMPLE)))
    return digest.hexdigest()


def _why(paths: Sequence[Source]) -> str:
    return "none of its pictures can be read" if paths else "its folder holds no pictures"
