"""What the commands promise whoever names classes and folders, and whatever they write to."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from toys import paint

from engram import IncrementalClassifier
from engram.cli import app
from engram.datasets import class_folders, image_folder
from engram.names import fault_of_name, require_name
from engram.store.evaluate import Evaluation
from engram.testing import blobs

NEW = ["--backbone", "averages"]
NO_NAME = r"printable characters|a class cannot be called 'unknown'"


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("layers=16", r"layers must be whole numbers in brackets, as [64, 32], not 16"),
        ("base_epochs=2.5", "base_epochs must be a whole number, not 2.5"),
        ("batch_size=0.5", "batch_size must be a whole number, not 0.5"),
        ("lambda_cos=inf", "lambda_cos must be a number, not inf"),
    ],
)
def test_an_impossible_setting_is_one_line_before_any_picture_is_looked_at(setting, why, engram, tmp_path, monkeypatch):
    paint(tmp_path / "pictures", "red", "green")
    monkeypatch.setattr("engram.store.learn.extract", lambda *_, **__: pytest.fail("a picture was looked at"))
    done = engram("learn", "m.engram", "pictures", *NEW, "--method", "mas", "--set", setting)
    assert (done.code, done.err.strip()) == (2, f"error: {why}")
    assert not (tmp_path / "m.engram").exists()


def test_a_class_called_train_or_test_is_a_class_beside_others(tmp_path):
    paint(tmp_path / "veh", "red", "green", "blue")
    (tmp_path / "veh" / "red").rename(tmp_path / "veh" / "train")
    (tmp_path / "veh" / "blue").rename(tmp_path / "veh" / "test")
    assert list(class_folders(tmp_path / "veh")) == ["green", "test", "train"]
    assert image_folder(tmp_path / "veh").classes == ["green", "test", "train"]
    (tmp_path / "veh" / "train" / "steam").mkdir()  # deeper inside, as pictures of a class may be
    for picture in (tmp_path / "veh" / "train").glob("*.png"):
        picture.rename(tmp_path / "veh" / "train" / "steam" / picture.name)
    assert list(class_folders(tmp_path / "veh")) == ["green", "test", "train"]


def test_two_classes_called_train_and_test(tmp_path):
    paint(tmp_path, "red", "green")
    (tmp_path / "red").rename(tmp_path / "train")
    (tmp_path / "green").rename(tmp_path / "test")
    assert image_folder(tmp_path).classes == ["test", "train"]


def test_a_split_folder_is_one_whatever_else_lies_beside(tmp_path):
    for part in ("train", "test", "val"):
        paint(tmp_path / part, "red", "green")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "readme.txt").write_text("")
    assert list(class_folders(tmp_path)) == ["green", "red"]
    assert len(image_folder(tmp_path).test.images) == len(image_folder(tmp_path).train.images)


@pytest.mark.parametrize("name", ["", " ", "unknown", "Unknown ", "ａ\x1b[31m", "a\nb", "a\u202eb"])
def test_names_a_class_cannot_have(name):
    with pytest.raises(ValueError, match="class"):
        require_name(name)


@pytest.mark.parametrize("name", ["wren", "Wren 2", "👩‍🔬", "نیم‌فاصله", "unknown bird"])
def test_names_a_class_can_have(name):
    assert fault_of_name(name) is None
    require_name(name)


def test_such_folders_are_passed_over_and_named_without_obeying_them(engram, tmp_path):
    paint(tmp_path / "pictures", "red", "green", "blue", "cyan")
    (tmp_path / "pictures" / "blue").rename(tmp_path / "pictures" / "unknown")
    (tmp_path / "pictures" / "cyan").rename(tmp_path / "pictures" / "\x1b[2Jcyan")
    done = engram("learn", "m.engram", "pictures", *NEW, "--json")
    assert (done.code, done.json["classes"]) == (0, 2)
    assert [one["name"] for one in done.json["skipped"]] == ["\x1b[2Jcyan", "unknown"]
    assert "not learned: \\x1b[2Jcyan: the name of a class has printable" in done.err
    assert "not learned: unknown: a class cannot be called 'unknown'" in done.err
    assert "\x1b" not in done.err
    renamed = engram("rename", "m.engram", "red", "unknown")
    assert renamed.code == 2
    assert "cannot be called 'unknown'" in renamed.err
    only = engram("learn", "n.engram", "pictures/unknown/..", *NEW, "--statistics")
    assert (only.code, (tmp_path / "n.engram").exists()) == (2, False)


def test_a_folder_of_such_names_alone_is_an_error(engram, tmp_path):
    paint(tmp_path / "pictures", "red")
    (tmp_path / "pictures" / "red").rename(tmp_path / "pictures" / "unknown")
    done = engram("learn", "m.engram", "pictures", *NEW)
    assert done.code == 2
    assert "'unknown': a class cannot be called 'unknown'" in done.err


@pytest.mark.parametrize("name", ["unknown", " UNKNOWN ", "", " ", "a\nb", "a\x1b[1m", "\u202eabc"])
def test_python_takes_no_name_either_that_cannot_be_shown_or_asked_for(name, tmp_path):
    X, y = blobs(["a", "b"])
    clf = IncrementalClassifier("ncm", device="cpu").fit(X, y)
    for attempt in (
        lambda: IncrementalClassifier("ncm", device="cpu").fit(X, [name if label == "b" else label for label in y]),
        lambda: clf.partial_fit(X[:2], [name, "c"]),
        lambda: clf.rename("a", name),
    ):
        with pytest.raises(ValueError, match=NO_NAME):
            attempt()
    assert clf.classes_.tolist() == ["a", "b"]

    older = IncrementalClassifier("ncm", device="cpu").fit(X, y)
    older.learner_.rename("b", name)  # as a file of before may have it
    older.save(tmp_path / "m")
    older = IncrementalClassifier.load(tmp_path / "m", device="cpu")
    older.partial_fit(X[:2], [name, "c"])
    for one, other in ((older, clf), (clf, older)):
        with pytest.raises(ValueError, match=NO_NAME):
            one.merge(other)
    with pytest.raises(ValueError, match=NO_NAME):
        clf.absorb(older.learner_)
    assert clf.merge(older.rename(name, "d")).classes_.tolist() == ["a", "b", "c", "d"]


def test_numbers_are_always_names():
    X, y = blobs(["a", "b"])
    numbers = [-1 if label == "a" else 0 for label in y]
    assert IncrementalClassifier("ncm", device="cpu").fit(X, numbers).classes_.tolist() == [-1, 0]


def test_merging_models_names_the_one_with_a_name_that_is_none(engram, tmp_path):
    for file, names in (("a.engram", ["a", "b"]), ("b.engram", ["a", "c"])):
        clf = IncrementalClassifier("ncm", device="cpu").fit(*blobs(names))
        if file == "b.engram":
            clf.learner_.rename("c", "unknown")
        clf.save(tmp_path / file)
    done = engram("merge", "out.engram", "a.engram", "b.engram")
    assert (done.code, done.err) == (
        2,
        "error: b.engram has a class 'unknown': a class cannot be called 'unknown': that is what pictures of no class "
        "are called; rename it there first\n",
    )
    assert not (tmp_path / "out.engram").exists()


def test_what_an_encoding_does_not_have_is_replaced():
    out = io.TextIOWrapper(io.BytesIO(), encoding="cp1252", errors="engram")
    out.write("Ψ_all of \udcff.png: é, 鳥")
    out.flush()
    assert out.buffer.getvalue() == b"?_all of \xff.png: \xe9, ?"
    assert app.printable("a\x1b[1m\x9b\u202eb\nc 👩‍🔬") == "a\\x1b[1m\\x9b\\u202eb\nc 👩‍🔬"


def test_a_stream_that_is_not_utf_8_ends_no_command(tmp_path):
    command = [sys.executable, "-c", "from engram.cli import main; main()", "methods"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)}
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("before", "after"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_a_commands_threads_do_not_spin_away_each_others_time(before, after):
    code = "import os, sys; import engram.cli; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(sys.path), **({"OMP_WAIT_POLICY": before} if before else {})}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout == f"{after} False\n", done.stderr


def test_an_evaluation_grows_with_what_came_up_not_with_pairs_of_classes():
    from collections import Counter

    names = [f"c{i}" for i in range(20_000)]
    counts = Counter({(name, name): 2 for name in names} | {("c1", "c2"): 1, ("c1", "c3"): 1})
    result = Evaluation(names, counts, [], [], [])
    assert (result.pictures, result.accuracy) == (40_002, 40_000 / 40_002)
    assert result.per_class()[1] == ("c1", 4, 2, "c2")
    assert result.per_class()[2] == ("c2", 2, 2, "")
    text = json.dumps(result.as_json())
    assert len(text) < 5_000_000
    assert {"class": "c1", "answer": "c2", "pictures": 1} in json.loads(text)["confusion"]


def test_without_matplotlib_all_but_the_picture(engram, tmp_path, monkeypatch):
    from engram.bench import demo, drawing

    row = dict.fromkeys(("psi_base", "psi_new", "psi_all", "seconds"), 0.5)

    class Found:
        alpha_ideal = 0.9

        def as_json(self):
            return {"rows": [{"method": "whitened", **row}]}

    monkeypatch.setattr(demo, "demonstrate", lambda **_: Found())
    monkeypatch.setattr(drawing, "can_draw", lambda: False)
    done = engram("demo", "--json", "numbers.json")
    assert done.code == 0, done.err
    assert "whitened" in done.out
    assert json.loads((tmp_path / "numbers.json").read_text())["rows"][0]["psi_all"] == 0.5
    assert "no picture was drawn: that needs matplotlib" in done.err
    assert not (tmp_path / "engram-demo.png").exists()


def test_json_is_json(engram, monkeypatch):
    with pytest.raises(ValueError, match="not JSON compliant"):
        app.print_json({"accuracy": np.nan})
