"""What a model says to images, one by one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engram.images import Images, Unreadable, source_name, stream
from engram.store.model_store import Model

UNKNOWN = "unknown"


@dataclass(frozen=True)
class Answer:
    """The best classes for one image, and their scores; `label` is "unknown" where the best score is too low."""

    position: int
    path: str
    label: str
    similarity: float
    top: tuple[tuple[str, float], ...]

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        top = [{"label": label, "similarity": similarity} for label, similarity in self.top]
        return {"path": self.path, "label": self.label, "similarity": self.similarity, "top": top}


def predict_images(
    model: Model, images: Images, *, top: int = 3, unknown: float | None = None, device: str = "auto"
) -> Iterator[Answer | Unreadable]:
    """Yield the answer on each image, in order, as soon as it is there; memory stays bounded.

    Where the best score is below `unknown`, the answer is "unknown".
    """
    if top < 1:
        raise ValueError(f"top must be at least 1, not {top}")
    if not model.names:
        raise ValueError("every class has been forgotten; teach one first")
    for batch in stream(images, model.backbone, device=device):
        found: list[Answer | Unreadable] = [*batch.unreadable]
        if batch.kept:
            labels, scores = model.clf.nearest(batch.values, top)
            for position, best, row in zip(batch.kept, labels.tolist(), scores.tolist(), strict=True):
                ranked = tuple((str(label), round(score, 4)) for label, score in zip(best, row, strict=True))
                label = UNKNOWN if unknown is not None and row[0] < unknown else ranked[0][0]
                name = source_name(images[position])
                found.append(Answer(position, name, label, ranked[0][1], ranked))
        yield from sorted(found, key=lambda one: one.position)


def unknown_threshold(model: Model, wanted: str | None) -> float | None:
    """The score that `--unknown` asks for: a number, or "auto" for the one found while learning."""
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
