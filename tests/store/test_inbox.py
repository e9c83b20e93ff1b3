"""Pictures as they come."""

import contextlib
import csv
import json
import shutil

import pytest
from toys import paint

from engram.store import AnswerLog, Wanted, inbox, watch_inbox, watch_stream


class StopError(Exception):
    pass


@pytest.fixture
def watched(place, tmp_path, monkeypatch):
    """Watch for as many looks as there are `steps`, each done before the next look; the answers as (path, label)."""
    (tmp_path / "in").mkdir()
    paint(tmp_path / "p", "red", "blue", n=3, seed=7)

    def run(*steps, out="a.csv", move=None, address=None, **wanted):
        waiting = list(steps)

        def sleep(seconds):
            if not waiting:
                raise StopError
            waiting.pop(0)()

        monkeypatch.setattr(inbox.time, "sleep", sleep)
        log = AnswerLog(tmp_path / out)
        answers = []
        with contextlib.suppress(StopError):
            where = tmp_path / "in"
            looks = (
                watch_stream(place, address, log, Wanted(**wanted), every=1.0)
                if address
                else watch_inbox(place, where, log, Wanted(**wanted), move=move, every=1.0)
            )
            for one in looks:
                answers.append(getattr(one, "label", None) or one.reason)
        log.close()
        return answers

    return run


def nothing():
    pass


def test_settled_pictures_are_answered_once(watched, tmp_path):
    come = lambda name, to: shutil.copy(tmp_path / "p" / name, tmp_path / "in" / to)  # noqa: E731
    half = (tmp_path / "p/blue/7-0.png").read_bytes()

    def begin():
        (tmp_path / "in" / "b.png").write_bytes(half[:60])

    def finish():
        (tmp_path / "in" / "b.png").write_bytes(half)

    assert watched(lambda: come("red/7-0.png", "a.png"), nothing, begin, finish, nothing) == ["red", "blue"]
    assert watched(nothing, nothing) == []  # after a restart
    come("blue/7-1.png", "a.png")  # the same name, another picture
    assert watched(nothing) == ["blue"]
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["path"], row["label"]) for row in rows] == [("a.png", "red"), ("b.png", "blue"), ("a.png", "blue")]
    assert all(float(row["probability"]) > 0.9 for row in rows)


@pytest.mark.parametrize("out", ["a.csv", "a.jsonl"])
def test_a_line_that_was_cut_off_is_answered_again(watched, tmp_path, out):
    for i in range(3):
        shutil.copy(tmp_path / f"p/red/7-{i}.png", tmp_path / "in")
    assert watched(nothing, out=out) == ["red"] * 3
    before = (tmp_path / out).read_bytes()
    (tmp_path / out).write_bytes(before[:-9])
    assert watched(nothing, out=out) == ["red"]
    after = (tmp_path / out).read_bytes()
    assert after.splitlines()[:-1] == before.splitlines()[:-1]
    assert after.splitlines()[-1].count(b"7-2.png") == 1
    if out == "a.jsonl":
        rows = [json.loads(line) for line in before.splitlines()]
        assert [row["path"] for row in rows] == ["7-0.png", "7-1.png", "7-2.png"]


def test_what_cannot_be_read_is_told_once_and_stays(watched, tmp_path):
    (tmp_path / "in" / "bad.png").write_bytes(b"no picture")
    assert watched(nothing, nothing, move=tmp_path / "out") == ["not a picture in any format Pillow knows"]
    assert watched(nothing, move=tmp_path / "out") == []
    assert (tmp_path / "in" / "bad.png").exists()


def test_moving_by_answer(watched, place, tmp_path):
    place.rename("blue", "../blue")
    for day in ("mon", "tue"):
        (tmp_path / "in" / day).mkdir()
        shutil.copy(tmp_path / "p/red/7-0.png", tmp_path / "in" / day / "x.png")
    shutil.copy(tmp_path / "p/blue/7-0.png", tmp_path / "in")
    shutil.copy(tmp_path / "p/red/7-1.png", tmp_path / "in" / "late.png")
    watched(nothing, out="a.csv")  # answered, and stopped before anything was moved
    assert len(list((tmp_path / "in").rglob("*.png"))) == 4
    assert watched(nothing, move=tmp_path / "out") == []
    moved = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.png"))
    assert moved == ["_blue/7-0.png", "red/late.png", "red/x (2).png", "red/x.png"]
    assert list((tmp_path / "in").rglob("*.png")) == []
    shutil.copy(tmp_path / "p/red/7-2.png", tmp_path / "in")
    assert watched(nothing, move=tmp_path / "out") == ["red"]
    assert (tmp_path / "out" / "red" / "7-2.png").exists()


