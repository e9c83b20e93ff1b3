"""One model file: read it, change it, undo the change.

Changes are made under a lock, to a copy in memory, and become real by one atomic write; the version before is kept
beside the file. So whatever happens on the way, the file is the model before the change or after it, whole.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.backbones import Backbone
from engram.backbones.imagenet import LICENCE
from engram.errors import DamagedModelError, NothingToDoError
from engram.estimator import IncrementalClassifier
from engram.io import model_file
from engram.io.atomic import remove_abandoned
from engram.learner import Label, has_row_per_class
from engram.names import require_name
from engram.store.history import Event, Notes, now
from engram.store.lock import model_lock
from engram.store.versions import Versions


@dataclass(frozen=True)
class Model:
    """A model as it was read: the classifier, and what its file says about it."""

    clf: IncrementalClassifier
    notes: Notes

    @property
    def backbone(self) -> Backbone:
        """The network that sees images; ValueError if the model was taught feature vectors."""
        if self.clf.backbone_identity_ is None:
            raise ValueError("the model was taught feature vectors, and cannot look at pictures")
        return self.clf.backbone_

    @property
    def labels(self) -> list[Label]:
        """The classes that were taught, in the order they were learned."""
        built_in = set(self.built_in)
        return [label for label in self._answers if label not in built_in]

    @property
    def _answers(self) -> list[Label]:
        return self.clf.learned_order_ if hasattr(self.clf, "learner_") else []  # one that was never taught has none

    @property
    def names(self) -> list[str]:
        """The classes that were taught, as text."""
        return [str(label) for label in self.labels]

    @property
    def built_in(self) -> list[str]:
        """The classes that nobody taught: the backbone's own head knows them."""
        return [str(label) for label in self.clf.built_in_] if hasattr(self.clf, "learner_") else []

    def label(self, name: str) -> Label:
        """The class of this name, taught or built in; ValueError if there is none."""
        known = {str(label): label for label in self._answers}
        if name not in known:
            shown = ", ".join(list(known)[:10]) + (f" and {len(known) - 10} more" if len(known) > 10 else "")
            raise ValueError(f"the model knows no class {name!r}; it knows {shown or 'none'}")
        return known[name]

    def as_label(self, name: str) -> Label:
        """The label to learn a class of this name under: a number where the model's classes are numbers."""
        if any(isinstance(label, int) for label in self.labels):
            try:
                return int(name)
            except ValueError:
                raise ValueError(f"the model's classes are numbers, and {name!r} is none") from None
        return name

    def pictures(self) -> dict[str, int | None]:
        """How many pictures each class was learned from; None where the method does not count them."""
        counts = self.clf.counts_
        known = {} if counts is None else dict(zip(self.clf.classes_.tolist(), counts.tolist(), strict=True))
        return {str(label): known.get(label) for label in self.labels}

    def class_vectors(self) -> NDArray[np.float32] | None:
        """One vector for each of `labels`; None where the method has none."""
        vectors = self.clf.class_vectors_
        row = {label: row for row, label in enumerate(self.clf.classes_.tolist())}
        return None if vectors is None else vectors[np.array([row[label] for label in self.labels], dtype=np.int64)]

    @property
    def tells_unknown(self) -> bool:
        """Whether the method has a rule of its own for what is unknown, which follows whatever it learns."""
        return bool(self.clf.about_["tells_unknown"])

    def unknown_below(self, number: float | None = None) -> float | None:
        """The familiarity below which an image is of no known class; None if the model cannot tell.

        Where the method has a rule of its own, `number` is the share of images of known classes that one is ready to
        lose, that in the notes without it; else it is that familiarity itself, a score.
        """
        if self.tells_unknown:
            return self.clf.unknown_below(self.notes.refuse if number is None else number)
        return number

    def describe_unknown(self) -> dict[str, Any] | None:
        """What is unknown unless one asks for something else; None for a method without leave-one-out."""
        below = self.unknown_below()
        return None if below is None else {"below": below, "share": self.notes.refuse}


