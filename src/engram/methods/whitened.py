"""Whitened prototypes: the paper's rule, the nearest class mean by cosine, in a space where no direction varies more.

Kept are one mean per class, its count, and one scatter shared by all classes. Nothing is trained in an increment, so
nothing drifts, and the order of learning does not matter. docs/method.md derives it and has the symbols used here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from engram.learner import About, LeftOut, Task, index_labels, require
from engram.methods.tensors import TensorLearner, with_rows
from engram.nn import calibration, projection, statistics, symmetric, whitening

WIDE, NARROW = 4096, 2048  # features wider than the one are projected to the other
GROWTH = 1.1  # calibration costs as much as preparing to answer: done again when there are so many times the samples
_DTYPES = {16: torch.float16, 32: torch.float32, 64: torch.float64}


@dataclass(frozen=True)
class WhitenedConfig:
    """Every setting; none has to be touched."""

    transform: Literal["sqrt", "none"] = "sqrt"
    recency: float = 0.0  # added to the cosine of the classes learned last: "just taught, so likelier shown"
    kept_bits: Literal[16, 32, 64] = 16

    def __post_init__(self) -> None:
        require(self, self.transform in ("sqrt", "none"), "transform", "'sqrt' or 'none'")
        require(self, self.kept_bits in (16, 32, 64), "kept_bits", "16, 32 or 64")


class Whitened(TensorLearner):
    """The cosine to class means, after whitening."""

    method = "whitened"
    about = About(
        title="Whitened prototypes",
        paper="engram, docs/method.md",
        per_class="one mean feature vector (and one scatter for all)",
    )
    config_type = WhitenedConfig
    config: WhitenedConfig

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        had, bits, generator = self.tensors, self.config.kept_bits, self.task_generator(self.device)
        z = self._vectors(task.features)
        unit = had["network.unit"] if had else _power_of_two(z)
        z = z / unit
        # Only the rows this task touches are computed: one class more costs the same however many there are.
        rows, targets = task.targets.unique(return_inverse=True)
        before = rows[rows < task.known]
        counts, means = had.get("classes.counts", rows[:0].int()), had.get("classes.means", z[:0].to(_DTYPES[bits]))
        now = statistics.update(counts[before], means[before], z, targets, len(rows))
        counts, means = with_rows(counts, task.classes), with_rows(means, task.classes)
        counts[rows], means[rows] = now.counts.int(), symmetric.round_to(now.means, bits, generator)
        scatter = symmetric.pack(
            now.scatter
        )  # S = Σ_c Σ_{i in c} (z_i - μ_c)(z_i - μ_c)ᵀ, in units of its mean diagonal
        if had:
            scatter += had["consolidation.scatter"].to(z.dtype) * had["consolidation.spread"].to(z.dtype)
        spread = symmetric.unpack_triangle(scatter, z.dtype).diagonal().mean().double()
        kept = symmetric.round_to(scatter / torch.where(spread > 0, spread, 1.0).to(z.dtype), bits, generator)
        if not (kept.isfinite().all() and means[rows].isfinite().all()):
            raise ValueError("these features are too far from those learned before to be kept in 16 bits; scale them")
        after = {
            "classes.counts": counts,
            "classes.means": means,
            "consolidation.scatter": kept,
            "consolidation.spread": spread,
            "consolidation.samples": torch.tensor(len(z), device=z.device) + had.get("consolidation.samples", 0),
            "consolidation.newest": torch.tensor(task.classes - task.known if task.known else 0, device=z.device),
            "network.unit": unit,
        }
        return after | self._calibrate(after, z, task.targets)

    def _vectors(self, x: Tensor) -> Tensor:
        """z = √x, with the sign of x kept; random projections of it where x is very wide."""
        x = x.double() if self.config.kept_bits == 64 else x
        z = x.sign() * x.abs().sqrt() if self.config.transform == "sqrt" else x
        return z @ projection.signs(z.shape[1], NARROW, self.seed).to(z) if z.shape[1] > WIDE else z

    def _calibrate(self, kept: dict[str, Tensor], z: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """Temperature and threshold from leave-one-out scores of the samples at hand, pooled with those of before."""
        before = self.tensors.get("consolidation.calibration")
        had = {} if before is None else {"consolidation.calibration": before}
        several = kept["classes.counts"][targets] > 1
        if len(kept["classes.counts"]) < 2 or not several.any():
            return had
        if before is not None and int(kept["consolidation.samples"]) < GROWTH * float(before[0]):
            return had
        space, own = _space(kept), targets[several]
        scores, familiarity = whitening.leave_one_out(space, space.whiten(z[several]), own, kept["classes.counts"])
        return {"consolidation.calibration": calibration.pool(before, scores, own, familiarity)}

    def _space(self) -> whitening.Space:
        """Computed once after every change, when it is first needed."""
        if not self.scratch:
            self.scratch = vars(_space(self.tensors))
        return whitening.Space(**self.scratch)

    def _whiten(self, features: Tensor) -> Tensor:
        return self._space().whiten(self._vectors(features) / self.tensors["network.unit"])

    def _scores(self, features: Tensor) -> Tensor:
        cosines = self._space().cosines(self._whiten(features))
        newest = int(self.tensors["consolidation.newest"])
        if self.config.recency and newest:
            cosines[:, -newest:] += self.config.recency
        return cosines

    @property
    def temperature(self) -> float:
        """Calibrated by leave-one-out scores; before there are any, what is usual."""
        kept = self.tensors.get("consolidation.calibration")
        return calibration.USUAL if kept is None else calibration.temperature(kept)

    def unknown_below(self, share: float = 0.05) -> float | None:
        """The familiarity that this share of known samples, each judged without itself, did not reach."""
        kept = self.tensors.get("consolidation.calibration")
        return None if kept is None else calibration.threshold(kept, share)

    def _familiarity(self, features: Tensor) -> Tensor:
        return self._space().familiarity(self._whiten(features))

    def leave_one_out(self, X: ArrayLike | Tensor, y: Iterable[Any]) -> LeftOut | None:
        """Of a class with no other sample, the answer without it is some other class."""
        labels, names = index_labels(y)
        rows = torch.tensor([self._row(label) for label in labels], device=self.device)[torch.from_numpy(names)]
        counts = self.tensors["classes.counts"]
        w = self._whiten(self._features(X))
        scores, _ = whitening.leave_one_out(self._space(), w, rows, counts.clamp(min=2))
        scores[torch.arange(len(rows)), rows] -= 2.0 * (counts[rows] < 2)
        best = (scores.double() / self.temperature).softmax(dim=1).max(dim=1)
        return LeftOut(best.indices.cpu().numpy(), best.values.cpu().numpy())


def _space(kept: Mapping[str, Tensor]) -> whitening.Space:
    dtype = torch.float64 if kept["classes.means"].dtype == torch.float64 else torch.float32
    triangle = symmetric.unpack_triangle(kept["consolidation.scatter"], dtype) * kept["consolidation.spread"].to(dtype)
    means, samples = kept["classes.means"].to(dtype), int(kept["consolidation.samples"])
    return whitening.build(means, kept["classes.counts"], triangle, samples)


def _power_of_two(z: Tensor) -> Tensor:
    """The unit that brings z near 1, where 16 bits hold it; a power of two, as dividing by one is exact."""
    rms = z.square().mean().sqrt()
    return torch.where(rms > 0, rms, 1.0).log2().round().exp2()
