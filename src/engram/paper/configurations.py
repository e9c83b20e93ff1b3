"""The four configurations of the paper's tables, by their names there; epochs and rates are in the presets."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from engram.paper.prototypes import Prototypes


class PrototypesMAS(Prototypes):
    """The paper's MAS."""

    method = "mas"
    about = replace(Prototypes.about, title="MAS")
    defaults: ClassVar[Mapping[str, Any]] = {"consolidation": "mas"}


class PrototypesSI(Prototypes):
    """The paper's SI."""

    method = "si"
    about = replace(Prototypes.about, title="SI")
    defaults: ClassVar[Mapping[str, Any]] = {"consolidation": "si"}


class PrototypesMASLOF(Prototypes):
    """The paper's MAS with outlier exclusion."""

    method = "mas-lof"
    about = replace(Prototypes.about, title="MAS+LOF")
    defaults: ClassVar[Mapping[str, Any]] = {"consolidation": "mas", "outlier_exclusion": True}


class PrototypesSILOF(Prototypes):
    """The paper's SI with outlier exclusion."""

    method = "si-lof"
    about = replace(Prototypes.about, title="SI+LOF")
    defaults: ClassVar[Mapping[str, Any]] = {"consolidation": "si", "outlier_exclusion": True}
