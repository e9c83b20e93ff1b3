"""How to learn, as whoever gives the command asks for it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from engram import backbones
from engram.backbones import Backbone
from engram.estimator import IncrementalClassifier
from engram.learner import Learner
from engram.methods import find_method

DEFAULT_BACKBONE = "efficientnet_lite0"


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
        return 2 if self._new_method().trains() else 1

    @property
    def backbone_name(self) -> str:
        """The network a new model sees images with: two layers of it, joined, where the method can weigh them."""
        return self.backbone or DEFAULT_BACKBONE + (":joined" if self._new_method().weighs_features else "")

    def new_backbone(self) -> Backbone:
        """That network."""
        return backbones.create_named(self.backbone_name)

    def new_classifier(self, backbone: Backbone, device: str) -> IncrementalClassifier:
        """A classifier that knows nothing yet; ValueError names a method or setting that does not exist."""
        method = self._new_method()
        config = {**method.few_samples, **self.settings}
        method.configure(config)
        return IncrementalClassifier(
            method.method, config=config, backbone=backbone, random_state=self.seed, device=device
        )

    def _new_method(self) -> type[Learner]:
        return find_method(self.method or IncrementalClassifier().method)

    def require_same(self, clf: IncrementalClassifier) -> None:
        """Refuse another method, setting or backbone than the model was made with."""
        if self.method is not None and find_method(self.method).method != clf.method_:
            raise _fixed("method", clf.method_, self.method)
        asked = asdict(find_method(clf.method_).configure(self.settings))
        for name in self.settings:
            if asked[name] != clf.config_[name]:
                raise _fixed(name, clf.config_[name], asked[name])
        backbone = clf.backbone.created_as if isinstance(clf.backbone, Backbone) else clf.backbone
        if self.backbone not in (None, backbone):
            raise _fixed("backbone", backbone or clf.backbone_identity_, self.backbone)


def _fixed(name: str, present: object, asked: object) -> ValueError:
    return ValueError(
        f"the model was made with {name} {present}, and that cannot be changed to {asked}; "
        "leave the option out, or make a new model"
    )
