"""What a model says to pictures: answers one by one, and how right they are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from engram.images.decode import source_name
from engram.images.extraction import Images, stream
from engram.store.workshop import Model

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    """The best classes for one picture, and their similarities; `label` is "unknown" where the best is not enough."""

    position: int
    path: str
    label: str
    similarity: float
    top: tuple[tuple[str, float], ...]

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        top = [{"label": label, "similarity": similarity} for label, similarity in self.top]
        return {"path": self.path, "label": self.label, "similarity": self.similarity, "top": top}


@dataclass(frozen=True)
class Unreadable:
    """A picture that got no answer, and why."""

    position: int
    path: str
    reason: str


def answers(
    model: Model, images: Images, *, top: int = 3, unknown: float | None = None, device: str = "auto"
) -> Iterator[Answer | Unreadable]:
    """Say what each picture shows, in order, as they are worked through; memory stays bounded.

    Below a similarity of `unknown` the answer is "unknown".
    """
    if top < 1:
        raise ValueError(f"top must be at least 1, not {top}")
    if not model.names:
        raise ValueError("every class has been forgotten; teach one first")
    for batch in stream(images, model.clf.backbone_, device=device):
        bad = [Unreadable(one.position, one.name, one.reason) for one in batch.bad]
        found: list[Answer | Unreadable] = [*bad]
        if batch.kept:
            labels, scores = model.clf.nearest(batch.values, top)
            for position, best, row in zip(batch.kept, labels.tolist(), scores.tolist(), strict=True):
                ranked = tuple((str(label), round(score, 4)) for label, score in zip(best, row, strict=True))
                label = UNKNOWN if unknown is not None and row[0] < unknown else ranked[0][0]
                name = source_name(images[position])
                found.append(Answer(position, name, label, ranked[0][1], ranked))
        yield from sorted(found, key=lambda one: one.position)


def unknown_similarity(model: Model, wanted: str | None) -> float | None:
    """The similarity that `--unknown` asks for: a number, or "auto" for the one found while learning."""
    if wanted is None:
        return None
    if wanted == "auto":
        if model.notes.unknown is None:
            raise ValueError(
                "this model carries no calibrated similarity, as it was not made by engram learn; "
                "give a number instead: --unknown 0.5"
            )
        return model.notes.unknown.similarity
    try:
        return float(wanted)
    except ValueError:
        raise ValueError(f"--unknown takes auto or a similarity between -1 and 1, not {wanted!r}") from None


@dataclass(frozen=True)
class Wrong:
    """A picture that was taken for something else."""

    path: Path
    truth: str
    answer: str
    similarity: float


@dataclass(frozen=True)
class Evaluation:
    """Answers compared with the truth. `matrix[i, j]` counts pictures of `names[i]` that were taken for `names[j]`.

    Classes in the folder that the model does not know have a row and an empty column.
    """

    names: list[str]
    matrix: np.ndarray[Any, Any]
    wrong: list[Wrong]
    unreadable: list[Unreadable]
    strange: list[str]

    @property
    def pictures(self) -> int:
        """How many pictures were answered."""
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
            "unreadable": [{"path": one.path, "reason": one.reason} for one in self.unreadable],
        }


def evaluate(
    model: Model,
    images: Sequence[Path],
    labels: Sequence[str],
    *,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Ask about pictures whose class is known."""
    strange = sorted(set(labels) - set(model.names))
    names = model.names + strange
    row_of = {name: i for i, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)), np.int64)
    wrong: list[Wrong] = []
    unreadable: list[Unreadable] = []
    for done, answer in enumerate(answers(model, images, top=1, device=device), 1):
        if progress is not None:
            progress(done, len(images))
        if isinstance(answer, Unreadable):
            unreadable.append(answer)
            continue
        truth = labels[answer.position]
        matrix[row_of[truth], row_of[answer.label]] += 1
        if answer.label != truth:
            wrong.append(Wrong(images[answer.position], truth, answer.label, answer.similarity))
    return Evaluation(names, matrix, wrong, unreadable, strange)
