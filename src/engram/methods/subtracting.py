"""Taking samples away again: those of a learner that was merged."""

import copy
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from engram.learner import Label, Learner, require_finite
from engram.nn import class_sums, statistics
from engram.snapshots import change


class Subtracting(Learner):
    """A learner with a table of tensors; where that holds counts, means and scatter, parts can be subtracted."""

    def __init__(self, config: Any = None, *, seed: int = 0, device: str = "auto") -> None:
        super().__init__(config, seed=seed, device=device)
        self._labels: list[Label] = []
        self.tensors: dict[str, Tensor] = {}
        self.scratch: dict[str, Tensor] = {}  # made of `tensors` to answer faster; never saved

    @abstractmethod
    def _rows(self, labels: Iterable[Label]) -> Tensor:
        """The rows of known labels."""

    @classmethod
    def subtracts(cls) -> bool:
        """As a rule, where sums can be added."""
        return cls.about.merges and not cls.about.keeps_samples

    @change
    def subtract(self, other: Learner) -> None:
        """Know what was known before another was merged."""
        super().subtract(other)
        theirs = copy.copy(other)
        if not isinstance(theirs, Subtracting) or not theirs._labels:
            return
        tensors = {name: tensor.to(self.device) for name, tensor in theirs.tensors.items()}
        scale = tensors["network.unit"] / self.tensors["network.unit"] if "network.unit" in tensors else torch.ones(())
        counts, scatter = tensors["classes.counts"], class_sums.scatter_of(tensors)
        means, samples = tensors["classes.means"].double() * scale, tensors.get("consolidation.samples", counts.sum())
        part = statistics.Part(counts, means, None if scatter is None else scatter * scale**2, samples)
        self._separate(theirs._labels, part)

    def _separate(self, labels: Sequence[Label], part: statistics.Part) -> None:
        """Take a part away, and the classes of which nothing is left."""
        counts, means = self.tensors["classes.counts"], self.tensors["classes.means"]
        rest = statistics.separate(counts, means, self._rows(labels), part)
        if not rest.left.any():
            raise ValueError("no class would be left; for that, remove the model")
        self.tensors, self.scratch = self._tensors_of(rest), {}
        self._labels = [label for label, left in zip(self._labels, rest.left.tolist(), strict=True) if left]
        self.tasks_learned += 1  # it has drawn random numbers of its own
        require_finite(self.tensors)

    def _tensors_of(self, rest: statistics.Rest) -> dict[str, Tensor]:
        """The table of what is left."""
        bits, random = getattr(self.config, "kept_bits", 32), self.task_generator(self.device)
        return self.tensors | class_sums.without(self.tensors, rest, bits, random, self.tasks_learned)
