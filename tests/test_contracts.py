"""What the commands promise whoever names classes and folders, and whatever they write to."""

import io
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from toys import paint

from engram.cli import app
from engram.datasets.dataset import image_folder
from engram.datasets.folders import class_folders
from engram.model import Model
from engram.names import fault_of_name, require_name
from engram.store.evaluate import Evaluation
from engram.testing import blobs

NEW = ["--backbone", "averages"]
NO_NAME = r"printable characters|a class cannot be called 'unknown'"


@pytest.mark.parametrize(
    ("method", "setting"),
    [("mas", "layers=16"), ("mas", "base_epochs=2.5"), ("mas", "lambda_cos=inf"), ("slda", "shrinkage=2")],
)
def test_an_impossible_setting_is_one_line_before_any_picture_is_looked_at(method, setting, engram, tmp_path):
    paint(tmp_path / "pictures", "red", "green")
    (tmp_path / "pictures" / "red" / "broken.png").write_bytes(b"")  # which would be told
    if method == "mas":
        pytest.importorskip("torch")
    done = engram("learn", "m.engram", "pictures", *NEW, "--method", method, "--set", setting)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert setting.partition("=")[0] in done.err
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


def with_name(name: str, *labels: str) -> Model:
    """A model whose last class is called so, as a file of before may have it."""
    model = Model.new("ncm").learn(*blobs(labels))[0]
    return replace(model, learner=model.learner.rename(labels[-1], name))


@pytest.mark.parametrize("name", ["unknown", " UNKNOWN ", "", " ", "a\nb", "a\x1b[1m", "\u202eabc"])
def test_python_takes_no_name_either_that_cannot_be_shown_or_asked_for(name):
    (X, y), model = blobs("ab"), Model.new("ncm").learn(*blobs("ab"))[0]
    older = with_name(name, "a", "b").learn(X[:2], [name, "c"])[0]
    for attempt in (
        lambda: Model.new("ncm").learn(X, [name if label == "b" else label for label in y]),
        lambda: model.learn(X[:2], [name, "c"]),
        lambda: model.rename("a", name),
        lambda: older.merge(model),
        lambda: model.merge(older),
    ):
        with pytest.raises(ValueError, match=NO_NAME):
            attempt()
    assert sorted(model.merge(older.rename(name, "d")).labels) == ["a", "b", "c", "d"]


def test_numbers_are_always_names():
    X, y = blobs("ab")
    assert Model.new("ncm").learn(X, [-1 if label == "a" else 0 for label in y])[0].labels == [-1, 0]


def test_merging_models_names_the_one_with_a_name_that_is_none(engram, tmp_path):
    Model.new("ncm").learn(*blobs("ab"))[0].save(tmp_path / "a.engram")
    with_name("unknown", "a", "c").save(tmp_path / "b.engram")
    done = engram("merge", "out.engram", "a.engram", "b.engram")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "b.engram" in done.err
    assert "'unknown'" in done.err
    assert not (tmp_path / "out.engram").exists()


def test_what_an_encoding_does_not_have_is_replaced():
    out = io.TextIOWrapper(io.BytesIO(), encoding="cp1252", errors="engram")
    out.write("Ψ_all of \udcff.png: é, 鳥")
    out.flush()
    assert out.buffer.getvalue() == b"?_all of \xff.png: \xe9, ?"
    assert app.printable("a\x1b[1m\x9b\u202eb\nc 👩‍🔬") == "a\\x1b[1m\\x9b\\u202eb\nc 👩‍🔬"


def test_a_stream_that_is_not_utf_8_ends_no_command(tmp_path):
    command = [sys.executable, "-c", "from engram.cli import main; main()", "info", "鳥.engram"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": ":".join(sys.path)}
    )
    assert done.returncode == 2
    assert done.stderr.startswith(b"error: cannot read ?.engram")


@pytest.mark.parametrize(("before", "after"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_a_commands_threads_do_not_spin_away_each_others_time(before, after):
    code = "import os, sys; import engram.cli; print(os.environ['OMP_WAIT_POLICY'], 'torch' in sys.modules)"
    environment = {"PYTHONPATH": ":".join(sys.path), **({"OMP_WAIT_POLICY": before} if before else {})}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.stdout == f"{after} False\n", done.stderr


def test_an_evaluation_grows_with_what_came_up_not_with_pairs_of_classes():
    from collections import Counter

    names = [f"c{i}" for i in range(4_000)]
    counts = Counter({(name, name): 2 for name in names} | {("c1", "c2"): 1, ("c1", "c3"): 1})
    result = Evaluation(names, counts, [], [], [])
    assert (result.pictures, result.accuracy) == (8_002, 8_000 / 8_002)
    assert result.per_class()[1] == ("c1", 4, 2, "c2")
    assert result.per_class()[2] == ("c2", 2, 2, "")
    text = json.dumps(result.as_json())
    assert len(text) < 1_000_000
    assert {"class": "c1", "answer": "c2", "pictures": 1} in json.loads(text)["confusion"]


def test_json_is_json(engram, monkeypatch):
    with pytest.raises(ValueError, match="not JSON compliant"):
        app.print_json({"accuracy": np.nan})
