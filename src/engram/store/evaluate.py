"""How often a model is right on images whose class is known."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engram.images.decode import source_name
from engram.images.stream import Unreadable
from engram.model import Model
from engram.store.image_bytes import Source
from engram.store.predict import predict_images


@dataclass(frozen=True)
class Mistake:
    """An image that was taken for something else."""

    image: Source
    truth: str
    answer: str
    similarity: float
    probability: float


@dataclass(frozen=True)
class Evaluation:
    """Answers compared with the truth. `counts[truth, answer]` are images of the one that were taken for the other.

    `names` are the classes that the model was taught, built-in ones that came up, and those that it does not know.
    Pairs that never came up are not in `counts`: there are few of them even where there are very many classes.
    """

    names: list[str]
    counts: Counter[tuple[str, str]]
    wrong: list[Mistake]
    unreadable: list[Unreadable]
    strange: list[str]

    @property
    def pictures(self) -> int:
        """How many images were answered."""
        return self.counts.total()

    @property
    def accuracy(self) -> float:
        """The share of right answers."""
        return sum(n for (truth, answer), n in self.counts.items() if truth == answer) / max(1, self.pictures)

    def per_class(self) -> list[tuple[str, int, int, str]]:
        """Name, pictures, right answers and the most frequent wrong one ("") of every class that has pictures."""
        answers = dict[str, Counter[str]]()
        for name in self.names:  # which of several that came up alike is told follows their order
            answers[name] = Counter()
        place = {name: i for i, name in enumerate(self.names)}
        for truth, answer in sorted(self.counts, key=lambda pair: place[pair[1]]):
            answers[truth][answer] = self.counts[truth, answer]
        rows = []
        for name, found in answers.items():
            wrong = Counter({answer: n for answer, n in found.items() if answer != name}).most_common(1)
            rows.append((name, found.total(), found[name], wrong[0][0] if wrong else ""))
        return [row for row in rows if row[1]]

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
            "confusion": [
                {"class": truth, "answer": answer, "pictures": n} for (truth, answer), n in sorted(self.counts.items())
            ],
            "wrong": [
                {"path": source_name(one.image)} | {name: value for name, value in vars(one).items() if name != "image"}
                for one in self.wrong
            ],
            "unreadable": [{"path": one.name, "reason": one.reason} for one in self.unreadable],
        }


def evaluate_images(
    model: Model,
    images: Sequence[Source],
    labels: Sequence[str],
    *,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Ask about images whose class is known."""
    strange = sorted(set(labels) - {*model.names, *model.built_in})
    counts = Counter[tuple[str, str]]()
    wrong: list[Mistake] = []
    unreadable: list[Unreadable] = []
    for done, answer in enumerate(predict_images(model, images, top=1, device=device), 1):
        if progress is not None:
            progress(done, len(images))
        if isinstance(answer, Unreadable):
            unreadable.append(answer)
            continue
        truth = labels[answer.position]
        counts[truth, answer.label] += 1
        if answer.label != truth:
            image = images[answer.position]
            wrong.append(Mistake(image, truth, answer.label, answer.similarity, answer.probability))
    asked = {name for pair in counts for name in pair}  # of the built-in classes there are too many to list
    names = [*model.names, *(name for name in model.built_in if name in asked), *strange]
    return Evaluation(names, counts, wrong, unreadable, strange)
