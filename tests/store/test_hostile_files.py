"""What lies where a model should, and what a file with a right checksum may still say."""

import json
import os
from pathlib import Path

import pytest
from toys import paint

from engram.errors import DamagedModelError, ModelFileError
from engram.io import model_file
from engram.store import ModelStore
from engram.store.lock import model_lock

NEW = ["--backbone", "averages", "--quiet"]


def test_the_record_of_the_lock_follows_no_link(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / ".m.engram.holder").symlink_to(precious)
    with model_lock(tmp_path / "m.engram", "learn"):
        assert json.loads((tmp_path / ".m.engram.holder").read_text())["doing"] == "learn"
    assert precious.read_text() == "mine"
    assert not (tmp_path / ".m.engram.holder").exists()


def test_a_pipe_is_no_model(engram, tmp_path):
    os.mkfifo(tmp_path / "m.engram")
    with pytest.raises(ModelFileError, match="it is no file, but a pipe"):
        model_file.read(tmp_path / "m.engram")
    paint(tmp_path / "pictures", "red")
    for command in (["info", "m.engram"], ["learn", "m.engram", "pictures", *NEW], ["doctor", "m.engram"]):
        done = engram(*command)
        assert (done.code, "it is no file, but a pipe" in done.err) == (2, True), done.err


@pytest.fixture(scope="module")
def taught(tmp_path_factory) -> Path:
    from engram.datasets import class_folders
    from engram.store import Plan, learn_classes

    folder = tmp_path_factory.mktemp("taught")
    learn_classes(
        ModelStore(folder / "m", device="cpu"),
        class_folders(paint(folder / "p", "red", "green")),
        Plan(backbone="averages"),
    )
    return folder / "m"


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("version",), "three"),
        (("version",), 1.5),
        (("keep",), None),
        (("refuse",), "much"),
        (("history", 0, "pictures"), [1]),
        (("history", 0, "pictures"), {"red": "many"}),
        (("history", 0, "seconds"), "long"),
        (("history", 0, "what"), "explode"),
        (("history", 0, "when"), 7),
        (("classes", "red", "increment"), "first"),
        (("classes", "red", "folders"), 3),
        (("unknown",), {"similarity": "x", "share": 0.1, "pictures": 1, "held_back": True}),
    ],
)
def test_notes_of_wrong_kinds_are_refused_when_they_are_read(where, value, taught, tmp_path):
    tensors, header = model_file.read(taught)
    at = header["notes"]
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = value
    model_file.write(tmp_path / "m", tensors, {k: v for k, v in header.items() if k != "tensors"})
    with pytest.raises(DamagedModelError, match="its notes are not engram's"):
        ModelStore(tmp_path / "m", device="cpu").read()


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999"])
def test_a_header_that_is_not_finite_is_not_read(number, taught, tmp_path, monkeypatch):
    tensors, header = model_file.read(taught)
    header["notes"]["version"] = 123456789
    dumps = json.dumps
    with monkeypatch.context() as patch:  # signed by somebody who writes such numbers
        patch.setattr(model_file, "_digest", lambda data: "x")
        patch.setattr(model_file.json, "dumps", lambda *a, **k: dumps(*a, **k).replace("123456789", number))
        patch.setattr(model_file, "read", lambda path: None)
        model_file.write(tmp_path / "m", tensors, {k: v for k, v in header.items() if k != "tensors"})
    with pytest.raises(DamagedModelError, match=f"its header holds {number}"):
        model_file.read(tmp_path / "m")
