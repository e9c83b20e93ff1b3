"""What stands for a method that is not here, so that a model of it can be looked at and its changes taken back."""

from collections.abc import Mapping
from dataclasses import fields, make_dataclass
from typing import Any, ClassVar, NoReturn, Self

from torch import Tensor

from engram.learner import About, Label, Learner, State, index_labels
from engram.methods.older import OLDER
from engram.methods.registry import MissingMethodError
from engram.settings import plain, require_kind


def missing_method(name: str, recorded: Mapping[str, Any] | None, reason: str) -> type[Learner]:
    """A class for models of that method; `recorded` is what the file says of it."""
    given, about = recorded or {}, OLDER.get(name, About(title=name, paper="", per_class="what its method says"))
    if recorded is not None:
        kinds = {field.name: field.type for field in fields(About)}
        about = About(**{key: value for key, value in given.items() if key in kinds})
        for key, kind in kinds.items():
            require_kind(key, getattr(about, key), kind)
    if not "".join((name, about.title, about.paper, about.per_class, about.given)).isprintable():
        raise ValueError("its method is described with characters that cannot be shown")
    return type("MissingMethod", (_Missing,), {"method": name, "about": about, "recorded": given, "reason": reason})


class _Missing(Learner):
    """Says what its state says, and refuses what only the method could do."""

    recorded: ClassVar[Mapping[str, Any]]
    reason: ClassVar[str]
    kept: State

    @classmethod
    def from_state(cls, state: State, device: str = "auto") -> Self:
        """The learner, which keeps the state as it is."""
        settings, labels = state.meta.get("config", {}), state.meta.get("labels", [])
        index_labels(labels)
        cls.config_type = make_dataclass("Settings", [(name, Any) for name in settings])
        learner = cls(cls.config_type(**plain(settings)), seed=state.meta.get("seed", 0), device=device)
        learner.kept, learner.n_features = state, state.meta.get("n_features")
        return learner

    @property
    def labels(self) -> list[Label]:
        """The classes known."""
        return list(self.kept.meta.get("labels", []))

    def state(self, slim: bool = False) -> State:
        """The state it was made of."""
        return self.kept

    def counts(self) -> list[int] | None:
        """How many samples each class was learned from, where its tensors tell."""
        found: Tensor | None = self.kept.tensors.get("classes.counts")
        return None if found is None or found.shape != (len(self.labels),) else found.long().tolist()

    @property
    def can_learn(self) -> bool:
        """Whether it could, were the method here."""
        return not self.kept.meta.get("slim", False)

    @classmethod
    def trains(cls) -> bool:
        """As the file says; files of before say it by their settings."""
        return bool(cls.recorded.get("trains", any(field.name == "base_epochs" for field in fields(cls.config_type))))

    @classmethod
    def leaves_out(cls) -> bool:
        """As the file says."""
        return bool(cls.recorded.get("leaves_out", False))

    @classmethod
    def tells_unknown(cls) -> bool:
        """As the file says."""
        return bool(cls.recorded.get("tells_unknown", False))

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise MissingMethodError(self.reason)

    scores = _scores = nearest = log_sum = familiarity = forget = rename = _learn = require_mergeable = blank = _refuse
