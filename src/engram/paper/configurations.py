"""The four configurations of the paper's tables, by their names there; epochs and rates are in the presets."""

from dataclasses import dataclass
from typing import Literal

from engram.learners import codes
from engram.paper.adapter import Adapter
from engram.paper.prototypes import Prototypes, PrototypesConfig


@dataclass(frozen=True)
class SIConfig(PrototypesConfig):
    """Every setting."""

    consolidation: Literal["mas", "si"] | None = "si"


@dataclass(frozen=True)
class MASLOFConfig(PrototypesConfig):
    """Every setting."""

    outlier_exclusion: bool = True


@dataclass(frozen=True)
class SILOFConfig(SIConfig):
    """Every setting."""

    outlier_exclusion: bool = True


class PrototypesMAS(Prototypes):
    """The paper's MAS."""

    method = "mas"
    about = codes.MAS.about


class PrototypesSI(Prototypes):
    """The paper's SI."""

    method = "si"
    about = codes.SI.about
    config_type = SIConfig


class PrototypesMASLOF(Prototypes):
    """The paper's MAS with outlier exclusion."""

    method = "mas-lof"
    about = codes.MASLOF.about
    config_type = MASLOFConfig


class PrototypesSILOF(Prototypes):
    """The paper's SI with outlier exclusion."""

    method = "si-lof"
    about = codes.SILOF.about
    config_type = SILOFConfig


class MAS(Adapter):
    """MAS, to be taught."""

    kind = PrototypesMAS


class SI(Adapter):
    """SI, to be taught."""

    kind = PrototypesSI


class MASLOF(Adapter):
    """MAS with outlier exclusion, to be taught."""

    kind = PrototypesMASLOF


class SILOF(Adapter):
    """SI with outlier exclusion, to be taught."""

    kind = PrototypesSILOF
