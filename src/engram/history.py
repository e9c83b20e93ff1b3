"""What a model file records beside the model: every change, where each class came from, and what counts as unknown.

It is in the notes of the model file, as JSON: names, numbers, dates, and one checksum for each folder of pictures.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal, Self, TypeVar

from engram.errors import DamagedModelError
from engram.settings import require_kind

R = TypeVar("R", bound=Any)
V = TypeVar("V")
What = Literal["base", "learn", "more", "forget", "rename", "refuse", "merge", "unlearn"]
UNKNOWN_SHARE = 0.05  # of known images, that are called unknown by mistake, unless somebody wants another
FORGOTTEN = "(forgotten)"
_OWN = ("version", "keep", "refuse", "versions_at")
_RETIRED = ("checked", "right", "basis", "lesson")  # of events in files of before: pictures held back, lessons kept


@dataclass(frozen=True)
class Event:
    """One change of the model. `pictures` are the classes concerned and how many pictures each was learned from.

    `bytes` is the size of the picture files. `accuracy` is that of all classes after the change by leave-one-out, where
    it could be told of each; see `engram.store.health`. `share` is the share of known pictures that may be refused from
    then on. Files of before may hold an "unlearn": what one lesson had taught was taken back.
    """

    when: str
    what: What
    pictures: dict[str, int]
    seconds: float = 0.0
    new_name: str | None = None
    bytes: int = 0
    accuracy: float | None = None
    share: float | None = None


@dataclass(frozen=True)
class ClassRecord:
    """When a class was learned, in which increment (0 is the base), and from which folders of pictures.

    A folder is remembered as one checksum: enough to recognise one that has been learned already. `answers` counts what
    the model said to its pictures when they had been learned, to each as if it had not been; it is empty for a method
    that cannot tell. `stray` is how far the network was from the class then.
    """

    learned: str
    increment: int
    folders: tuple[str, ...] = ()
    answers: dict[str, int] = field(default_factory=dict)
    stray: float | None = None

    def with_answer_renamed(self, old: str, new: str | None) -> Self:
        """The record once a class has another name, or with None no longer exists."""
        return replace(self, answers=_rename_key(self.answers, old, new))


@dataclass(frozen=True)
class Notes:
    """All that is recorded.

    `version` counts the changes, `keep` the previous versions that stay beside the file, in the folder `versions_at`:
    that is recorded because the file may be moved without it. `refuse` is the share of known pictures that may be
    called unknown.
    """

    version: int = 1
    keep: int = 3
    refuse: float = UNKNOWN_SHARE
    history: tuple[Event, ...] = ()
    classes: dict[str, ClassRecord] = field(default_factory=dict)
    versions_at: str = ""

    def after(self, event: Event, **changes: Any) -> Self:
        """The notes once `event` has happened."""
        return replace(self, version=self.version + 1, history=(*self.history, event), **changes)

    def increments(self) -> int:
        """How many increments there were after the base."""
        return sum(event.what in ("learn", "more") for event in self.history)

    def renamed(self, old: str, new: str | None) -> Self:
        """The notes once a class has another name, or with None no longer exists."""
        records = {known: record.with_answer_renamed(old, new) for known, record in self.classes.items()}
        return replace(self, classes=_rename_key(records, old, new))

    def without_name(self, name: str) -> Self:
        """The notes without the name of a class, and without the names it had before."""
        names = {name}
        for event in reversed(self.history):
            if event.new_name in names:
                names |= event.pictures.keys()

        def strike(event: Event) -> Event:
            pictures = {FORGOTTEN if known in names else known: n for known, n in event.pictures.items()}
            return replace(event, pictures=pictures, new_name=FORGOTTEN if event.new_name in names else event.new_name)

        return replace(self, history=tuple(strike(event) for event in self.history))

    def as_json(self) -> dict[str, Any]:
        """What goes into the model file."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any], path: object) -> Self:
        """The notes in a model file; empty ones for a file that the estimator saved."""
        try:
            own = {name: content[name] for name in _OWN if name in content}
            notes = _checked(
                cls(
                    **own,
                    history=tuple(_read_event(event) for event in content.get("history", ())),
                    classes={name: _read_class(one) for name, one in content.get("classes", {}).items()},
                ),
                _OWN,
            )
            if min(notes.version, notes.keep) < 0 or not 0 < notes.refuse < 1:
                raise ValueError(f"version {notes.version}, keep {notes.keep}, refuse {notes.refuse:g}")
            return notes
        except (TypeError, ValueError, AttributeError) as error:
            raise DamagedModelError(f"{path} is damaged: its notes are not engram's ({error})") from error


def _read_event(content: dict[str, Any]) -> Event:
    """An event as a file has it; what older ones say of pictures held back and of lessons is dropped."""
    event = {name: value for name, value in content.items() if name not in _RETIRED}
    if content.get("basis") == "asked again":
        event["accuracy"] = None
    return _checked(Event(**event))


def _read_class(content: dict[str, Any]) -> ClassRecord:
    """The record of a class as a file has it; older ones have a share that was held back beside each folder."""
    return _checked(ClassRecord(**content | {"folders": tuple(content.get("folders", ()))}))


def _checked(record: R, names: Sequence[str] | None = None) -> R:
    """A record whose values are of the kinds it declares."""
    for one in fields(record):
        if names is None or one.name in names:
            require_kind(one.name, getattr(record, one.name), one.type)
    return record


def _rename_key(table: dict[str, V], old: str, new: str | None) -> dict[str, V]:
    """A table by name once a class has another name, or with None no longer exists."""
    if new is None:
        return {name: value for name, value in table.items() if name != old}
    return {new if name == old else name: value for name, value in table.items()}


def now() -> str:
    """The time, in UTC, as text."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
