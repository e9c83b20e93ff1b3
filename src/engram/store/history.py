"""What a model file says about itself beside the model: when what was learned, and what counts as unknown.

It lies in the notes of the model file, as JSON: names, numbers, dates, and one checksum for each folder of pictures.
"""

from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, Self

from engram.errors import DamagedModelError

What = Literal["base", "learn", "more", "forget", "rename"]
FORGOTTEN = "(forgotten)"


@dataclass(frozen=True)
class Event:
    """One change of the model. `pictures` are the classes concerned and how many pictures each was learned from.

    `bytes` are those of the files that were looked at, `checked` how many pictures, held back from this and earlier
    classes, were asked about afterwards, as far as they were at hand, and `right` how many answers were.
    """

    when: str
    what: What
    pictures: dict[str, int]
    seconds: float = 0.0
    new_name: str | None = None
    bytes: int = 0
    checked: int = 0
    right: int = 0


@dataclass(frozen=True)
class ClassRecord:
    """When a class was learned, in which increment (0 is the base), and from which folders of pictures.

    A folder is remembered as one checksum, with the share of it that was held back: enough to recognise one that has
    been learned already.
    """

    learned: str
    increment: int
    folders: dict[str, float]


@dataclass(frozen=True)
class Unknown:
    """Below which similarity a picture is of no known class, and how that was found.

    `share` of the `pictures` it was calibrated on lie below. They were held back from training if `held_back`.
    """

    similarity: float
    share: float
    pictures: int
    held_back: bool


@dataclass(frozen=True)
class Notes:
    """All of it. `version` counts the changes; `keep` says how many previous versions of the file stay beside it."""

    version: int = 1
    keep: int = 3
    unknown: Unknown | None = None
    history: tuple[Event, ...] = ()
    classes: dict[str, ClassRecord] = field(default_factory=dict)

    def after(self, event: Event, **changes: Any) -> Self:
        """The notes once `event` has happened."""
        return replace(self, version=self.version + 1, history=(*self.history, event), **changes)

    def increments(self) -> int:
        """How many increments there were after the base."""
        return sum(event.what in ("learn", "more") for event in self.history)

    def without_name(self, name: str) -> Self:
        """The notes with a class's name, and those it had before, struck from the history."""
        names = {name}
        for event in reversed(self.history):
            if event.new_name in names:
                names |= event.pictures.keys()

        def struck(event: Event) -> Event:
            pictures = {FORGOTTEN if known in names else known: n for known, n in event.pictures.items()}
            return replace(event, pictures=pictures, new_name=FORGOTTEN if event.new_name in names else event.new_name)

        return replace(self, history=tuple(struck(event) for event in self.history))

    def as_json(self) -> dict[str, Any]:
        """What goes into the model file."""
        return asdict(self)

    @classmethod
    def from_json(cls, content: dict[str, Any], path: object) -> Self:
        """What a model file holds; one saved by other means, without any notes, has a fresh start."""
        try:
            unknown = content.get("unknown")
            return cls(
                version=int(content.get("version", 1)),
                keep=int(content.get("keep", 3)),
                unknown=unknown and Unknown(**unknown),
                history=tuple(Event(**event) for event in content.get("history", ())),
                classes={name: ClassRecord(**record) for name, record in content.get("classes", {}).items()},
            )
        except (TypeError, ValueError, AttributeError) as error:
            raise DamagedModelError(f"{path} is damaged: its notes are not engram's ({error})") from error


def now() -> str:
    """The time, in UTC, as it is written down."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
