"""Whitened prototypes: the paper's rule, the nearest class mean by cosine, in a space where no direction varies more.

Nothing is trained in an increment, so nothing drifts and the order does not matter; docs/method.md has the symbols.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from engram.learner import About, Task, require
from engram.methods.feature_map import FeatureMap, share_network
from engram.methods.registry import find_method
from engram.methods.tensors import Layout, Taught, TensorLearner
from engram.nn import calibration, class_sums, whitening


@dataclass(frozen=True)
class WhitenedConfig:
    """Every setting; none has to be touched."""

    transform: Literal["sqrt", "none"] = "sqrt"
    width: int | None = None  # features are projected to so many numbers, at random: less accurate, and small
    recency: float = 0.0  # added to the cosine of the classes learned last: "just taught, so likelier shown"
    encoder: Mapping[str, Any] | None = None  # settings of the paper's autoencoder, whose code then joins the features
    kept_bits: Literal[16, 32, 64] = 16

    def __post_init__(self) -> None:
        require(self, self.width is None or self.width > 0, "width", "a number above 0, or None")
        if self.encoder is not None:
            object.__setattr__(self, "encoder", asdict(find_method("prototypes").configure(self.encoder)))


class Whitened(TensorLearner):
    """The cosine to class means, after whitening."""

    method = "whitened"
    about = About("Whitened prototypes", "engram, 2026: docs/method.md", "one mean (one scatter for all)", merges=True)
    config_type = WhitenedConfig
    config: WhitenedConfig
    weighs_features = True
    exact: ClassVar[Mapping[str, Any]] = {"kept_bits": 64}

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        had, bits, random = self.tensors, self.config.kept_bits, self.task_generator(self.device)
        network = {name: t for name, t in had.items() if name.startswith("network.")} or self._map().fit(task)
        z = self._map()(task.features, network)
        after = network | class_sums.add(had, z, task.targets, task.classes, bits, random, self.tasks_learned)
        fit, counts = had.get("consolidation.calibration"), after["classes.counts"]
        if self.calibrating:
            fit = calibration.calibrate(fit, lambda: class_sums.space(after), z, task.targets, counts)
        return after if fit is None else after | {"consolidation.calibration": fit}

    def _tensors_merged(self, several: Sequence[Taught], classes: int) -> dict[str, Tensor]:
        network, scales = share_network([kept for kept, _ in several])
        parts = [(kept, rows, scale) for (kept, rows), scale in zip(several, scales, strict=True)]
        random = self.task_generator(self.device)
        merged = network | class_sums.unite(parts, classes, self.config.kept_bits, random, self.tasks_learned)
        fit = calibration.unite([kept.get("consolidation.calibration") for kept, _ in several])
        return merged if fit is None else merged | {"consolidation.calibration": fit}

    def _layout(self, classes: int, features: int) -> Layout:
        network, width = self._map().layout(features)
        return network | class_sums.layout(classes, width, self.config.kept_bits) | calibration.layout()

    def _common(self) -> dict[str, Any]:
        projected = self._map().narrowed(self.n_features or 0) < (self.n_features or 0)
        return super()._common() | ({"seeds of the projection": self.seed} if projected else {})

    def blank(self) -> Self:
        """As the encoder is trained on the first classes together, there has to be one already."""
        if self.config.encoder is not None and not self.tensors:
            raise ValueError("an encoder is trained on the first classes together; teach the model some of them first")
        return super().blank()

    def _map(self) -> FeatureMap:
        c = self.config
        return FeatureMap(c.transform, c.width, c.encoder, c.kept_bits, self.seed, self.device)

    def _space(self) -> whitening.Space:
        if not self.scratch:
            self.scratch.update(class_sums.space(self.tensors).tensors())
        return whitening.Space(**self.scratch)

    def _mapped(self, features: Tensor) -> Tensor:
        return self._map()(features, self.tensors)

    def _scores(self, features: Tensor) -> Tensor:
        cosines = self._space().cosines(self._space().whiten(self._mapped(features)))
        if self.config.recency:
            cosines[:, len(self._labels) - int(self.tensors["consolidation.newest"]) :] += self.config.recency
        return cosines

    def _scorer(self) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
        self.scratch = self._space().traceable().tensors()
        return lambda features: (self._scores(features), self._familiarity(features))

    def _tensors_without(self, row: int) -> dict[str, Tensor]:
        """Drop count and mean. The scatter stays: it says how samples vary, not what this class looks like."""
        behind, newest = len(self._labels) - row, self.tensors["consolidation.newest"]
        return super()._tensors_without(row) | {"consolidation.newest": newest - (behind <= newest).long()}

    def _familiarity(self, features: Tensor) -> Tensor:
        self.scratch.update(zip(("rows", "inverse"), self._space().spread(), strict=True))  # computed the first time
        return self._space().familiarity(self._space().whiten(self._mapped(features)))

    @property
    def temperature(self) -> float:
        """Calibrated by leave-one-out scores."""
        return calibration.temperature(self.tensors.get("consolidation.calibration"))

    def unknown_below(self, share: float = 0.05) -> float | None:
        """The familiarity that this share of learned samples, each judged as if it had not been, does not reach."""
        return calibration.threshold(self.tensors.get("consolidation.calibration"), share)

    def _left_out(self, x: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        space, counts = self._space(), self.tensors["classes.counts"]
        return whitening.leave_one_out(space, space.whiten(self._mapped(x)), targets, counts)

    def _class_vectors(self) -> NDArray[np.float32] | None:
        return self._space().means.float().cpu().numpy()  # in the whitened space, where their angles tell
