"""Learn from folders of images, one class at a time, each saved before the next begins."""

import shutil
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from engram.cluster import Cluster, Setting
from engram.history import ClassRecord, Event, Notes, What, now
from engram.images.decode import source_name
from engram.images.remote import ReadableImages
from engram.images.stream import encode_all
from engram.learners.base import Array, Label, Mergeable, Progress
from engram.model import Judgement, Model
from engram.names import fault_of_name
from engram.store.drift import warn_of_drift
from engram.store.health import by_leave_one_out
from engram.store.image_bytes import Source, file_size
from engram.store.model_store import ModelStore
from engram.store.plan import Plan
from engram.store.recognition import ReadOnce, Recognition
from engram.store.report import Learned, Report, Step, Suspect, Tell

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


@dataclass(frozen=True)
class _Lesson:
    """Images of some classes that could be read, their classes and features, ready to be learned.

    A cluster has made `sums` of more images than these, so many of each class as `counts` says.
    """

    title: str
    images: list[Source]
    names: list[str]
    features: Array
    counts: dict[str, int]
    marks: dict[str, str]
    size: int
    sums: tuple[Mergeable, ...] = ()


class _Session:
    """Learns into one model."""

    def __init__(self, store: ModelStore, plan: Plan, tell: Tell, cluster: Cluster | None) -> None:
        self.store, self.plan, self.tell, self.cluster = store, plan, tell, cluster
        self.blocks = store.versions.model.with_name(store.versions.model.name + ".blocks")  # done, until all are
        self.seen = Recognition(store.versions.model)
        self.report = Report()

    def learn(self, classes: Classes) -> Report:
        """Learn what is new. Pictures are encoded before the model is locked: nobody waits for somebody else's."""
        began = time.perf_counter()
        base = not self.store.exists()
        model = self.plan.new_model(self.store.device) if base else self.store.read()
        classes = self._well_named(classes, model.names)
        if not base:
            self.plan.require_same(model)
        todo = list(classes) if base else self._sort_out(model, classes)
        together = base or self.plan.all_or_nothing or self.cluster is not None
        parts = [todo] if together and todo else [[name] for name in todo]
        for number, names in enumerate(parts, 1):
            title = "the base" if base else names[0] if len(names) == 1 else "these classes"
            lesson = self._prepare(model, title, {name: classes[name] for name in names}, base)
            if lesson is None:
                continue
            before = len(self.report.learned)
            model = self._save(model, lesson, classes, began)
            if learned := tuple(self.report.learned[before:]):
                self.tell(Step(title, "saved", number, len(parts), learned))
        self.report.misfits.sort(key=lambda one: -one.probability)
        self.report.names, self.report.seconds = model.names, time.perf_counter() - began
        self.report.drift = warn_of_drift(model)
        self.seen.save({mark for record in model.notes.classes.values() for mark in record.folders})
        return self.report

    def _well_named(self, classes: Classes, known: Sequence[str]) -> Classes:
        """The classes but those that cannot be called so, which are entered into the report."""
        faults = {name: fault for name in classes if name not in set(known) and (fault := fault_of_name(name))}
        self.report.skipped += faults.items()
        if faults and len(faults) == len(classes):
            name, fault = next(iter(faults.items()))
            raise ValueError(f"{name!r}: {fault}")
        return {name: images for name, images in classes.items() if name not in faults}

    def _sort_out(self, model: Model, classes: Classes) -> list[str]:
        """Name the classes to learn; enter the others into the report."""
        todo, owners, known = [], _owners(model.notes), set(model.names)
        for name, images in classes.items():
            # What is not known by its sizes and times is recognised once it has been read, to be learned.
            to_be_read = name not in known and not self.seen.is_known(name, images)
            owner = None if to_be_read else owners.get(self.seen.mark(name, images))
            if not images:
                self.report.skipped.append((name, _why(images)))
            elif owner == name:
                self.report.known.append(name)
            elif owner is not None:
                self.report.skipped.append((name, _as_owned(owner)))
            elif name not in known or self.plan.more:
                todo.append(name)
            else:
                self.report.changed.append(name)
        self._refuse_parts()
        return todo

    def _refuse_parts(self) -> None:
        if self.plan.all_or_nothing and self.report.skipped:
            name, reason = self.report.skipped[0]
            raise ValueError(f"{name}: {reason}; nothing was learned")

    # --- before the model is locked ---------------------------------------------------------------------------------

    def _prepare(self, model: Model, title: str, classes: Classes, base: bool) -> _Lesson | None:
        """Encode the images of some classes; None if none of them can be read, or all have been learned."""
        pictures = [(name, image) for name, each in classes.items() for image in each]
        size = sum(file_size(image) for _, image in pictures)  # now, as the files may be gone afterwards
        counted, sums = dict[str, int](), tuple[Mergeable, ...]()
        chosen = pictures
        if self.cluster is not None:
            sums, counted, chosen = self._add_up(self.cluster, model, title, pictures)
        source = ReadOnce([image for _, image in chosen])
        encoder = model.open_encoder(self.store.device)
        if self.cluster is None:
            encoded = encode_all(source, encoder, progress=partial(self._tell_look, title))
        else:  # which has told already how far it was, and may have been given addresses
            encoded = encode_all(ReadableImages(source), encoder)
        self.report.unreadable += [(one.name, one.reason) for one in encoded.unreadable]
        kept = encoded.kept.tolist()
        names = [chosen[at][0] for at in kept]
        counts = counted or dict(Counter(names))
        self.report.skipped += [(name, _why(classes[name])) for name in classes if name not in counts]
        if base and len(counts) < self.plan.first_classes:
            needed = "one class" if self.plan.first_classes == 1 else "two classes"
            raise ValueError(
                f"a new model needs the pictures of at least {needed}, and found {len(counts)}; "
                "put one folder of pictures per class side by side"
            )
        if counted and not kept:
            raise ValueError("none of the pictures that the workers have read can be read here")
        marks = {name: self._mark(name, classes[name], source, chosen) for name in counts}
        owners = _owners(model.notes)
        taken = {name: owners[mark] for name, mark in marks.items() if mark in owners}
        self.report.skipped += [(name, _as_owned(owner)) for name, owner in taken.items()]
        self._refuse_parts()
        rows = [row for row, name in enumerate(names) if name not in taken]
        if not rows:
            return None
        return _Lesson(
            title,
            [chosen[kept[row]][1] for row in rows],
            [names[row] for row in rows],
            encoded.features[rows] if taken else encoded.features,
            {name: n for name, n in counts.items() if name not in taken},
            marks,
            size,
            sums,
        )

    def _mark(self, name: str, images: Sequence[Source], source: ReadOnce, chosen: list[tuple[str, Source]]) -> str:
        """What the folder is recognised by, from what has just been read of it, if that was all."""
        positions = [at for at, (other, _) in enumerate(chosen) if other == name]
        if len(positions) < len(images):
            return self.seen.mark(name, images)
        mark = source.mark(name, positions)
        self.seen.remember(name, images, mark)
        return mark

    def _add_up(
        self, cluster: Cluster, model: Model, title: str, pictures: list[tuple[str, Source]]
    ) -> tuple[tuple[Mergeable, ...], dict[str, int], list[tuple[str, Source]]]:
        """Let a cluster make sums of these images: the sums, how many of each class, and some to judge by."""
        by_class: dict[Label, list[str]] = {}
        for name, image in pictures:
            by_class.setdefault(model.as_label(name), []).append(str(image))
        setting = Setting.of(model, self.store.device, self.blocks)
        outcome = cluster.add_up(by_class, setting, lambda done: self._tell_look(title, done, len(pictures)))
        self.report.workers_lost, self.report.blocks_retried = outcome.workers_lost, outcome.blocks_retried
        unread = dict(one for summary in outcome.ranges for one in summary.unreadable)
        self.report.unreadable += unread.items()
        sums = tuple(summary.learner for summary in outcome.ranges if summary.learner is not None)
        read = [(name, image) for name, image in pictures if str(image) not in unread]
        return sums, dict(Counter(name for name, _ in read)), read[:: -(-len(read) // _MOST_JUDGED) or 1]

    def _tell_look(self, title: str, done: int, total: int) -> None:
        self.tell(Step(title, "look", done, total))

    # --- under the lock ---------------------------------------------------------------------------------------------

    def _save(self, model: Model, lesson: _Lesson, classes: Classes, began: float) -> Model:
        """Learn, and save; what another process has learned meanwhile stays learned."""
        with self.store.changing("learn"):
            base = not self.store.exists()
            if not base:
                encoder, model = model.encoder, self.store.read(model)
                self.plan.require_same(model)
                if (model.encoder and model.encoder.identity) != (encoder and encoder.identity):
                    raise ValueError(f"{self.store.path} has another encoder than when this began; nothing was learned")
            elif model.notes.version:
                raise ValueError(f"{self.store.path} is gone; nothing more was learned")
            notes, known = model.notes, set(model.names)
            lesson = self._still_new(model, lesson)
            if not lesson.counts:
                return model
            labels = [model.as_label(name) for name in lesson.names]
            after, judgement = self._teach(model, lesson, labels)
            self._suspect(lesson, labels, judgement)
            records, increment = self._records(after, notes, lesson, judgement, 0 if base else notes.increments() + 1)
            what: What = "base" if base else "more" if known.issuperset(lesson.counts) else "learn"
            accuracy = by_leave_one_out(replace(notes, classes=records), after.names).overall()
            seconds = round(time.perf_counter() - began, 1)
            event = Event(now(), what, lesson.counts, seconds, None, lesson.size, accuracy)
            keep = notes.keep if self.plan.keep is None else self.plan.keep
            after = replace(after, notes=notes.after(event, classes=records, keep=keep))
            saved = self.store.commit(after, before=None if base else notes)
        if self.cluster is not None:
            shutil.rmtree(self.blocks, ignore_errors=True)
        seconds = time.perf_counter() - began
        self.report.learned += [Learned(name, n, increment, seconds) for name, n in lesson.counts.items()]
        self.report.more += [name for name in lesson.counts if name in known]
        return saved

    def _still_new(self, model: Model, lesson: _Lesson) -> _Lesson:
        """What of a lesson nobody has learned meanwhile; the rest is entered into the report."""
        owners, known = _owners(model.notes), set(model.names)
        learned = [name for name in lesson.counts if lesson.marks[name] in owners]
        changed = [name for name in lesson.counts if name in known.difference(learned) and not self.plan.more]
        gone = {*learned, *changed}
        if not gone:
            return lesson
        if lesson.sums:
            raise ValueError("another process has learned some of these classes meanwhile; run the same command again")
        self.report.known += learned
        self.report.changed += changed
        rows = [row for row, name in enumerate(lesson.names) if name not in gone]
        return replace(
            lesson,
            images=[lesson.images[row] for row in rows],
            names=[lesson.names[row] for row in rows],
            features=lesson.features[rows],
            counts={name: n for name, n in lesson.counts.items() if name not in gone},
        )

    def _teach(self, model: Model, lesson: _Lesson, labels: list[Label]) -> tuple[Model, Judgement | None]:
        """All classes of a lesson are one task."""
        if self.cluster is not None:
            return model.absorb(*lesson.sums).judged(lesson.features, labels)

        def tell(at: Progress) -> None:
            self.tell(Step(lesson.title, "train", at.epoch, at.epochs, loss=at.loss))

        return model.learn(lesson.features, labels, tell)

    def _suspect(self, lesson: _Lesson, labels: list[Label], judgement: Judgement | None) -> None:
        for position, answer, probability in judgement.suspects(labels) if judgement else ():
            picture = source_name(lesson.images[position])
            self.report.misfits.append(Suspect(picture, lesson.names[position], str(answer), round(probability, 4)))

    def _records(
        self, model: Model, notes: Notes, lesson: _Lesson, judgement: Judgement | None, increment: int
    ) -> tuple[dict[str, ClassRecord], int]:
        """What is recorded of each class, with this lesson; and the number of the lesson."""
        records, drift = dict(notes.classes), model.learner.drift()
        strayed = {} if drift is None else dict(zip(map(str, model.labels), drift, strict=True))
        said: dict[str, Counter[str]] = {name: Counter() for name in lesson.counts}
        for name, answer, judged in (
            zip(lesson.names, judgement.answers, judgement.judged, strict=True) if judgement else ()
        ):
            said[name][str(answer)] += bool(judged)
        for name in lesson.counts:
            record = records.get(name) or ClassRecord(now(), increment, stray=strayed.get(name))
            answers = +(Counter(record.answers) + said[name])
            folders = tuple(dict.fromkeys((*record.folders, lesson.marks[name])))
            records[name] = replace(record, folders=folders, answers=dict(answers))
        return records, increment


def _owners(notes: Notes) -> dict[str, str]:
    return {mark: name for name, record in notes.classes.items() for mark in record.folders}


def _as_owned(owner: str) -> str:
    return f"these pictures have been learned, as {owner}"


def _why(images: Sequence[Source]) -> str:
    return "none of its pictures can be read" if images else "its folder holds no pictures that can be read"
