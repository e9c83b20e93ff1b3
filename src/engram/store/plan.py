"""How to learn, as whoever gives the command asks for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engram.encoders.recorded import RecordedEncoder
from engram.history import Notes
from engram.learners import registry
from engram.learners.base import Learner
from engram.model import DEFAULT_METHOD, Model
from engram.settings import plain

DEFAULT_ENCODER = "efficientnet_lite0"


@dataclass(frozen=True)
class Plan:
    """How to learn.

    `backbone`, `method`, `settings` and `seed` make a new model; None is the default. An existing model keeps what it
    was made with, so asking for something else is an error. With `all_or_nothing`, several classes are one change.
    """

    more: bool = False
    keep: int | None = None
    all_or_nothing: bool = False
    backbone: str | None = None
    method: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < 0:
            raise ValueError(f"keep must be at least 0, not {self.keep}")

    @property
    def first_classes(self) -> int:
        """How many classes a new model begins with at least."""
        return self._new_method().first_classes

    @property
    def encoder_name(self) -> str:
        """The encoder of a new model: two layers of it, joined, where the method can weigh them."""
        return self.backbone or DEFAULT_ENCODER + (":joined" if self._new_method().weighs_features else "")

    def new_model(self, device: str = "auto") -> Model:
        """A model that knows nothing yet; ValueError names a method or setting that does not exist."""
        from engram.encoders.registry import create

        method = self._new_method()
        learner = method.new({**method.few_samples, **self.settings}, seed=self.seed)
        return Model(learner, RecordedEncoder.of(create(self.encoder_name, device)), Notes(0))

    def _new_method(self) -> type[Learner]:
        return registry.find(self.method or DEFAULT_METHOD)

    def require_same(self, model: Model) -> None:
        """Refuse another method, setting or encoder than the model was made with."""
        if self.method not in (None, model.method):
            registry.find(str(self.method))
            raise _fixed("method", model.method, self.method)
        if self.settings:
            asked, made = type(model.learner).settings_of(self.settings), model.learner.description()["config"]
            for name in self.settings:
                if plain(asked[name]) != plain(made[name]):  # a file has lists for tuples
                    raise _fixed(name, made[name], asked[name])
        made_with = model.encoder and (model.encoder.name or model.encoder.identity)
        if self.backbone not in (None, made_with):
            raise _fixed("backbone", made_with, self.backbone)


def _fixed(name: str, present: object, asked: object) -> ValueError:
    return ValueError(
        f"the model was made with {name} {present}, and that cannot be changed to {asked}; "
        "leave the option out, or make a new model"
    )
