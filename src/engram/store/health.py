"""How each class is doing, and what it is taken for: as far as it can be told without the pictures.

Leave-one-out answers of when each class was learned tell: the model's answer to each picture, had that one not been
learned.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from engram.history import Notes
from engram.model import Model

_LOST, _WEAK = 0.25, 0.6  # shares of right answers below which a class is called so


@dataclass(frozen=True)
class ClassHealth:
    """The share of right answers on pictures of one class, and of each wrong answer, the most frequent first."""

    share: float
    pictures: int
    taken_for: dict[str, float]

    @property
    def state(self) -> Literal["good", "weak", "lost"]:
        """In a word."""
        return "lost" if self.share < _LOST else "weak" if self.share < _WEAK else "good"


@dataclass(frozen=True)
class Health:
    """How the classes are doing, by name; None for those of which nothing can be told."""

    classes: dict[str, ClassHealth | None]

    def overall(self) -> float | None:
        """The mean over all classes; None unless each of them can be told."""
        told = [one.share for one in self.classes.values() if one is not None]
        return round(sum(told) / len(told), 4) if told and len(told) == len(self.classes) else None


def examine(model: Model) -> Health:
    """How the classes of a model are doing."""
    return by_leave_one_out(model.notes, model.names)


def by_leave_one_out(notes: Notes, names: list[str]) -> Health:
    """What leave-one-out answers say, although each was given before later classes came.

    What share of class c is taken for a class k that came later is not known. It is taken to be what share of k was
    taken for c: where two classes meet, neither is preferred. A picture that was right stays so if no later class takes
    it, so the share of right answers falls by the product of 1 - share over those.
    """
    records = {name: notes.classes[name] for name in names if name in notes.classes and notes.classes[name].answers}
    asked = {name: sum(record.answers.values()) for name, record in records.items()}
    classes: dict[str, ClassHealth | None] = dict.fromkeys(names)
    for name, record in records.items():
        shares = {answer: n / asked[name] for answer, n in record.answers.items()}
        later = {
            other: there.answers[name] / asked[other]
            for other, there in records.items()
            if there.increment > record.increment and name in there.answers
        }
        right = shares.get(name, 0.0)
        stays = right * math.prod(1 - share for share in later.values())
        taken = (right - stays) / sum(later.values()) if later else 0.0
        shares |= {other: shares.get(other, 0.0) + taken * share for other, share in later.items()}
        shares[name] = stays
        classes[name] = _health(asked[name], shares, name)
    return Health(classes)


def _health(pictures: int, shares: Mapping[str, float], name: str) -> ClassHealth:
    wrong = sorted(((share, other) for other, share in shares.items() if other != name), reverse=True)
    return ClassHealth(shares.get(name, 0.0), pictures, {other: share for share, other in wrong})
