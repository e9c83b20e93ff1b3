"""Learn on several processes or machines: they make sums of blocks of pictures, and all is saved once."""

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engram.backbones import Backbone
from engram.cluster import BLOCK, Setting, cut_blocks
from engram.cluster.dask_job import connect, run_blocks
from engram.estimator import IncrementalClassifier
from engram.images import extract
from engram.images.remote import ReadableImages
from engram.learner import Label
from engram.store.history import ClassRecord, Event, What, now
from engram.store.holdout import calibrate, check, hold_back, recalibrate
from engram.store.image_bytes import Source, file_size, fingerprint
from engram.store.learn import Classes, _Session
from engram.store.model_store import Model, ModelStore
from engram.store.plan import Plan
from engram.store.report import Array, Examples, Learned, Report, Step, Tell

_MOST = 1000  # images that this process looks at itself: to calibrate with, and again of those held back


def learn_on_cluster(
    store: ModelStore,
    classes: Classes,
    plan: Plan,
    address: str,
    tell: Tell = lambda step: None,
    *,
    block: int = BLOCK,
) -> Report:
    """Learn the classes that a model does not know yet, all at once, on a Dask cluster: `local`, `local:N`, an address.

    What is done is kept in a folder beside the model until all is, where the workers can write there: stopped and
    started again, the same call goes on from there.
    """
    return _ClusterSession(store, plan, tell, address, block).learn(classes, {})


class _ClusterSession(_Session):
    """Learns all classes in one go, from sums."""

    def __init__(self, store: ModelStore, plan: Plan, tell: Tell, address: str, block: int) -> None:
        super().__init__(store, plan, tell)
        self.address, self.block = address, block
        self.folder = store.versions.model.with_name(store.versions.model.name + ".blocks")

    def _learn_increments(self, model: Model, classes: Classes, examples: Examples) -> Model:
        self.plan.require_same(model.clf)
        todo = self._sort_out(model, classes)
        if not todo:
            return model
        return self._learn_task(model, "all classes", {name: classes[name] for name in todo}, model.backbone)

    def _learn_task(self, model: Model, title: str, classes: Classes, backbone: Backbone) -> Model:
        """Learn all classes and save; the model as it was if no image can be read."""
        plan, began, clf, notes, base = self.plan, time.perf_counter(), model.clf, model.notes, not self.store.exists()
        marks = {name: fingerprint(name, images) for name, images in classes.items()}
        size = sum(file_size(image) for images in classes.values() for image in images)
        parts = {name: hold_back(images, plan.holdout) for name, images in classes.items() if images}
        known = set(model.names)
        train = {name: images for name, (images, _) in parts.items()}
        counts = self._absorb(clf, title, {model.as_label(name): train[name] for name in train}, backbone)
        self.report.skipped += [(name, "none of its pictures can be read") for name in classes if name not in counts]
        if not counts and base:
            raise ValueError("a new model needs pictures of at least one class, and none could be read")
        if not counts:
            return model
        some = self._look_at_some({name: train[name] for name in counts}, backbone)
        if some:
            clf.calibrate(*_table({model.as_label(name): rows for name, rows in some.items()}))
        self.report.held = self._look_at_some({name: parts[name][1] for name in counts}, backbone)
        checked, unknown = check(clf, self.report.held), notes.unknown
        if some and not Model(clf, notes).tells_unknown:
            values = _table(some)[0]
            unknown = calibrate(clf, values, self.report.held) if base else recalibrate(clf, unknown, self.report.held)
        increment = 0 if base else notes.increments() + 1
        # No picture is judged as if it had not been learned: what earlier classes are taken for is not known any more.
        records = {name: replace(record, answers={}) for name, record in notes.classes.items()}
        for name in counts:
            record = records.get(name) or ClassRecord(now(), increment, {})
            records[name] = replace(record, folders={**record.folders, marks[name]: plan.holdout})
        what: What = "base" if base else "learn" if known.isdisjoint(counts) else "more"
        seconds = time.perf_counter() - began
        event = Event(now(), what, counts, round(seconds, 1), None, size, checked.pictures, checked.right)
        keep = notes.keep if plan.keep is None else plan.keep
        after = notes.after(event, classes=records, unknown=unknown, keep=keep)
        saved = self.store.commit(clf, after, before=None if base else notes)
        self.report.more += [name for name in counts if name in known]
        shutil.rmtree(self.folder, ignore_errors=True)
        self.report.learned += [Learned(name, n, len(parts[name][1]), increment, seconds) for name, n in counts.items()]
        if not base:
            self.tell(Step(title, "saved", 1, 1, tuple(self.report.learned)))
        return saved

    def _absorb(
        self, clf: IncrementalClassifier, title: str, train: Mapping[Label, Sequence[Source]], backbone: Backbone
    ) -> dict[str, int]:
        """Let the cluster make sums of these images, and take them in; how many images of each class they hold."""
        total = sum(map(len, train.values()))
        setting = Setting(clf.blank(), backbone.cpu(), self.store.device, self.folder)
        with connect(self.address) as client:
            self.folder.mkdir(exist_ok=True)
            ranges = cut_blocks({label: [str(image) for image in images] for label, images in train.items()}, setting,
                                self.block)  # fmt: skip
            outcome = run_blocks(client, ranges, setting, lambda done: self.tell(Step(title, "look", done, total)))
        unreadable = dict(one for summary in outcome.ranges for one in summary.unreadable)
        self.report.unreadable += unreadable.items()
        self.report.workers_lost, self.report.blocks_retried = outcome.workers_lost, outcome.blocks_retried
        learners = [summary.learner for summary in outcome.ranges if summary.learner is not None]
        if learners:
            clf.absorb(*learners)
        counts = {str(name): sum(str(image) not in unreadable for image in images) for name, images in train.items()}
        return {name: n for name, n in counts.items() if n}

    def _look_at_some(self, classes: Mapping[str, Sequence[Source]], backbone: Backbone) -> dict[str, Array]:
        """Features of images that lie evenly among all there are."""
        found = [(name, image) for name, images in classes.items() for image in images]
        found = found[:: -(-len(found) // _MOST) or 1]
        if not found:
            return {}
        images = ReadableImages([image for _, image in found])
        looked = extract(images, backbone, device=self.store.device)
        names = np.array([name for name, _ in found])[looked.kept]
        return {str(name): looked.values[names == name] for name in np.unique(names)}


def _table(classes: Mapping[Any, Array]) -> tuple[Array, list[Label]]:
    return np.concatenate(list(classes.values())), [label for label, rows in classes.items() for _ in rows]
