"""What a model says to images, one by one."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engram.encoders.base import Encoder
from engram.images.crop import Box, Crop
from engram.images.decode import source_name
from engram.images.stream import Sources, Unreadable, encode
from engram.learners.base import Answers, Label
from engram.model import Model
from engram.names import SURE, UNKNOWN


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
    images: Sources,
    *,
    top: int = 3,
    unknown: float | None = None,
    among: Sequence[str] | None = None,
    taxonomy: Mapping[str, str] | None = None,
    sure: float = SURE,
    device: str = "auto",
    threads: int | None = None,
) -> Iterator[Answer | Unreadable]:
    """Yield the answer on each image, in order, as soon as it is there; memory stays bounded.

    Where its novelty is above `unknown`, the answer is "unknown"; see `Model.unknown_above`. With `among`, only
    those classes are answers, and probabilities are shared among them. With a `taxonomy`, the parent of each name, the
    answer is the finest name that is `sure` by the sum of its classes, and "unknown" if none is.
    """
    if top < 1:
        raise ValueError(f"top must be at least 1, not {top}")
    if not model.learner.labels:
        raise ValueError("every class has been forgotten; teach one first")
    chosen = None if among is None else [model.label(name) for name in dict.fromkeys(among)]
    known = model.learner.labels
    name_by = None
    if taxonomy is not None:
        from engram.store.taxonomy import Namer

        columns_of = [str(label) for label in (known if chosen is None else chosen)]
        name_by = Namer(columns_of, taxonomy, sure)
    for batch in encode(images, _ready(model, device), threads=threads):
        found: list[Answer | Unreadable] = [*batch.unreadable]
        if batch.kept:
            answers = model.answer(batch.features, top if name_by is None else len(columns_of), chosen)
            novelty = -answers.scores[:, 0] if answers.novelty is None else answers.novelty
            named: list[tuple[str, float] | None] = [None] * len(batch.kept)
            if name_by is not None:
                named = name_by(_by_column(answers, known if chosen is None else chosen, known))
            columns = (each[:, :top].tolist() for each in answers[:3])
            for position, strange, finest, *best in zip(batch.kept, novelty.tolist(), named, *columns, strict=True):
                ranked = tuple(Ranked(str(known[r]), round(s, 4), round(p, 4)) for r, s, p in zip(*best, strict=True))
                (first, similarity, probability), image, familiar = ranked[0], images[position], -strange
                label, likely = finest or (first if name_by is None else UNKNOWN, None)
                if unknown is not None and strange > unknown:
                    label, likely = UNKNOWN, None
                about = (similarity, probability, round(familiar, 4), ranked, likely and round(likely, 4))
                box = image.box if isinstance(image, Crop) else None
                found.append(Answer(position, source_name(image), label, *about, box))
        yield from sorted(found, key=lambda one: one.position)


def _ready(model: Model, device: str) -> Encoder:
    """The encoder of a model. While it is opened for the first time, what the learner answers by is computed."""
    if model.encoder is None or model.encoder.is_open:
        return model.open_encoder(device)
    with ThreadPoolExecutor(1, "engram-prepare") as pool:
        prepared = pool.submit(model.learner.prepare)
        encoder = model.open_encoder(device)
        prepared.result()
    return encoder


def _by_column(answers: Answers, columns: Sequence[Label], known: Sequence[Label]) -> NDArray[np.float64]:
    """The probabilities of all of some classes, in their order."""
    at = np.empty(len(known), np.int64)
    at[[known.index(label) for label in columns]] = range(len(columns))
    table = np.empty(answers.probabilities.shape)
    np.put_along_axis(table, at[answers.rows], answers.probabilities, axis=1)
    return table


def unknown_threshold(model: Model, wanted: str | None) -> float | None:
    """The novelty that `--unknown` asks for: "auto", or the share of known pictures to lose."""
    if wanted is None:
        return None
    if model.built_in:
        raise ValueError(
            "beside ImageNet's classes nothing is told to be unknown; look at the probability of an answer"
        )
    if not model.tells_unknown:
        raise ValueError(f"the method {model.method} is not calibrated, and cannot tell what is unknown")
    share = None
    if wanted != "auto":
        with contextlib.suppress(ValueError):
            share = float(wanted)
        if share is None or not 0 < share < 1:
            expected = "the share of known pictures to lose, between 0 and 1"
            raise ValueError(f"--unknown takes auto or {expected}, not {wanted!r}")
    above = model.unknown_above(share)
    if above is None:
        raise ValueError(
            "the model cannot tell yet what is unknown; it takes two classes, and two pictures of one of them"
        )
    return above
