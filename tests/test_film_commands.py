"""Films on the command line."""

import csv

import pytest
from films import film
from toys import paint


@pytest.fixture
def birds(engram, tmp_path):
    paint(tmp_path / "pictures", "red", "blue", n=8)
    assert engram("learn", "m.engram", "pictures", "--backbone", "averages", "--quiet").code == 0
    return film(tmp_path / "clip.mp4", ["red", "blue"]).parent


def test_predict_answers_frames(engram, birds):
    said = engram("predict", "m.engram", "pictures/red/0-0.png", "clip.mp4", "--every", "1", "--top", "1")
    assert said.code == 0, said.err
    assert said.out.splitlines() == [
        "pictures/red/0-0.png: red (red 100 %)",
        "clip.mp4 at 0 s: red (red 100 %)",
        "clip.mp4 at 1 s: blue (blue 100 %)",
    ]
    told = engram("predict", "m.engram", "clip.mp4", "--every", "0.5", "--json").json
    assert [(one["seconds"], one["label"]) for one in told] == [(0, "red"), (0.5, "red"), (1, "blue"), (1.5, "blue")]
    assert engram("predict", "m.engram", "clip.mp4", "--every", "1", "--csv", "a.csv").code == 0
    with (birds / "a.csv").open() as file:
        assert [row["seconds"] for row in csv.DictReader(file)] == ["0.0", "1.0"]


def test_films_in_a_folder_are_seen_where_one_asks_for_them(engram, birds):
    (birds / "in").mkdir()
    (birds / "clip.mp4").rename(birds / "in/clip.mp4")
    assert "left out in/clip.mp4" in engram("predict", "m.engram", "in").err
    assert len(engram("predict", "m.engram", "in", "--every", "1", "--json").json) == 2
    alone = engram("predict", "m.engram", "in/clip.mp4")
    assert (alone.code, "--every 1 for one a second" in alone.err) == (2, True)
    (birds / "in/bad.mp4").write_bytes(b"no film")
    bad = engram("predict", "m.engram", "in", "--every", "1", "--json")
    assert (bad.code, len(bad.json)) == (2, 2)
    assert "cannot read in/bad.mp4: Invalid data" in bad.err


def test_watch_refuses_what_makes_no_sense(engram, birds):
    assert "no file to move in a stream" in engram("watch", "m.engram", "rtsp://x/y", "--move", "out").err
    assert "--sure belongs to --taxonomy" in engram("watch", "m.engram", "pictures", "--sure", "0.5").err
    assert "knows none of the classes" in engram("watch", "m.engram", "pictures", "--among", "violet").err
    assert not (birds / "answers.csv").exists()
