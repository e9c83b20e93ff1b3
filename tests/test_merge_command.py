"""engram merge, and engram learn --statistics, as a person types them."""

import pytest
from toys import paint

from engram.store import ModelStore


@pytest.fixture
def two(engram, tmp_path):
    for name, colours, seed in (("garden", ("red", "green"), 0), ("lake", ("red", "blue"), 1)):
        folder = paint(tmp_path / name, *colours, seed=seed)
        assert engram("learn", f"{name}.engram", folder, "--backbone", "averages").code == 0


def test_merge(engram, two, tmp_path):
    done = engram("merge", "out.engram", "garden.engram", "lake.engram")
    assert (done.code, done.out) == (0, "")
    assert "one class of several: red" in done.err
    assert "out.engram knows 3 classes, from 2 models" in done.err
    assert "merged models: 3 classes from" in engram("history", "out.engram").out
    assert engram("predict", "out.engram", tmp_path / "lake" / "blue" / "1-0.png", "--json").json[0]["label"] == "blue"
    again = engram("merge", "out.engram", "garden.engram", "lake.engram")
    assert (again.code, again.err.count("\n")) == (2, 1)
    twice = engram("merge", "out.engram", "out.engram", "lake.engram", "--force", "--json")
    assert twice.json["joined"] == {"blue": 7, "red": 7}
    assert twice.json["learned_twice"][0] == {"name": "blue", "models": ["out.engram", "lake.engram"]}
    assert "learned twice: blue in out.engram and lake.engram" in twice.err
    assert engram("undo", "out.engram", "--yes").err.startswith("undone: merged models")


def test_merge_names(engram, two):
    done = engram("merge", "a.engram", "garden.engram", "lake.engram", "--rename-clashes")
    assert "red of lake.engram is called red (lake)" in done.err
    done = engram("merge", "b.engram", "garden.engram", "lake.engram", "--prefix", "--json")
    assert done.json["classes"] == ["garden-green", "garden-red", "lake-blue", "lake-red"]
    assert done.json["renamed"][0] == {"model": "garden.engram", "old": "green", "new": "garden-green"}
    both = engram("merge", "c.engram", "garden.engram", "lake.engram", "--prefix", "--rename-clashes")
    assert (both.code, both.err) == (2, "error: choose one of --rename-clashes and --prefix\n")


def test_merge_takes_files_that_are_there(engram, two):
    done = engram("merge", "out.engram", "garden.engram", "nowhere.engram")
    assert (done.code, done.err) == (2, "error: cannot read nowhere.engram: No such file or directory\n")
    assert not ModelStore("out.engram").exists()


def test_methods_say_who_can_be_merged(engram):
    listed = engram("methods").out.splitlines()
    assert "; can be merged" in listed[1]
    assert engram("methods", "--json").json["icarl"]["merges"] is False
