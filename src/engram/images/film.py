"""Films and streams: one frame every so many seconds, as a picture. It takes PyAV (engram-learn[video])."""

import math
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, NamedTuple

from PIL import Image

from engram.images.decode import ImageError

_NEARLY = 1e-3  # seconds: times of frames are rounded


class Frame(NamedTuple):
    """A picture out of a film, and when it is seen."""

    seconds: float
    picture: Image.Image


def can_see_films() -> bool:
    """Whether the package that reads them is installed."""
    return find_spec("av") is not None


def frames(source: str, every: float, after: float | None = None) -> Iterator[Frame]:
    """The first frame of a film or stream and one every so many seconds, or those later than `after`.

    ImageError says why it cannot be read, or not to its end.
    """
    if every <= 0:
        raise ValueError(f"the seconds between two frames are above 0, not {every:g}")
    if not can_see_films():
        raise ValueError("films take one more package: pip install 'engram-learn[video]'")
    import av

    try:
        with av.open(source) as film:
            if not film.streams.video:
                raise ImageError(source, "there is no picture in it")
            yield from _seen(film, film.streams.video[0], every, after)
    except (av.FFmpegError, OSError) as error:
        raise ImageError(source, error.strerror or str(error)) from error


def _seen(film: Any, stream: Any, every: float, after: float | None) -> Iterator[Frame]:
    stream.thread_type = "AUTO"
    began = None if stream.start_time is None else float(stream.start_time * stream.time_base)
    due = 0.0 if after is None else _next(after, every)
    if after is not None and began is not None:
        film.seek(int((began + after) / stream.time_base), stream=stream)  # to the key frame before
    for frame in film.decode(stream):
        if frame.time is None:
            continue
        began = frame.time if began is None else began  # of a live stream, whenever one came in
        seconds = frame.time - began
        if seconds + _NEARLY >= due:
            due = _next(seconds, every)
            yield Frame(round(seconds, 3), frame.to_image().rotate(frame.rotation, expand=True))


def _next(seconds: float, every: float) -> float:
    """When a frame is due again, counted from the beginning."""
    return (math.floor((seconds + _NEARLY) / every) + 1) * every
