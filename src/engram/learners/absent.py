"""A method that is not installed: its model files can still be looked at, moved and taken back."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from engram.learners.base import About, Array, Features, Label, Learner, Scores, State, Tell, quiet
from engram.learners.layout import require_description
from engram.learners.older import OLDER
from engram.learners.registry import MissingMethodError
from engram.settings import require_kind

_RULES = ("trains", "leaves_out", "tells_unknown")


@dataclass(frozen=True, eq=False)
class Absent(Learner):
    """What a file says of a method, and nothing that it would do."""

    settings: Mapping[str, Any]
    name: str = ""
    reason: str = ""  # why it is not here
    recorded: Mapping[str, Any] = field(default_factory=dict)  # what the file says of the method
    kept: State = field(default_factory=lambda: State({}, {}))

    @classmethod
    def of(cls, method: str, state: State, recorded: Mapping[str, Any] | None, reason: str) -> "Absent":
        """The learner of a file whose method is not here; files of before say nothing of it."""
        require_description(state)
        if recorded is None:
            older = OLDER.get(method, About(method, "", "what its method says"))
            trains = "base_epochs" in state.meta["config"]
            recorded = asdict(older) | {"trains": trains, "leaves_out": False, "tells_unknown": False}
        wanted = {field.name: field.type for field in fields(About)} | dict.fromkeys(_RULES, bool)
        for name, kind in wanted.items():
            require_kind(name, recorded[name], kind)
        meta, given = state.meta, {name: recorded[name] for name in wanted}
        return cls(
            meta["config"], meta["seed"], meta["tasks_learned"], meta["n_features"], method, reason, given, state
        )

    @property
    def method(self) -> str:  # type: ignore[override]
        """Its name."""
        return self.name

    def described(self) -> dict[str, Any]:  # type: ignore[override]
        """What the file says of the method."""
        return dict(self.recorded)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The classes that the file names."""
        return tuple(self.kept.meta["labels"])

    def counts(self) -> NDArray[np.int64] | None:
        """How many samples each class was learned from, if the file says so."""
        return self.kept.arrays.get("classes.counts")

    @property
    def can_learn(self) -> bool:
        """Whether it could, were the method here."""
        return not self.kept.meta.get("slim", False)

    def _refuse(self) -> NoReturn:
        raise MissingMethodError(self.reason)

    def learn(self, x: Features, y: Sequence[Label], tell: Tell = quiet) -> Self:
        """Not here."""
        self._refuse()

    def score(self, x: Features) -> Scores:
        """Not here."""
        self._refuse()

    def forget(self, label: Label) -> Self:
        """Not here."""
        self._refuse()

    def rename(self, old: Label, new: Label) -> Self:
        """Not here."""
        self._refuse()

    def state(self) -> State:
        """As it was read."""
        return self.kept

    def _arrays(self) -> dict[str, Array]:
        return self.kept.arrays

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Not here."""
        raise MissingMethodError("there is no such method")