def test_a_model_that_changes_is_read_again(watched, place, tmp_path):
    def rename():
        place.rename("red", "rot")
        shutil.copy(tmp_path / "p/red/7-1.png", tmp_path / "in")

    shutil.copy(tmp_path / "p/red/7-0.png", tmp_path / "in")
    assert watched(nothing, rename, nothing) == ["red", "rot"]


def test_impossible_places(place, tmp_path):
    log = AnswerLog(tmp_path / "a.csv")
    with pytest.raises(ValueError, match="nowhere is not a folder"):
        next(watch_inbox(place, tmp_path / "nowhere", log, Wanted()))
    with pytest.raises(ValueError, match="would be found again"):
        next(watch_inbox(place, tmp_path, log, Wanted(), move=tmp_path / "sorted"))
    log.close()
    columns = "path,size,modified,label,similarity,probability,familiarity,reason\na,1,1,red,1,1,1,\n"  # of before
    for name, text in (("x.csv", "path,label\na,b\n"), ("y.csv", columns), ("x.jsonl", "[]\n"), ("y.jsonl", "what\n")):
        (tmp_path / name).write_text(text)
        with pytest.raises(ValueError, match="something else than answers of engram watch"):
            AnswerLog(tmp_path / name)
        assert (tmp_path / name).read_text() == text


def test_only_some_answers_and_coarser_names(watched, place, tmp_path):
    shutil.copy(tmp_path / "p/red/7-0.png", tmp_path / "in")
    assert watched(nothing, among=["blue", "green", "violet"], out="b.csv")[0] in ("blue", "green")
    parents = {"red": "warm", "blue": "cold", "green": "cold"}
    assert watched(nothing, among=["blue", "green"], taxonomy=parents, sure=0.999999, out="c.csv") == ["cold"]
    with (tmp_path / "c.csv").open() as file:
        assert [float(row["label_probability"]) for row in csv.DictReader(file)] == [1.0]
    with pytest.raises(ValueError, match="the model knows none of violet"):
        watched(nothing, among=["violet"], out="d.csv")


@pytest.fixture
def clip(tmp_path):
    from films import film

    return lambda name, *colours: film(tmp_path / name, [*colours])


def test_films_are_answered_frame_by_frame_and_once(watched, clip, tmp_path, monkeypatch):
    clip("in/a.mp4", "red", "blue", "blue")
    assert watched(nothing, nothing) == ["red", "blue", "blue"]
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["path"], float(row["seconds"])) for row in rows] == [("a.mp4", 0), ("a.mp4", 1), ("a.mp4", 2)]
    assert watched(nothing) == []
    lines = (tmp_path / "a.csv").read_text().splitlines(keepends=True)
    (tmp_path / "a.csv").write_text("".join(lines[:2]))  # killed after the first frame: it goes on with the second
    assert watched(nothing, move=tmp_path / "out") == ["blue", "blue"]
    assert (tmp_path / "out/blue/a.mp4").exists()
    (tmp_path / "in/no.mp4").write_bytes(b"no film")
    assert watched(nothing, nothing) == ["Invalid data found when processing input"]
    assert watched(nothing) == []
    clip("in/c.mp4", "red")
    monkeypatch.setattr(inbox, "can_see_films", lambda: False)
    assert watched(nothing) == []


def test_a_stream_is_opened_again_when_it_ends(watched, clip, place, tmp_path):
    address = clip("cam.mp4", "red", "blue").as_uri()
    assert watched(nothing, lambda: place.rename("red", "rot"), address=address) == [
        "red", "blue", "red", "blue", "rot", "blue",
    ]  # fmt: skip
    with (tmp_path / "a.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["seconds"]) for row in rows] == [0, 1] * 3
    assert len({row["modified"] for row in rows}) == 6  # the time of each answer
