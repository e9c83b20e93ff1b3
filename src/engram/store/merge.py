"""Make one model of several that were taught apart, as if one had learned everything."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engram.history import ClassRecord, Event, Notes, now
from engram.model import Model
from engram.names import fault_of_name
from engram.store.model_store import ModelStore


@dataclass(frozen=True)
class MergeSource:
    """A model to merge: what to call it when there is something to say about it, and what was read."""

    title: str
    model: Model


@dataclass(frozen=True)
class Merger:
    """What a merge makes, before anything is written.

    `added` are classes that only one of the later models knows, `joined` those that several models do, both with the
    pictures that the later ones bring. `twice` are a class and the titles of two models that learned it from the same
    folder of pictures, which then count double.
    """

    model: Model
    added: dict[str, int]
    joined: dict[str, int]
    twice: tuple[tuple[str, str, str], ...]


def merge_models(store: ModelStore, paths: Sequence[Path], *, replace_existing: bool = False) -> Merger:
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
        merger = plan_merge(sources)
        notes = merger.model.notes
        if before is not None:
            notes = replace(notes, version=before.version + 1, keep=before.keep)
        return replace(merger, model=store.commit(replace(merger.model, notes=notes), before=before))


def plan_merge(sources: Sequence[MergeSource]) -> Merger:
    """The model that several make, without writing anything; ValueError names two that do not fit together."""
    first = sources[0]
    for other in sources[1:]:
        try:
            first.model.require_mergeable(other.model)
        except ValueError as error:
            raise ValueError(f"cannot merge {first.title} and {other.title}: {error}") from None
    for source in sources:
        for name in source.model.names:
            if fault := fault_of_name(name):
                raise ValueError(f"{source.title} has a class {name!r}: {fault}; rename it there first")
    owners = Counter(name for source in sources for name in source.model.names)
    brought = Counter[str]()
    for other in sources[1:]:
        brought.update({name: n or 0 for name, n in other.model.pictures().items()})
    merged = first.model.merge(*(other.model for other in sources[1:]))
    event = Event(now(), "merge", {name: n or 0 for name, n in merged.pictures().items()})
    return Merger(
        model=replace(merged, notes=_merge_notes(sources).after(event)),
        added={name: n for name, n in brought.items() if owners[name] == 1},
        joined={name: n for name, n in brought.items() if owners[name] > 1},
        twice=tuple(_learned_twice(sources)),
    )


def _merge_notes(sources: Sequence[MergeSource]) -> Notes:
    """The histories in the order of time, and what is known of each class.

    Leave-one-out answers are not taken over: what the classes of one model would have been taken for among those of
    another is not known.
    """
    classes: dict[str, ClassRecord] = {}
    for source in sources:
        for name, record in source.model.notes.classes.items():
            earlier = min(record, classes.get(name, record), key=lambda one: one.learned)
            before = classes[name].folders if name in classes else ()
            folders = tuple(dict.fromkeys((*before, *record.folders)))
            classes[name] = replace(earlier, folders=folders, answers={})
    events = (event for source in sources for event in source.model.notes.history)
    history = tuple(sorted(events, key=lambda event: event.when))
    first = sources[0].model.notes
    return Notes(0, first.keep, first.refuse, history=history, classes=classes)


def _learned_twice(sources: Sequence[MergeSource]) -> list[tuple[str, str, str]]:
    """Folders of pictures that two models have learned, as far as their checksums are still there."""
    found, owner = [], dict[str, str]()
    for source in sources:
        for name, record in source.model.notes.classes.items():
            for mark in record.folders:
                if mark in owner:
                    found.append((name, owner[mark], source.title))
                owner.setdefault(mark, source.title)
    return found
