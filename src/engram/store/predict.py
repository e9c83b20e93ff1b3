"""What a model says to images, one by one."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from engram.images import Crop, Lookable, Unreadable, source_name
from engram.images.crop import Box
from engram.images.extraction import stream
from engram.names import UNKNOWN
from engram.store.model_store import Model
from engram.store.taxonomy import SURE, Namer


class Ranked(NamedTuple):
    """A class, its score, and how likely it is."""

    label: str
    similarity: float
    probability: float


@dataclass(frozen=True)
class Answer:
    """The best classes for one image; `label` is "unknown" where its familiarity is too low.

    `similarity` and `probability` are those of the best class in any case. With a taxonomy, `label` may be a coarser
    name, and `label_probability` is how likely that is. A frame of a film has the `seconds` at which it is seen, a
    `Crop` the `box` of the image that was asked about.
    """

    position: int
    path: str
    label: str
    similarity: float
    probability: float
    familiarity: float
    top: tuple[Ranked, ...]
    label_probability: float | None = None
    box: Box | None = None
    seconds: float | None = None

    def as_json(self) -> dict[str, Any]:
        """The documented form."""
        shown = {name: value for name, value in vars(self).items() if name != "position" and value is not None}
        return {**shown, "top": [one._asdict() for one in self.top]}


def predict_images(
    model: Model,
    images: Lookable,
    *,
    top: int = 3,
    unknown: float | None = None,
    among: Sequence[str] | None = None,
    taxonomy: Mapping[str, str] | None = None,
    sure: float = SURE,
    device: str = "auto",
) -> Iterator[Answer | Unreadable]:
    """Yield the answer on each image, in order, as soon as it is there; memory stays bounded.

    Where its familiarity is below `unknown`, the answer is "unknown"; see `Model.unknown_below`. With `among`, only
    those classes are answers, and probabilities are shared among them. With a `taxonomy`, the parent of each name, the
    answer is the finest name that is `sure` by the sum of its classes, and "unknown" if none is.
    """
    if top < 1:
        raise ValueError(f"top must be at least 1, not {top}")
    if not (model.names or model.built_in):
        raise ValueError("every class has been forgotten; teach one first")
    chosen = None if among is None else [model.label(name) for name in dict.fromkeys(among)]
    name_by = None
    if taxonomy is not None:
        columns_of = model.clf.classes_.tolist() if chosen is None else chosen
        name_by = Namer([str(label) for label in columns_of], taxonomy, sure)
    for batch in stream(images, model.backbone, device=device):
        found: list[Answer | Unreadable] = [*batch.unreadable]
        if batch.kept:
            familiarity = model.clf.familiarity(batch.values).tolist()
            columns = (each.tolist() for each in model.clf.nearest(batch.values, top, among=chosen))
            named: list[tuple[str, float] | None] = [None] * len(batch.kept)
            if name_by is not None:
                named = name_by(model.clf.predict_proba(batch.values, among=chosen))
            for position, familiar, finest, *best in zip(batch.kept, familiarity, named, *columns, strict=True):
                ranked = tuple(Ranked(str(label), round(s, 4), round(p, 4)) for label, s, p in zip(*best, strict=True))
                (first, similarity, probability), image = ranked[0], images[position]
                label, likely = finest or (first if name_by is None else UNKNOWN, None)
                if unknown is not None and familiar < unknown:
                    label, likely = UNKNOWN, None
                about = (similarity, probability, round(familiar, 4), ranked, likely and round(likely, 4))
                box = image.box if isinstance(image, Crop) else None
                found.append(Answer(position, source_name(image), label, *about, box))
        yield from sorted(found, key=lambda one: one.position)


def unknown_threshold(model: Model, wanted: str | None) -> float | None:
    """The familiarity that `--unknown` asks for: "auto", or a number as `Model.unknown_below` takes it."""
    if wanted is None:
        return None
    number = None
    if wanted != "auto":
        with contextlib.suppress(ValueError):
            number = float(wanted)
        if number is None or (model.tells_unknown and not 0 < number < 1):
            expected = "the share of known pictures to lose, between 0 and 1" if model.tells_unknown else "a similarity"
            raise ValueError(f"--unknown takes auto or {expected}, not {wanted!r}")
    below = model.unknown_below(number)
    if below is None and model.built_in:
        raise ValueError(
            "beside ImageNet's classes nothing is told to be unknown; look at the probability of an answer"
        )
    if below is None:
        raise ValueError(
            "the model cannot tell yet what is unknown; it takes two classes, and two pictures of one of them"
            if model.tells_unknown
            else f"the method {model.clf.method_} is not calibrated; give a similarity of your own: --unknown 0.5"
        )
    return below
