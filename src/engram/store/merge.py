"""Make one model of several that were taught apart, as if one had learned everything."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from engram.names import fault_of_name
from engram.store.history import ClassRecord, Event, Notes, now
from engram.store.model_store import Model, ModelStore

# What becomes of a name that several models have: one class; a class of its own for each; or every class of every
# model is called after its model, whether others have the name or not.
Naming = Literal["join", "rename", "prefix"]


@dataclass(frozen=True)
class MergeSource:
    """A model to merge: what to call it when there is something to say about it, and what was read."""

    title: str
    model: Model


@dataclass(frozen=True)
class Merger:
    """What a merge makes, before anything is written.

    `added` are classes that only one of the later models knows, `joined` those that several models do, both with the
    pictures that the later ones bring; `renamed` are title, old and new name. `twice` are a class and the titles of two
    models that learned it from the same folder of pictures, which then count double.
    """

    model: Model
    added: dict[str, int]
    joined: dict[str, int]
    renamed: tuple[tuple[str, str, str], ...]
    twice: tuple[tuple[str, str, str], ...]


def merge_models(
    store: ModelStore, paths: Sequence[Path], naming: Naming = "join", *, replace_existing: bool = False
) -> Merger:
    """Merge model files into that of `store`, which may be one of them; the version before it is kept."""
    if len(paths) < 2:
        raise ValueError("merging takes two models at least")
    if twice := [str(path) for path, n in Counter(path.resolve() for path in paths).items() if n > 1]:
        raise ValueError(f"{twice[0]} is named twice, and its pictures would count twice")
    with store.changing("merge"):
        if store.exists() and not replace_existing:
            raise ValueError(
                f"{store.path} exists; choose another name, or replace it with --force: engram undo goes back"
            )
        before = store.read().notes if store.exists() else None
        sources = [MergeSource(str(path), ModelStore(path, device=store.device).read()) for path in paths]
        merger = plan_merge(sources, naming)
        notes = merger.model.notes
        if before is not None:
            notes = replace(notes, version=before.version + 1, keep=before.keep)
        store.commit(merger.model.clf, notes, before=before)
        return replace(merger, model=Model(merger.model.clf, notes))


def plan_merge(sources: Sequence[MergeSource], naming: Naming = "join") -> Merger:
    """The model that several make, without writing anything; ValueError names two that do not fit together.

    The models given may be changed: read them for this alone.
    """
    first = sources[0]
    for other in sources[1:]:
        try:
            first.model.clf.require_mergeable(other.model.clf)
        except ValueError as error:
            raise ValueError(f"cannot merge {first.title} and {other.title}: {error}") from None
    renamed = [] if naming == "join" else _rename(sources, everything=naming == "prefix")
    for source in sources:
        for name in source.model.names:
            if fault := fault_of_name(name):
                raise ValueError(f"{source.title} has a class {name!r}: {fault}; rename it there first")
    owners = Counter(name for source in sources for name in source.model.names)
    brought = Counter[str]()
    for other in sources[1:]:
        brought.update({name: n or 0 for name, n in other.model.pictures().items()})
    clf = first.model.clf.merge(*(other.model.clf for other in sources[1:]))
    notes = _merge_notes(sources, renamed)
    if not notes.keep_examples:
        clf.examples_ = {}
    event = Event(now(), "merge", {name: n or 0 for name, n in Model(clf, Notes()).pictures().items()})
    return Merger(
        model=Model(clf, notes.after(event)),
        added={name: n for name, n in brought.items() if owners[name] == 1},
        joined={name: n for name, n in brought.items() if owners[name] > 1},
        renamed=tuple((sources[at].title, old, new) for at, old, new in renamed),
        twice=tuple(_learned_twice(sources, renamed)),
    )


Renamed = list[tuple[int, str, str]]  # position of a model, old and new name of a class of it


def _rename(sources: Sequence[MergeSource], *, everything: bool) -> Renamed:
    """Give classes other names, in the models, so that no two models have one in common."""
    taken = {name for source in sources for name in source.model.names}
    seen: set[str] = set()
    renamed: Renamed = []
    for at, source in enumerate(sources):
        stem = Path(source.title).stem
        for name in source.model.names:
            if everything or name in seen:
                new = _free(f"{stem}-{name}" if everything else f"{name} ({stem})", taken)
                source.model.clf.rename(source.model.label(name), source.model.as_label(new))
                taken.add(new)
                renamed.append((at, name, new))
        seen |= set(source.model.names)
    return renamed


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted} {number}", number + 1
    return name


def _merge_notes(sources: Sequence[MergeSource], renamed: Renamed) -> Notes:
    """The histories in the order of time, under the names that the classes have now, and what is known of each class.

    A similarity calibrated for one of the models says nothing about all of them, so none is taken over. Nor do the
    leave-one-out answers: what the classes of one model would have been taken for among those of another is not known.
    Examples stay if every owner wanted that.
    """
    history: list[Event] = []
    classes: dict[str, ClassRecord] = {}
    for at, source in enumerate(sources):
        now_called = {old: new for where, old, new in renamed if where == at}
        for event in source.model.notes.history:
            pictures = {now_called.get(name, name): n for name, n in event.pictures.items()}
            new_name = event.new_name and now_called.get(event.new_name, event.new_name)
            history.append(replace(event, pictures=pictures, new_name=new_name))
        for old, record in source.model.notes.classes.items():
            name = now_called.get(old, old)
            earlier = min(record, classes.get(name, record), key=lambda one: one.learned)
            folders = {**classes[name].folders, **record.folders} if name in classes else record.folders
            classes[name] = replace(earlier, folders=folders, answers={})
    history.sort(key=lambda event: event.when)
    keep_examples = all(source.model.notes.keep_examples for source in sources)
    first = sources[0].model.notes
    return Notes(0, first.keep, keep_examples, first.refuse, history=tuple(history), classes=classes)


def _learned_twice(sources: Sequence[MergeSource], renamed: Renamed) -> list[tuple[str, str, str]]:
    """Folders of pictures that two models have learned, as far as their checksums are still there."""
    found, owner = [], dict[str, str]()
    for at, source in enumerate(sources):
        now_called = {old: new for where, old, new in renamed if where == at}
        for name, record in source.model.notes.classes.items():
            for mark in record.folders:
                if mark in owner:
                    found.append((now_called.get(name, name), owner[mark], source.title))
                owner.setdefault(mark, source.title)
    return found
