"""What a model says to films and streams: to a frame every so many seconds."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from engram.images.decode import ImageError
from engram.images.film import frames
from engram.images.stream import Unreadable
from engram.model import Model
from engram.store.predict import Answer, predict_images

_TOGETHER = 8  # frames


def predict_film(
    model: Model, source: str, *, every: float, after: float | None = None, live: bool = False, **options: Any
) -> Iterator[Answer | Unreadable]:
    """Yield the answer to the first frame and to one every so many seconds, or to those later than `after`.

    `options` are those of `predict_images`. Where the film cannot be read, or not to its end, that is said last. One
    that is `live` is answered frame by frame.
    """
    seen = frames(source, every, after)
    try:
        while together := list(itertools.islice(seen, 1 if live else _TOGETHER)):
            for answer in predict_images(model, [frame.picture for frame in together], **options):
                if isinstance(answer, Answer):
                    yield replace(answer, path=source, seconds=together[answer.position].seconds)
    except ImageError as error:
        yield Unreadable(0, error.name, error.reason)