class ModelStore:
    """One model file.

    `wait` is how long to wait for another process that is changing the model, in seconds; `waiting` is told who that
    is. Reading needs no lock: whoever reads has the model before a change, or after it.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        device: str = "auto",
        wait: float = 60.0,
        waiting: Callable[[str], None] | None = None,
    ) -> None:
        self.path, self.device, self.wait, self.waiting = Path(path), device, wait, waiting
        self.versions = Versions(self.path)

    def exists(self) -> bool:
        """Whether there is a model yet."""
        return self.path.exists()

    def read(self, backbone: Backbone | None = None) -> Model:
        """The model as it is now; a ModelFileError says what is wrong with it.

        `backbone` is used, and not built again, if it is the network the model was taught with.
        """
        try:
            clf = IncrementalClassifier.load(self.path, backbone=backbone, device=self.device)
        except ValueError:
            if backbone is None:
                raise
            return self.read()
        return Model(clf, Notes.from_json(clf.notes_, self.path))

    @contextlib.contextmanager
    def changing(self, doing: str) -> Iterator[None]:
        """Hold the model's lock."""
        if not self.versions.model.parent.is_dir():
            raise ValueError(f"{self.versions.model.parent} is not a folder; make it first")
        with model_lock(self.path, doing, wait=self.wait, waiting=self.waiting):
            remove_abandoned(self.versions.model.parent, self.versions.model.name)
            yield

    def commit(self, clf: IncrementalClassifier, notes: Notes, *, before: Notes | None) -> Model:
        """Make a change real, under the lock: keep the version before, write the one after, remove those too old."""
        keeps = before is not None and notes.keep > 0
        if before is not None and keeps:
            self.versions.keep(before.version)
        notes = replace(notes, versions_at=str(self.versions.folder) if keeps else "")
        clf.notes_ = notes.as_json()
        clf.save(self.path)
        self.versions.prune(notes.version, notes.keep)
        return Model(clf, notes)

    # --- changes that need no pictures ------------------------------------------------------------------------------

    def forget(self, name: str, *, for_good: bool = False) -> None:
        """Remove a class. `for_good` removes its name from the history and every previous version that is kept."""
        with self.changing("forget"):
            before = self.read()
            label = before.label(name)
            pictures = before.pictures().get(name) or 0
            before.clf.forget(label)
            notes = before.notes.renamed(name, None).after(Event(now(), "forget", {name: pictures}))
            if for_good:
                notes = notes.without_name(name)
                self.versions.prune(notes.version, keep=0)  # first: should the write fail, the same command goes on
            self.commit(before.clf, notes, before=None if for_good else before.notes)

    def rename(self, old: str, new: str) -> None:
        """Give a class another name."""
        with self.changing("rename"):
            before = self.read()
            label = before.label(old)
            if old == new:
                raise NothingToDoError(f"the class is called {new!r} already")
            require_name(new)
            before.clf.rename(label, before.as_label(new))
            event = Event(now(), "rename", {old: 0}, new_name=new)
            notes = before.notes.renamed(old, new).after(event)
            self.commit(before.clf, notes, before=before.notes)

    def refuse(self, share: float) -> None:
        """Set the share of pictures of known classes that may be called unknown: the more, the more strangers are."""
        if not 0 < share < 1:
            raise ValueError(f"the share of known pictures to refuse lies between 0 and 1, and {share:g} does not")
        with self.changing("refuse"):
            before = self.read()
            if not before.tells_unknown:
                raise ValueError(f"the method {before.clf.method_} has no rule for the unknown that could be adjusted")
            notes = before.notes.after(Event(now(), "refuse", {}, share=share), refuse=share)
            self.commit(before.clf, notes, before=before.notes)

    def undo(self) -> Event | None:
        """Take the last change back: the version before takes the model's place, byte for byte. Returns the change.

        A damaged model gives way to the last version that is whole; then None is returned. What was undone can be
        redone until the next change.
        """
        with self.changing("undo"):
            try:
                present = self.read().notes
            except DamagedModelError:
                present = None
            for number in reversed(self.versions.numbers()):
                if present is None or number < present.version:
                    with contextlib.suppress(DamagedModelError):  # such a version must not take the model's place
                        model_file.read(self.versions.path(number))
                        self._swap(number, present)
                        return present.history[-1] if present and present.history else None
            left = self.versions.tell_left_behind(present.versions_at) if present else ""
            what = left or "there is nothing to go back to"
            raise NothingToDoError(f"no previous version of {self.path} is kept beside it; {what}")

    def redo(self) -> Event:
        """Make the change again that was undone last, byte for byte. Returns the change."""
        with self.changing("redo"):
            present = self.read().notes
            for number in self.versions.numbers():
                if number > present.version:
                    model_file.read(self.versions.path(number))
                    self._swap(number, present)
                    return self.read().notes.history[-1]
            raise NothingToDoError("nothing was undone since the last change; there is nothing to redo")

    def _swap(self, number: int, present: Notes | None) -> None:
        """Put a version in the model's place, and keep the one that was there."""
        if present is not None:
            self.versions.keep(present.version)
        self.versions.restore(number)

    # --- looking -----------------------------------------------------------------------------------------------------

    def info(self, model: Model | None = None) -> dict[str, Any]:
        """What the model is and keeps, as plain values; give `model` if it has been read already."""
        model = model or self.read()
        clf, notes = model.clf, model.notes
        method, table, counts = clf.about_, clf.memory(), model.pictures()
        per_class = sum(
            entry.bytes for name, entry in table.items() if has_row_per_class(name) or name.startswith("samples.")
        )
        classes = []
        for name, count in counts.items():
            record = notes.classes.get(name)
            learned, increment = (record.learned, record.increment) if record else (None, None)
            classes.append({"name": name, "pictures": count, "learned": learned, "increment": increment})
        return {
            "path": str(self.path),
            "bytes": self.path.stat().st_size,
            "backbone": clf.backbone_identity_,
            "method": clf.method_,
            "settings": clf.config_,
            "classes": classes,
            "built_in": {"classes": len(model.built_in), "licence": LICENCE} if model.built_in else None,
            "trains": method["trains"],
            "kept_per_class": method["per_class"],
            "keeps_samples": method["keeps_samples"],
            "bytes_per_class": per_class // max(1, len(counts)),
            "bytes_by_group": table.by_group(),
            "can_learn": clf.can_learn_,
            "can_leave_out": method["leaves_out"],
            "unknown": model.describe_unknown(),
            "version": notes.version,
            "versions": {
                "folder": str(self.versions.folder),
                "keep": notes.keep,
                "kept": self.versions.numbers(),
                "bytes": self.versions.bytes(),
                "left_behind": self.versions.tell_left_behind(notes.versions_at),
            },
        }

    def history(self) -> list[Event]:
        """Every change so far, oldest first."""
        return list(self.read().notes.history)
