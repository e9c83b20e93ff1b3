"""A frame of a film every so many seconds."""

import sys

import pytest
from films import RATE, av, film

from engram.images.decode import ImageError
from engram.images.film import frames

COLOURS = ["red", "red", "blue", "blue"]  # a second each


@pytest.fixture(scope="module")
def clip(tmp_path_factory) -> str:
    return str(film(tmp_path_factory.mktemp("film") / "clip.mp4", COLOURS))


def colours(seen) -> list[str]:
    return ["red" if pixel[0] > pixel[2] else "blue" for pixel in (one.picture.getpixel((8, 8)) for one in seen)]


def test_a_frame_every_so_many_seconds(clip):
    seen = list(frames(clip, 1.0))
    assert [one.seconds for one in seen] == [0.0, 1.0, 2.0, 3.0]
    assert colours(seen) == COLOURS
    assert [one.seconds for one in frames(clip, 1.5)] == pytest.approx([0.0, 1.5, 3.0], abs=1 / RATE)
    assert len(list(frames(clip, 0.001))) == len(COLOURS) * RATE  # no more than there are
    assert seen[0].picture.mode == "RGB"


def test_it_goes_on_where_one_stopped(clip):
    assert [one.seconds for one in frames(clip, 1.0, after=1.0)] == [2.0, 3.0]
    assert colours(frames(clip, 1.0, after=1.0)) == COLOURS[2:]
    assert list(frames(clip, 1.0, after=3.9)) == []


def test_what_is_no_film(clip, tmp_path):
    (tmp_path / "x.mp4").write_bytes(b"no film")
    with pytest.raises(ImageError, match=r"x.mp4: Invalid data found"):
        list(frames(str(tmp_path / "x.mp4"), 1.0))
    with pytest.raises(ImageError, match="No such file"):
        list(frames(str(tmp_path / "y.mp4"), 1.0))
    with av.open(str(tmp_path / "sound.wav"), "w") as sound:
        sound.add_stream("pcm_s16le", rate=8000)
        silence = av.AudioFrame(format="s16", layout="mono", samples=800)
        silence.sample_rate = 8000
        sound.mux(sound.streams[0].encode(silence))
    with pytest.raises(ImageError, match="no picture in it"):
        list(frames(str(tmp_path / "sound.wav"), 1.0))
    with pytest.raises(ValueError, match="above 0"):
        list(frames(clip, 0.0))


def test_without_pyav_the_remedy_is_named(clip, monkeypatch):
    monkeypatch.setattr("engram.images.film.find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ValueError, match=r"pip install 'engram-learn\[video\]'"):
        list(frames(clip, 1.0))
