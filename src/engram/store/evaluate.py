"""How often a model is right on images whose class is known."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engram.images import Unreadable
from engram.store.model_store import Model
from engram.store.predict import predict_images


@dataclass(frozen=True)
class Mistake:
    """An image that was taken for something else."""

    path: Path
    truth: str
    answer: str
    similarity: float
    probability: float


@dataclass(frozen=True)
class Evaluation:
    """Answers compared with the truth. `matrix[i, j]` counts images of `names[i]` that were taken for `names[j]`.

    Classes in the folder that the model does not know have a row and an empty column.
    """

    names: list[str]
    matrix: np.ndarray[Any, Any]
    wrong: list[Mistake]
    unreadable: list[Unreadable]
    strange: list[str]

    @property
    def pictures(self) -> int:
        """How many images were answered."""
        return int(self.matrix.sum())

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return float(np.trace(self.matrix)) / max(1, self.pictures)

    def per_class(self) -> list[tuple[str, int, int, str]]:
        """Name, pictures, right answers and the most frequent wrong one ("") of every class that has pictures."""
        rows = []
        for i, name in enumerate(self.names):
            if total := int(self.matrix[i].sum()):
                others = self.matrix[i].copy()
                others[i] = 0
                rows.append((name, total, int(self.matrix[i, i]), self.names[others.argmax()] if others.any() else ""))
        return rows

    def as_json(self) -> dict[str, Any]:
        """Every number."""
        return {
            "accuracy": self.accuracy,
            "pictures": self.pictures,
            "classes": [
                {"name": name, "pictures": total, "right": right, "accuracy": right / total}
                for name, total, right, _ in self.per_class()
            ],
            "unknown_to_the_model": self.strange,
            "confusion": {"names": self.names, "matrix": self.matrix.tolist()},
            "wrong": [{**vars(one), "path": str(one.path)} for one in self.wrong],
            "unreadable": [{"path": one.name, "reason": one.reason} for one in self.unreadable],
        }


def evaluate_images(
    model: Model,
    images: Sequence[Path],
    labels: Sequence[str],
    *,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Ask about images whose class is known."""
    strange = sorted(set(labels) - set(model.names))
    names = model.names + strange
    row_of = {name: i for i, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), np.int64)
    wrong: list[Mistake] = []
    unreadable: list[Unreadable] = []
    for done, answer in enumerate(predict_images(model, images, top=1, device=device), 1):
        if progress is not None:
            progress(done, len(images))
        if isinstance(answer, Unreadable):
            unreadable.append(answer)
            continue
        truth = labels[answer.position]
        matrix[row_of[truth], row_of[answer.label]] += 1
        if answer.label != truth:
            image = images[answer.position]
            wrong.append(Mistake(image, truth, answer.label, answer.similarity, answer.probability))
    return Evaluation(names, matrix, wrong, unreadable, strange)
