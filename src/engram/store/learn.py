"""Learn from folders of images, one class at a time, each saved before the next begins."""

import functools
import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from engram.backbones import Backbone
from engram.cluster import Cluster, Setting
from engram.estimator import IncrementalClassifier
from engram.images import Features, extract, source_name
from engram.images.remote import ReadableImages
from engram.learner import Label, Progress
from engram.names import fault_of_name
from engram.store.drift import warn_of_drift
from engram.store.health import examine
from engram.store.history import ClassRecord, Event, Notes, What, now
from engram.store.image_bytes import Source, file_size, fingerprint
from engram.store.model_store import Model, ModelStore
from engram.store.plan import Plan
from engram.store.report import Array, Learned, Report, Step, Suspect, Tell

Classes = Mapping[str, Sequence[Source]]  # name of a class -> its images

_MOST_JUDGED = 1000  # images that a cluster has made sums of, to be judged here as if they had not been learned


def learn_classes(
    store: ModelStore,
    classes: Classes,
    plan: Plan,
    tell: Tell = lambda step: None,
    cluster: Cluster | None = None,
) -> Report:
    """Learn the classes that a model does not know yet; all of them at once if there is no model yet.

    Each class is saved before the next begins, so after an interruption the same call continues with the next class;
    or, with `plan.all_or_nothing`, all of them are saved together, or none if one of them cannot be learned.
    With a `cluster`, its workers make sums of the images, and all classes are saved at once.
    """
    return _Session(store, plan, tell, cluster).learn(classes)


