"""Take one lesson back, whatever was learned since."""

from dataclasses import replace

from engram.store.health import examine
from engram.store.history import Event, Notes, now
from engram.store.model_store import Model, ModelStore


def require_kept(model: Model, number: int) -> None:
    """ValueError says why a lesson cannot be taken back."""
    if str(number) not in model.notes.lessons or number not in model.clf.lessons_:
        raise ValueError(_why_not(model.notes, number))


def unlearn_lesson(store: ModelStore, number: int) -> Event:
    """Make the model what it would be had a lesson never been learned, as one change; returns that.

    Classes that only this lesson taught are gone. ValueError says why a lesson cannot be taken back.
    """
    with store.changing("unlearn"):
        before = store.read()
        require_kept(before, number)
        taken = {str(label): n for label, n in before.clf.lessons_[number].items()}
        before.clf.unlearn(number)
        event = Event(now(), "unlearn", taken, lesson=number)
        notes = _without(before.notes.after(event), number, set(Model(before.clf, before.notes).names))
        event = replace(event, accuracy=examine(Model(before.clf, notes)).overall())
        store.commit(before.clf, replace(notes, history=(*notes.history[:-1], event)), before=before.notes)
        return event


def _without(notes: Notes, number: int, names: set[str]) -> Notes:
    """The notes once a lesson was taken back and only these classes are left."""
    lesson, taught = notes.lessons[str(number)], notes.first_taught()
    for name in lesson.folders:
        if name not in names:
            notes = notes.renamed(name, None)
        elif name in taught:
            when, increment = taught[name]
            record = replace(notes.classes[name].without(lesson, name), learned=when, increment=increment)
            notes = replace(notes, classes=notes.classes | {name: record})
        else:  # from statistics, which have no history
            notes = replace(notes, classes={known: one for known, one in notes.classes.items() if known != name})
    return replace(notes, lessons={key: one for key, one in notes.lessons.items() if key != str(number)})


def _why_not(notes: Notes, number: int) -> str:
    for event in notes.history:
        if event.what == "unlearn" and event.lesson == number:
            return f"lesson {number} has been taken back already, on {event.when[:10]}"
    if any(event.lesson == number for event in notes.history):
        return (
            f"lesson {number} cannot be taken back any more: a class that it taught together with other lessons was "
            "forgotten since, or models were merged; learn anew from the pictures that shall count"
        )
    kept = f"kept are {', '.join(notes.lessons)}" if notes.lessons else "none is kept"
    return (
        f"nothing is kept of a lesson {number}, and {kept}: its own counts, means and scatter are needed, which engram "
        "learn --keep-lessons keeps; without, engram undo takes the last changes back, engram forget whole classes"
    )
