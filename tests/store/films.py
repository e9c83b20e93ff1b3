"""Films to test with, made on the spot; whoever imports this is skipped without PyAV."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

av = pytest.importorskip("av", reason="films take PyAV (pip install 'engram-learn[video]')")
RATE = 10  # frames a second


def film(path: Path, colours: list[str]) -> Path:
    """A film of plain colours, a second each."""
    with av.open(str(path), "w") as made:
        stream = made.add_stream("mpeg4", rate=RATE)
        stream.width = stream.height = 64
        stream.pix_fmt, stream.bit_rate = "yuv420p", 1_000_000
        for colour in colours:
            frame = np.asarray(Image.new("RGB", (64, 64), colour))
            for _ in range(RATE):
                made.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        made.mux(stream.encode())
    return path