class _Session:
    """Learns into one model."""

    def __init__(self, store: ModelStore, plan: Plan, tell: Tell, cluster: Cluster | None) -> None:
        self.store, self.plan, self.tell, self.cluster = store, plan, tell, cluster
        self.blocks = store.versions.model.with_name(store.versions.model.name + ".blocks")  # done, until all are

    def learn(self, classes: Classes) -> Report:
        """Learn what is new, under the lock."""
        began = time.perf_counter()
        self.report = Report()
        with self.store.changing("learn"):
            if self.store.exists():
                model = self.store.read()
                model = self._learn_increments(model, self._well_named(classes, model.names))
            else:
                model = self._learn_base(self._well_named(classes, ()))
        self.report.misfits.sort(key=lambda one: -one.probability)
        self.report.names, self.report.seconds = model.names, time.perf_counter() - began
        self.report.drift = warn_of_drift(model)
        return self.report

    def _well_named(self, classes: Classes, known: Sequence[str]) -> Classes:
        """The classes but those that cannot be called so, which are entered into the report."""
        faults = {name: fault for name in classes if name not in set(known) and (fault := fault_of_name(name))}
        self.report.skipped += faults.items()
        if faults and len(faults) == len(classes):
            name, fault = next(iter(faults.items()))
            raise ValueError(f"{name!r}: {fault}")
        return {name: images for name, images in classes.items() if name not in faults}

    def _learn_base(self, classes: Classes) -> Model:
        """Learn all classes at once, into a new model."""
        backbone = self.plan.new_backbone()
        clf = self.plan.new_classifier(backbone, self.store.device)
        model = self._learn_task(Model(clf, Notes(0)), "the base", classes, backbone)
        self.tell(Step("the base", "saved", 1, 1, tuple(self.report.learned)))
        return model

    def _learn_increments(self, model: Model, classes: Classes) -> Model:
        """Learn every class that is new, and with `more` the new images of known ones, one class at a time."""
        self.plan.require_same(model.clf)
        todo = self._sort_out(model, classes)
        if not todo:
            return model
        parts = [todo] if self.plan.all_or_nothing or self.cluster else [[name] for name in todo]
        for number, names in enumerate(parts, 1):
            before, title = len(self.report.learned), names[0] if len(names) == 1 else "these classes"
            model = self._learn_task(model, title, {name: classes[name] for name in names}, model.backbone)
            if learned := tuple(self.report.learned[before:]):
                self.tell(Step(title, "saved", number, len(parts), learned))
        return model

    def _sort_out(self, model: Model, classes: Classes) -> list[str]:
        """Name the classes to learn; enter the others into the report."""
        todo = []
        owners = {mark: name for name, record in model.notes.classes.items() for mark in record.folders}
        for name, images in classes.items():
            owner = owners.get(fingerprint(name, images))
            if not images:
                self.report.skipped.append((name, _why(images)))
            elif owner == name:
                self.report.known.append(name)
            elif owner is not None:
                self.report.skipped.append((name, f"these pictures have been learned, as {owner}"))
            elif name not in model.names or self.plan.more:
                todo.append(name)
            else:
                self.report.changed.append(name)
        self._refuse_parts()
        return todo

    def _refuse_parts(self) -> None:
        if self.plan.all_or_nothing and self.report.skipped:
            name, reason = self.report.skipped[0]
            raise ValueError(f"{name}: {reason}; nothing was learned")

    def _learn_task(self, model: Model, title: str, classes: Classes, backbone: Backbone) -> Model:
        """Learn some classes and save; the model as it was if none of their images can be read."""
        plan, began, clf, notes, base = self.plan, time.perf_counter(), model.clf, model.notes, not model.notes.version
        # Now, as the files may be gone afterwards.
        marks = {name: fingerprint(name, images) for name, images in classes.items()}
        size = sum(file_size(image) for images in classes.values() for image in images)
        train = [(name, image) for name, images in classes.items() for image in images]
        known, counted = set(model.names), dict[str, int]()
        if self.cluster is not None:
            counted, train = self._add_up(self.cluster, model, title, train, backbone)
        images = [image for _, image in train]
        looked = self._look(title, images, backbone, "check" if counted else "look")
        names = np.array([name for name, _ in train])[looked.kept]
        counts = counted or {name: n for name in classes if (n := int((names == name).sum()))}
        self.report.skipped += [(name, _why(images)) for name, images in classes.items() if name not in counts]
        if base and len(counts) < plan.first_classes:
            needed = "one class" if plan.first_classes == 1 else "two classes"
            raise ValueError(
                f"a new model needs the pictures of at least {needed}, and found {len(counts)}; "
                "put one folder of pictures per class side by side"
            )
        self._refuse_parts()
        if not counts:
            return model
        label_of = {name: model.as_label(name) for name in counts}
        values, labels = looked.values, [label_of[name] for name in names.tolist()]
        if not len(values):
            raise ValueError("none of the pictures that the workers have read can be read here")
        if counted:
            clf.calibrate(values, labels)
        else:
            self._teach(clf, [title] if base else list(counts), values, labels)
        increment = 0 if base else notes.increments() + 1
        left_out = clf.leave_one_out(values, labels)
        for position, answer, probability in left_out.misfits(labels) if left_out else ():
            picture = source_name(images[looked.kept[position]])
            self.report.misfits.append(Suspect(picture, str(labels[position]), str(answer), round(probability, 4)))
        seconds = time.perf_counter() - began

        records = dict(notes.classes)
        stray = clf.stray_ or {}
        for name in counts:
            record = records.get(name) if name in known else None
            record = record or ClassRecord(now(), increment, stray=stray.get(label_of[name]))
            answers = Counter(record.answers)
            if left_out:
                answers.update(map(str, left_out.answers[left_out.judged & (names == name)].tolist()))
            folders = tuple(dict.fromkeys((*record.folders, marks[name])))
            records[name] = replace(record, folders=folders, answers=dict(answers))
        what: What = "base" if base else "more" if known.issuperset(counts) else "learn"
        accuracy = examine(Model(clf, replace(notes, classes=records))).overall()
        event = Event(now(), what, counts, round(seconds, 1), None, size, accuracy)
        after = notes.after(event, classes=records, keep=notes.keep if plan.keep is None else plan.keep)
        saved = self.store.commit(clf, after, before=None if base else notes)
        if self.cluster is not None:
            shutil.rmtree(self.blocks, ignore_errors=True)
        seconds = time.perf_counter() - began
        self.report.learned += [Learned(name, n, increment, seconds) for name, n in counts.items()]
        self.report.more += [name for name in counts if name in known]
        return saved

    def _add_up(
        self, cluster: Cluster, model: Model, title: str, train: list[tuple[str, Source]], backbone: Backbone
    ) -> tuple[dict[str, int], list[tuple[str, Source]]]:
        """Let a cluster make sums of these images, and take them in: how many of each class, and some to judge by."""
        pictures: dict[Label, list[str]] = {}
        for name, image in train:
            pictures.setdefault(model.as_label(name), []).append(str(image))
        setting = Setting(model.clf.blank(), backbone.cpu(), self.store.device, self.blocks)
        outcome = cluster.add_up(pictures, setting, lambda done: self.tell(Step(title, "look", done, len(train))))
        self.report.workers_lost, self.report.blocks_retried = outcome.workers_lost, outcome.blocks_retried
        unread = dict(one for summary in outcome.ranges for one in summary.unreadable)
        self.report.unreadable += unread.items()
        if learners := [summary.learner for summary in outcome.ranges if summary.learner is not None]:
            model.clf.absorb(*learners)
        read = [(name, image) for name, image in train if str(image) not in unread]
        return dict(Counter(name for name, _ in read)), read[:: -(-len(read) // _MOST_JUDGED) or 1]

    def _teach(self, clf: IncrementalClassifier, titles: Sequence[str], values: Array, labels: Sequence[Label]) -> None:
        """One task for each title: the base, or every class that comes later, also where they are saved together."""
        of = np.array(list(map(str, labels)))
        for title in titles:
            clf.progress = functools.partial(self._tell_training, title)
            rows = np.flatnonzero(of == title) if len(titles) > 1 else np.arange(len(of))
            clf.partial_fit(values[rows], [labels[row] for row in rows.tolist()])

    def _tell_training(self, title: str, at: Progress) -> None:
        self.tell(Step(title, "train", at.epoch, at.epochs, loss=at.loss))

    def _look(
        self, title: str, images: Sequence[Source], backbone: Backbone, stage: Literal["look", "check"] = "look"
    ) -> Features:
        def progress(done: int, total: int) -> None:
            self.tell(Step(title, stage, done, total))

        readable = images if self.cluster is None else ReadableImages(images)
        looked = extract(readable, backbone, device=self.store.device, progress=progress)
        self.report.unreadable += looked.skipped
        return looked


def _why(images: Sequence[Source]) -> str:
    return "none of its pictures can be read" if images else "its folder holds no pictures that can be read"
