"""Taking samples away again: lessons that were kept, and learners that were merged."""

import copy
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from engram.learner import Label, Learner, require_finite
from engram.methods.lessons import Lesson
from engram.nn import class_sums, statistics
from engram.snapshots import change


class Subtracting(Learner):
    """A learner with a table of tensors; where that holds counts, means and scatter, parts can be subtracted."""

    def __init__(self, config: Any = None, *, seed: int = 0, device: str = "auto") -> None:
        super().__init__(config, seed=seed, device=device)
        self._labels: list[Label] = []
        self.tensors: dict[str, Tensor] = {}
        self.scratch: dict[str, Tensor] = {}  # made of `tensors` to answer faster; never saved
        self.kept_lessons: dict[int, Lesson] = {}

    @abstractmethod
    def _rows(self, labels: Iterable[Label]) -> Tensor:
        """The rows of known labels."""

    @abstractmethod
    def _targets(self, y: Iterable[Any]) -> Tensor:
        """The rows of the samples' labels."""

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

    @change
    def keep_lesson(self, number: int, X: ArrayLike | Tensor, y: Iterable[Any]) -> None:
        """Keep what samples that have just been learned have added."""
        super().keep_lesson(number, X, y)
        if self.tasks_learned == 1 and any(name.startswith("network.encoder") for name in self.tensors):
            raise ValueError("the encoder was trained on the first lesson, which can therefore not be taken back")
        rows, own = self._targets(y).unique(return_inverse=True)
        labels = [self._labels[row] for row in rows.tolist()]
        with torch.no_grad():
            lesson = Lesson.of(labels, self._mapped(self._features(X)), own, self.tensors)
        self.kept_lessons = self.kept_lessons | {number: lesson}

    @change
    def unlearn(self, number: int) -> None:
        """Know what would be known had a lesson that was kept never been learned."""
        super().unlearn(number)
        if number not in self.kept_lessons:
            raise ValueError(f"nothing is kept of lesson {number} that could be taken back")
        lesson = self.kept_lessons[number]
        self._separate(lesson.labels, lesson.part(self.tensors.get("network.unit")))
        self.kept_lessons = {other: one for other, one in self.kept_lessons.items() if other != number}

    @property
    def lessons(self) -> dict[int, dict[Label, int]]:
        """The lessons that are kept, and how many samples each had of which class."""
        return {number: {label: one.count(label) for label in one.labels} for number, one in self.kept_lessons.items()}

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

    def _mapped(self, features: Tensor) -> Tensor:
        """The vectors that counts, means and scatter are of."""
        return features

    def drop_lessons(self) -> None:
        """Keep nothing of single lessons any more."""
        self.kept_lessons = {}

    def _rename_in_lessons(self, old: Label, new: Label) -> None:
        self.kept_lessons = {number: one.renamed(old, new) for number, one in self.kept_lessons.items()}

    def _forget_in_lessons(self, label: Label) -> None:
        """Before a class is forgotten: lessons that shared it cannot be taken back any more.

        How far their means of the class lay apart is part of the scatter, and known from its mean alone.
        """
        total = sum(one.count(label) for one in self.kept_lessons.values()) and self._count(label)
        self.kept_lessons = {
            number: one.without(label) if label in one.labels else one
            for number, one in self.kept_lessons.items()
            if one.count(label) in (0, total)
        }

    def _count(self, label: Label) -> int:
        return int(self.tensors["classes.counts"][self._rows([label])])
