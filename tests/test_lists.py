"""Labels in a table: learn and evaluate from one, predict into one."""

import csv
from pathlib import Path

import pytest
from toys import paint

NEW = ["--backbone", "averages"]


@pytest.fixture
def pictures(tmp_path) -> Path:
    """Pictures whose folders say nothing about their classes."""
    folder = paint(tmp_path / "p", "red", "green", n=6)
    rows = [f"p/{colour}/0-{i}.png,{name}\n" for colour, name in (("red", "rot"), ("green", "grün")) for i in range(6)]
    (tmp_path / "labels.csv").write_text("".join(rows), encoding="utf-8")
    return folder


def test_learning_from_a_table_is_learning_from_folders(engram, pictures, tmp_path):
    done = engram("learn", "m.engram", "labels.csv", *NEW, "--json")
    assert done.code == 0, done.err
    assert {one["name"]: one["pictures"] for one in done.json["learned"]} == {"grün": 6, "rot": 6}
    assert engram("learn", "m.engram", "labels.csv").code == 1  # nothing new
    (tmp_path / "q").mkdir()
    (pictures / "red").rename(tmp_path / "q" / "rot")
    (pictures / "green").rename(tmp_path / "q" / "grün")
    engram("learn", "f.engram", "q", *NEW)
    ask = ("q", "--json")
    assert engram("predict", "m.engram", *ask).out == engram("predict", "f.engram", *ask).out


def test_rows_that_cannot_be_used(engram, pictures, tmp_path):
    with (tmp_path / "labels.csv").open("a", encoding="utf-8") as file:
        file.write("p/gone.png,rot\np/red/0-0.png,blau\n")
    told = [
        "labels.csv, line 13: cannot read p/gone.png: No such file or directory",
        "labels.csv, line 14: p/red/0-0.png is blau here, but rot on line 1",
    ]
    refused = engram("learn", "m.engram", "labels.csv", *NEW)
    assert refused.code == 2
    assert refused.err.splitlines() == [
        *told,
        "error: 2 rows of labels.csv cannot be used; correct the list, or go on without with --skip-bad",
    ]
    assert not (tmp_path / "m.engram").exists()
    done = engram("learn", "m.engram", "labels.csv", *NEW, "--skip-bad")
    assert done.code == 0
    assert done.err.splitlines()[:2] == told
    assert "knows 2 classes, 2 of them new" in done.err
    assert engram("evaluate", "m.engram", "labels.csv").code == 2
    judged = engram("evaluate", "m.engram", "labels.csv", "--skip-bad", "--json")
    assert (judged.code, judged.json["pictures"], judged.json["accuracy"]) == (0, 12, 1.0)
    assert judged.err.splitlines()[:2] == told
    (tmp_path / "bad.csv").write_text("gone.png,rot\n")
    assert "no row of bad.csv can be used" in engram("learn", "m.engram", "bad.csv", "--skip-bad").err


def test_predicting_into_a_table(engram, pictures, tmp_path):
    engram("learn", "m.engram", "labels.csv", *NEW)
    printed = engram("predict", "m.engram", "p", "--csv")
    assert len(list(csv.DictReader(printed.out.splitlines()))) == 12
    for order in (("p", "--csv", "out.csv"), ("out.csv", "p", "--csv")):
        written = engram("predict", "m.engram", *order)
        assert (written.code, written.out, written.err) == (0, "", "")
        assert (tmp_path / "out.csv").read_text(encoding="utf-8") == printed.out
        (tmp_path / "out.csv").unlink()
    twice = engram("predict", "m.engram", "p", "--csv", "a.csv", "b.csv")
    assert "--csv writes one table, not a.csv and b.csv" in twice.err
    nowhere = engram("predict", "m.engram", "p", "--csv", "no/out.csv")
    assert nowhere.code == 2
    assert nowhere.err == "error: cannot write no/out.csv: No such file or directory\n"
