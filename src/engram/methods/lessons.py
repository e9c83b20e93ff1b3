"""What one lesson has added to counts, means and scatter, kept so that it can be taken back."""

from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from engram.learner import Label
from engram.nn import statistics

PREFIX = "lessons."


@dataclass(frozen=True)
class Lesson:
    """The classes of a lesson, and its own sums.

    `root` is a matrix R with RᵀR = its scatter, which has no more rows than the lesson has samples: of a small lesson
    much less than the scatter itself. `samples` counts those of classes that were forgotten since, too; `unit` is that
    of the learner's features then.
    """

    labels: list[Label]
    tensors: dict[str, Tensor]  # counts, means, samples; root and unit where the learner has a scatter and a unit

    @classmethod
    def of(cls, labels: list[Label], z: Tensor, targets: Tensor, learner: dict[str, Tensor]) -> Self:
        """The lesson that these samples were, as the tensors of its learner keep them; targets are of `labels`."""
        now = statistics.update(None, None, z, targets, len(labels))
        tensors = {"counts": now.counts, "means": now.means, "samples": torch.tensor(len(z), device=z.device)}
        if "consolidation.scatter" in learner:
            tensors["root"] = torch.linalg.qr(now.centred, mode="r").R
        if "network.unit" in learner:
            tensors["unit"] = learner["network.unit"]
        return cls(labels, tensors)

    def part(self, unit: Tensor | None) -> statistics.Part:
        """Its sums, in the unit that the learner has now."""
        scale = 1.0 if unit is None else self.tensors["unit"].double() / unit
        root = self.tensors.get("root")
        scatter = None if root is None else (root.double() * scale).T @ (root.double() * scale)
        means = self.tensors["means"].double() * scale
        return statistics.Part(self.tensors["counts"], means, scatter, self.tensors["samples"])

    def renamed(self, old: Label, new: Label) -> Self:
        """Once a class has another name."""
        return replace(self, labels=[new if label == old else label for label in self.labels])

    def without(self, label: Label) -> Self:
        """Once a class that nobody else has taught is forgotten: its scatter stays, here as in the learner."""
        rest = [row for row, other in enumerate(self.labels) if other != label]
        rows = {name: self.tensors[name][rest] for name in ("counts", "means")}
        return replace(self, labels=[self.labels[row] for row in rest], tensors=self.tensors | rows)

    def count(self, label: Label) -> int:
        """How many samples it had of a class."""
        return int(self.tensors["counts"][self.labels.index(label)]) if label in self.labels else 0


def to_state(lessons: dict[int, Lesson]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Lessons as tensors and as what else there is to know, for the state of a learner."""
    tensors = {f"{PREFIX}{n}.{name}": t for n, one in lessons.items() for name, t in one.tensors.items()}
    return tensors, {str(number): one.labels for number, one in lessons.items()}


def from_state(tensors: dict[str, Tensor], labels: dict[str, Any]) -> dict[int, Lesson]:
    """The lessons that a state was made of; ValueError if they are not whole."""
    lessons = {}
    for number, names in labels.items():
        start = f"{PREFIX}{number}."
        own = {name.removeprefix(start): t for name, t in tensors.items() if name.startswith(start)}
        if {len(own["counts"]), len(own["means"])} != {len(names)} or own["samples"].ndim:
            raise ValueError(f"what is kept of lesson {number} does not fit together")
        lessons[int(number)] = Lesson(list(names), own)
    return lessons
