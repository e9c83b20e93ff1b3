"""The paper's method, asked: two dense layers with ELU and a cosine (Eq. 1). Teaching it takes the extra `paper`.

Choi, Lee, Choi: "Autoencoder-Based Incremental Class Learning without Retraining on Old Data", 2019.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from engram.learners.base import About, Array, Features, Label, Learner, Scores, State, Tell, has_row_per_class, quiet
from engram.learners.layout import Kept, Layout, read_state, whole
from engram.learners.ncm import unit_rows
from engram.learners.registry import find_teacher
from engram.stats.whitening import SMALL

ENCODER, DECODER, IMPORTANCE = "network.encoder.", "network.decoder.", "consolidation.importance."
TEMPERATURE = 0.1  # cosines lie between -1 and 1: divided by this, their differences tell in a softmax
PAPER = "Choi, Lee, Choi: Autoencoder-Based Incremental Class Learning without Retraining on Old Data, 2019"


@dataclass(frozen=True, eq=False)
class Codes(Learner):
    """Class means of codes, under an encoder that was trained elsewhere."""

    method: ClassVar[str] = "prototypes"
    about: ClassVar[About] = About("Autoencoder with class means", PAPER, "one mean code", copies_network=True)
    first_classes: ClassVar[int] = 2
    # How these were picked, and what they reach, is in docs/commands.md.
    few_samples: ClassVar[Mapping[str, Any]] = {
        "layers": (512, 512), "pairs": "all", "lambda_cos": 0.1, "base_epochs": 30, "base_rate": 1e-3,
        "base_decay": 0.5, "base_decay_every": 10, "increment_epochs": 20, "increment_rate": 1e-5, "kept_bits": 8,
    }  # fmt: skip

    settings: Mapping[str, Any]
    labels: tuple[Label, ...] = ()
    kept: Mapping[str, Array] = field(default_factory=dict)  # everything, as it is in the file

    @classmethod
    def new(cls, settings: Mapping[str, Any] | None = None, *, seed: int = 0) -> Self:
        """A learner that knows nothing; the method itself says which settings there are."""
        return cls.from_state(find_teacher(cls.method).new(settings, seed=seed).state())

    @classmethod
    def configure(cls, settings: Mapping[str, Any] | None = None) -> Any:
        """The method's settings with some changed."""
        return find_teacher(cls.method).configure(settings)

    @classmethod
    def settings_of(cls, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The method's settings with some changed, by name."""
        return find_teacher(cls.method).settings_of(settings)

    def score(self, x: Features) -> Scores:
        """The cosine of each code with each mean (Eq. 1)."""
        if not self.labels:
            raise ValueError("no class is known; call learn first")
        means = self.kept["classes.means"]
        values = unit_rows(self.encode(x)) @ means.T
        values /= np.maximum(np.linalg.norm(means, axis=1), SMALL)
        return Scores(values, None, TEMPERATURE)

    def encode(self, x: Features) -> Array:
        """h(x): every second module is an ELU."""
        code = x * self.kept["network.feature_scale"]
        for number in range(0, 2 * len(self.settings["layers"]), 2):
            code = code @ self.kept[f"{ENCODER}{number}.weight"].T + self.kept[f"{ENCODER}{number}.bias"]
            np.copyto(code, np.expm1(np.minimum(code, 0)), where=code < 0)
        return code

    def learn(self, x: Features, y: Sequence[Label], tell: Tell = quiet) -> Self:
        """The learner that has learned one task more: trained by the method itself."""
        teacher = find_teacher(self.method)
        return self.from_state(teacher.from_state(self.state()).learn(x, y, tell).state())

    def forget(self, label: Label) -> Self:
        """Drop the mean of a class. What the encoder has learned from it stays in its weights."""
        (row,) = self.rows([label]).tolist()
        kept = {name: np.delete(a, row, axis=0) if has_row_per_class(name) else a for name, a in self.kept.items()}
        return replace(self, labels=tuple(name for name in self.labels if name != label), kept=kept)

    def rename(self, old: Label, new: Label) -> Self:
        """The learner with another name for a class."""
        row = self.row_to_rename(old, new)
        return replace(self, labels=(*self.labels[:row], new, *self.labels[row + 1 :]))

    def counts(self) -> NDArray[np.int64] | None:
        """How many samples each class was learned from."""
        return self.kept.get("classes.counts")

    def class_vectors(self) -> Array | None:
        """The mean codes."""
        return self.kept.get("classes.means")

    def drift(self) -> list[float] | None:
        """How far the encoder has moved from each class mean; see `paper`."""
        return find_teacher(self.method).from_state(self.state()).drift() if self.can_learn else None

    @property
    def can_learn(self) -> bool:
        """Whether there is a decoder, or nothing was learned yet."""
        return not self.kept or any(name.startswith(DECODER) for name in self.kept)

    def description(self) -> dict[str, Any]:
        """What a state says beside its arrays."""
        return {
            "config": dict(self.settings),
            "seed": self.seed,
            "tasks_learned": self.updates,
            "n_features": self.n_features,
            "labels": list(self.labels),
            "slim": not self.can_learn,
        }

    def _arrays(self) -> dict[str, Array]:
        return dict(self.kept)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The learner a state was taken from."""
        meta, arrays = dict(state.meta), dict(state.arrays)
        if "slim" not in meta:  # as in the first files
            meta["slim"] = not any(name.startswith(DECODER) for name in arrays)
            arrays["network.feature_scale"] = np.array(float(meta["feature_scale"]), np.float32)
        settings, labels, features = meta["config"], tuple(meta["labels"]), meta["n_features"] or 0
        layout = codes_layout(len(labels), features, settings, arrays)
        if meta["slim"]:
            layout = {n: kept for n, kept in layout.items() if not n.startswith((DECODER, "consolidation."))}
        kept = read_state(State(arrays, meta), layout)
        return cls(settings, meta["seed"], meta["tasks_learned"], meta["n_features"], labels, kept)


def codes_layout(classes: int, features: int, settings: Mapping[str, Any], present: Container[str]) -> Layout:
    """All of it. The decoder and what is held still are kept in `kept_bits`."""
    sizes = [features, *settings["layers"]]
    if not all(type(size) is int and size >= 0 for size in sizes) or len(sizes) < 2:
        raise ValueError(f"its layers are {settings['layers']}")
    rest = _layers(DECODER, sizes[::-1])
    if settings["consolidation"] is not None:
        rest |= _layers(f"{IMPORTANCE}encoder.", sizes)
    packed = {n: one for name, kept in rest.items() for n, one in _packed(name, kept, settings["kept_bits"], present)}
    return {
        "network.feature_scale": Kept(()),
        **_layers(ENCODER, sizes),
        **packed,
        "classes.means": Kept((classes, sizes[-1])),
        "classes.counts": whole(classes),
    }


def _layers(prefix: str, sizes: Sequence[int]) -> Layout:
    """Dense layers, each followed by an ELU."""
    layout: Layout = {}
    for number, (inputs, outputs) in enumerate(pairwise(sizes)):
        layout |= {
            f"{prefix}{2 * number}.weight": Kept((outputs, inputs)),
            f"{prefix}{2 * number}.bias": Kept((outputs,)),
        }
    return layout


def _packed(name: str, kept: Kept, bits: int, present: Container[str]) -> list[tuple[str, Kept]]:
    """A matrix in 8 or 4 bits and the scale of each row; which of both depends on its values, and is `present`."""
    if len(kept.shape) != 2 or bits == 32:
        return [(name, kept)]
    rows, columns = kept.shape
    scale = (f"{name}.scale", Kept((rows, 1)))
    if bits == 4 and columns % 2 == 0 and f"{name}.nibbles" in present:
        return [scale, (f"{name}.nibbles", Kept((rows, columns // 2), (np.uint8,)))]
    return [scale, (f"{name}.codes", Kept((rows, columns), (np.int8, np.uint8)))]


class MAS(Codes):
    """The paper's MAS."""

    method = "mas"
    about = replace(Codes.about, title="MAS")


class SI(Codes):
    """The paper's SI."""

    method = "si"
    about = replace(Codes.about, title="SI")


class MASLOF(Codes):
    """The paper's MAS with outlier exclusion."""

    method = "mas-lof"
    about = replace(Codes.about, title="MAS+LOF")


class SILOF(Codes):
    """The paper's SI with outlier exclusion."""

    method = "si-lof"
    about = replace(Codes.about, title="SI+LOF")
