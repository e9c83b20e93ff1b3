"""One model file: read it, change it, undo the change.

Changes are made under a lock, to a copy in memory, and become real by one atomic write; the version before is kept
beside the file. So whatever happens on the way, the file is the model before the change or after it, whole.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.errors import DamagedModelError, NothingToDoError
from engram.files import model_file
from engram.history import Event, Notes, now
from engram.learners.base import GROUPS, has_row_per_class
from engram.model import Model

if TYPE_CHECKING:
    from engram.store.versions import Versions


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
        self._read: tuple[tuple[int, ...], Model] | None = None  # the model of a file as it was

    @cached_property
    def versions(self) -> "Versions":
        """The versions before that are kept beside the file."""
        from engram.store.versions import Versions  # here, as a question needs none

        return Versions(self.path)

    def exists(self) -> bool:
        """Whether there is a model yet."""
        return self.path.exists()

    def read(self, known: Model | None = None) -> Model:
        """The model as it is now; a ModelFileError says what is wrong with it.

        A file that has not changed is not read again, and the encoder of a `known` model not opened again.
        """
        stamp, before = self._stamp(), self._read
        if before is not None and stamp and before[0] == stamp:
            return before[1]
        model = Model.load(self.path)
        for other in (known, before and before[1]):
            model = model if other is None else model.with_encoder_of(other)
        self._read = (stamp, model)
        return model

    def _stamp(self) -> tuple[int, ...]:
        """What changes whenever the file does: it is never written in place. Empty if it cannot be told."""
        try:
            state = self.path.stat()
        except OSError:
            return ()
        return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns

    @contextlib.contextmanager
    def changing(self, doing: str) -> Iterator[None]:
        """Hold the model's lock."""
        if not self.versions.model.parent.is_dir():
            raise ValueError(f"{self.versions.model.parent} is not a folder; make it first")
        from engram.files.atomic import remove_abandoned
        from engram.store.lock import model_lock

        with model_lock(self.path, doing, wait=self.wait, waiting=self.waiting):
            remove_abandoned(self.versions.model.parent, self.versions.model.name)
            yield

    def commit(self, model: Model, *, before: Notes | None) -> Model:
        """Make a change real, under the lock: keep the version before, write the one after, remove those too old."""
        notes = model.notes
        keeps = before is not None and notes.keep > 0
        if before is not None and keeps:
            self.versions.keep(before.version)
        model = replace(model, notes=replace(notes, versions_at=str(self.versions.folder) if keeps else ""))
        model.save(self.path)
        self._read = (self._stamp(), model)
        self.versions.prune(notes.version, notes.keep)
        return model

    # --- changes that need no pictures ------------------------------------------------------------------------------

    def forget(self, name: str, *, for_good: bool = False) -> None:
        """Remove a class. `for_good` removes its name from the history and every previous version that is kept."""
        with self.changing("forget"):
            before = self.read()
            pictures = before.pictures().get(name) or 0
            after = before.forget(before.label(name))
            notes = before.notes.renamed(name, None).after(Event(now(), "forget", {name: pictures}))
            if for_good:
                notes = notes.without_name(name)
                self.versions.prune(notes.version, keep=0)  # first: should the write fail, the same command goes on
            self.commit(replace(after, notes=notes), before=None if for_good else before.notes)

    def rename(self, old: str, new: str) -> None:
        """Give a class another name."""
        with self.changing("rename"):
            before = self.read()
            label = before.label(old)
            if old == new:
                raise NothingToDoError(f"the class is called {new!r} already")
            after = before.rename(label, before.as_label(new))
            notes = before.notes.renamed(old, new).after(Event(now(), "rename", {old: 0}, new_name=new))
            self.commit(replace(after, notes=notes), before=before.notes)

    def refuse(self, share: float) -> None:
        """Set the share of pictures of known classes that may be called unknown: the more, the more strangers are."""
        if not 0 < share < 1:
            raise ValueError(f"the share of known pictures to refuse lies between 0 and 1, and {share:g} does not")
        with self.changing("refuse"):
            before = self.read()
            if not before.tells_unknown:
                raise ValueError(f"the method {before.method} has no rule for the unknown that could be adjusted")
            notes = before.notes.after(Event(now(), "refuse", {}, share=share), refuse=share)
            self.commit(replace(before, notes=notes), before=before.notes)

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
        from engram.encoders.head import LICENCE

        model = model or self.read()
        learner, notes, method = model.learner, model.notes, model.learner.described()
        state, counts = learner.state(), model.pictures()
        table = state.memory()
        per_class = sum(n for name, n in table.items() if has_row_per_class(name) or name.startswith("samples."))
        groups = dict.fromkeys(GROUPS.values(), 0)
        for name, size in table.items():
            groups[GROUPS[name.split(".")[0]]] += size
        classes = []
        for name, count in counts.items():
            record = notes.classes.get(name)
            learned, increment = (record.learned, record.increment) if record else (None, None)
            classes.append({"name": name, "pictures": count, "learned": learned, "increment": increment})
        return {
            "path": str(self.path),
            "bytes": self.path.stat().st_size,
            "backbone": model.encoder and model.encoder.identity,
            "method": model.method,
            "settings": state.meta["config"],
            "classes": classes,
            "built_in": {"classes": len(model.built_in), "licence": LICENCE} if model.built_in else None,
            "trains": method["trains"],
            "kept_per_class": method["per_class"],
            "keeps_samples": method["keeps_samples"],
            "bytes_per_class": per_class // max(1, len(counts)),
            "bytes_by_group": groups,
            "can_learn": learner.can_learn,
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
