"""Whitened prototypes as only experiments have them: with the paper's code beside the features, and with a recency."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from engram.learners.base import Array, Features, Label, Learner, State, Tell, quiet
from engram.learners.codes import ENCODER, Codes, codes_layout
from engram.learners.layout import Kept, Layout, require_layout
from engram.learners.whitened import Whitened, WhitenedSettings
from engram.paper.prototypes import Method as Paper

_SCALE, _WEIGHT = "network.feature_scale", "network.code_weight"


@dataclass(frozen=True)
class WithRecencySettings(WhitenedSettings):
    """Every setting."""

    recency: float = 0.0  # added to the cosine of the classes learned last: "just taught, so likelier shown"


@dataclass(frozen=True, eq=False)
class WithRecency(Whitened):
    """Expects the classes taught last."""

    method: ClassVar[str] = "whitened-recency"
    about = replace(Whitened.about, title="Whitened prototypes, recency")
    settings_type: ClassVar[type[Any]] = WithRecencySettings

    settings: WithRecencySettings

    def __post_init__(self) -> None:
        object.__setattr__(self, "recency", self.settings.recency)


@dataclass(frozen=True)
class WithEncoderSettings(WhitenedSettings):
    """Every setting."""

    encoder: Mapping[str, Any] = field(default_factory=dict)  # settings of the paper's autoencoder

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "encoder", Paper.settings_of(self.encoder))


@dataclass(frozen=True, eq=False)
class WithEncoder(Whitened):
    """Features are joined by the code of the paper's autoencoder, trained on the first classes and frozen after."""

    method: ClassVar[str] = "whitened-encoder"
    about = replace(Whitened.about, title="Whitened prototypes, code joined")
    settings_type: ClassVar[type[Any]] = WithEncoderSettings
    first_classes: ClassVar[int] = 2

    settings: WithEncoderSettings
    network: Mapping[str, Array] = field(default_factory=dict)  # the encoder, and what its code is multiplied with

    def project(self, x: Features) -> Array:
        """z, and the code beside it: both blocks of one root mean square."""
        z = super().project(x)
        if not self.network:
            return z
        weight = self.network[_WEIGHT] / (1.0 if self.unit is None else self.unit)
        return np.concatenate([z, (self._encode(x) * weight).astype(z.dtype)], axis=1)

    def _encode(self, x: Features) -> Array:
        return Codes(self.settings.encoder, kept=self.network).encode(x)

    def learn(self, x: Features, y: Sequence[Label], tell: Tell = quiet) -> Self:
        """The learner that has learned one task more."""
        return super(WithEncoder, self if self.network else self._trained(x, y, tell)).learn(x, y, tell)

    def _trained(self, x: Features, y: Sequence[Label], tell: Tell) -> Self:
        taught = Paper.new(self.settings.encoder, seed=self.seed).learn(x, y, tell).state().arrays
        network = {name: array for name, array in taught.items() if name.startswith((ENCODER, _SCALE))}
        encoded = replace(self, network=network)
        weight = _rms(self.project(x)) / _rms(encoded._encode(x))
        return replace(self, network=network | {_WEIGHT: np.array(weight, self.project(x[:1]).dtype)})

    def require_mergeable(self, other: Learner) -> None:
        """Refuse encoders that were trained apart."""
        super().require_mergeable(other)
        theirs = other.network if isinstance(other, WithEncoder) else {}
        for name in self.network.keys() & theirs.keys():
            if not np.array_equal(self.network[name], theirs[name]):
                raise ValueError(f"models whose {name} differs cannot be merged: merge copies of one model")

    def merge(self, *others: Self) -> Self:
        """What all of them have learned."""
        network = next((one.network for one in (self, *others) if one.network), {})
        return super(WithEncoder, replace(self, network=network)).merge(*others)

    def _arrays(self) -> dict[str, Array]:
        kept = super()._arrays()
        return kept | dict(self.network) if kept else {}

    @classmethod
    def _layout(cls, settings: Any, classes: int, width: int) -> Layout:
        return super()._layout(settings, classes, width + settings.encoder["layers"][-1])

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The learner a state was taken from."""
        network = {n: array for n, array in state.arrays.items() if n.startswith((ENCODER, _SCALE, _WEIGHT))}
        rest = {name: array for name, array in state.arrays.items() if name not in network}
        learner = super().from_state(State(rest, state.meta))
        if learner.updates:
            layout = codes_layout(0, learner.n_features or 0, learner.settings.encoder, network)
            wanted = {name: kept for name, kept in layout.items() if name.startswith((ENCODER, _SCALE))}
            require_layout(network, wanted | {_WEIGHT: Kept((), (np.float32, np.float64))})
        return replace(learner, network=network)


def _rms(values: Array) -> float:
    rms = float(np.sqrt(np.square(values, dtype=np.float64).mean()))
    return rms if rms > 0 else 1.0
