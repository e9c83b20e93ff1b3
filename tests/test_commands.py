"""The practitioner's commands, as they are typed: results, exit codes, what is said where."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from toys import QUICK, Averages, paint

from engram import cli
from engram.cli import app
from engram.learners.registry import BUILT_IN

NEW = ["--backbone", "averages"]
TRAINED = ["--method", "prototypes", *(t for k, v in QUICK.items() for t in ("--set", f"{k}={json.dumps(v)}"))]


@pytest.fixture(scope="module")
def taught(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("taught")
    paint(folder / "pictures", "red", "green", "blue", n=20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app.console, "quiet", False)  # and as it was before, afterwards
        patch.setattr(sys, "argv", ["engram", "learn", f"{folder}/m.engram", f"{folder}/pictures", *NEW, "--quiet"])
        with pytest.raises(SystemExit, match="0"):
            cli.main()
    return folder


@pytest.fixture
def birds(taught, tmp_path) -> Path:
    """A model of red, green and blue, and the pictures it learned from."""
    return Path(shutil.copytree(taught, tmp_path, dirs_exist_ok=True))


def test_learning_and_learning_more(engram, tmp_path):
    paint(tmp_path / "pictures", "red", "green", "blue", n=20)
    first = engram("learn", "m.engram", "pictures", *NEW, "--json")
    assert first.code == 0, first.err
    assert {one["name"]: one["pictures"] for one in first.json["learned"]} == {"blue": 20, "green": 20, "red": 20}
    assert first.json["bytes"] == (tmp_path / "m.engram").stat().st_size
    assert "base: 3 classes learned from 60 pictures" in first.err

    again = engram("learn", "m.engram", "pictures")
    assert again.code == 1
    assert "nothing new to learn; m.engram knows 3 classes" in again.err

    paint(tmp_path / "pictures", "cyan", "yellow")
    second = engram("learn", "m.engram", "pictures", "--json")
    assert [one["name"] for one in second.json["learned"]] == ["cyan", "yellow"]
    assert second.json["classes"] == 5
    assert "1/2 cyan: learned from 8 pictures" in second.err
    paint(tmp_path / "more", "cyan", seed=3)
    assert "--more takes them): cyan" in engram("learn", "m.engram", "more").err
    assert engram("learn", "m.engram", "more", "--more").code == 0


def test_pictures_that_may_have_the_wrong_name(engram, tmp_path):
    paint(tmp_path / "pictures", "red", "green", n=30)
    for i in range(11):
        (tmp_path / "pictures" / "red" / f"0-{i}.png").rename(tmp_path / "pictures" / "green" / f"odd-{i}.png")
    told = engram("learn", "m.engram", "pictures", *NEW, "--json")
    misfits = told.json["misfits"]
    assert {(one["picture"], one["name"], one["answer"]) for one in misfits} == {
        (f"pictures/green/odd-{i}.png", "green", "red") for i in range(11)
    }
    sure = [one["probability"] for one in misfits]
    assert sure == sorted(sure, reverse=True)
    lines = [line for line in told.err.splitlines() if line.startswith("look again: ")]
    first = misfits[0]
    share = f"{100 * first['probability']:.0f} %"
    assert lines[0] == f"look again: {first['picture']} was taught as green and looks like red ({share})"
    assert len(lines) == 11
    assert lines[-1] == "look again: 1 more, less sure; --json lists them all"


def test_a_small_base_is_only_remarked_on_where_a_network_learns_from_it(engram, tmp_path):
    pytest.importorskip("torch")
    paint(tmp_path / "pictures", "red", "green")
    assert "a small base" not in engram("learn", "m.engram", "pictures", *NEW).err
    assert "a small base" in engram("learn", "t.engram", "pictures", *NEW, *TRAINED).err


METHODS = {
    "slda": (),
    "1nn": (),
    "icarl": ("--set", "base_epochs=3", "--set", "increment_epochs=3"),
    "finetune": ("--set", "base_epochs=3", "--set", "increment_epochs=3"),
}


@pytest.mark.parametrize("method", METHODS)
def test_any_method_learns_is_remembered_and_taken_care_of(engram, tmp_path, method):
    if method not in BUILT_IN or method.startswith(("mas", "si")):
        pytest.importorskip("torch")
    paint(tmp_path / "pictures", "red", "green", "blue")
    asked = ("--backbone", "averages", "--method", method, *METHODS[method])
    first = engram("learn", "m.engram", "pictures", *asked)
    assert first.code == 0, first.err
    paint(tmp_path / "pictures", "cyan")
    second = engram("learn", "m.engram", "pictures")  # the file says how
    assert "1/1 cyan: learned from 8 pictures" in second.err
    assert "m.engram knows 4 classes, 1 of them new" in second.err
    assert (
        "nothing new to learn" in engram("learn", "m.engram", "pictures", *asked).err
    )  # the same options are no error
    about = engram("info", "m.engram", "--json").json
    assert about["method"] == method
    assert all(about["settings"][name] == 3 for name in ("base_epochs", "increment_epochs") if METHODS[method])
    shown = engram("info", "m.engram")
    assert shown.code == 0, shown.err
    assert f"method: {method}" in shown.out
    keeps = method in ("1nn", "icarl")
    assert ("stores feature vectors of training pictures" in shown.out) == keeps
    assert ("no feature vector of a picture" in shown.out) == (not keeps)

    paint(tmp_path / "test", "red", "cyan", n=2, seed=9)
    given = engram("predict", "m.engram", "test", "--json")
    assert given.code == 0, given.err
    assert [one["path"].split("/")[1] for one in given.json] == ["cyan", "cyan", "red", "red"]
    if method != "finetune":  # which forgets: there to be compared with
        assert [one["top"][0]["label"] for one in given.json] == ["cyan", "cyan", "red", "red"]
    assert engram("evaluate", "m.engram", "test", "--json").json["pictures"] == 4
    assert engram("rename", "m.engram", "red", "rot").code == 0
    assert engram("forget", "m.engram", "rot", "--yes").code == 0
    assert "forgot rot" in engram("history", "m.engram").out
    assert [one["name"] for one in engram("info", "m.engram", "--json").json["classes"]] == ["blue", "green", "cyan"]
    assert engram("undo", "m.engram", "--yes").code == 0
    assert engram("doctor", "m.engram").code == 0


def test_bytes_per_class_count_the_samples_that_are_kept(engram, tmp_path):
    paint(tmp_path / "pictures", "red", "green", n=10)
    engram("learn", "m.engram", "pictures", "--backbone", "averages", "--method", "1nn")
    about = engram("info", "m.engram", "--json").json
    assert about["bytes_per_class"] == 10 * (8 * 4 + 8)  # features and whose they are
    assert [one["pictures"] for one in about["classes"]] == [None, None]  # it keeps no count


def test_ctrl_c_is_130_and_keeps_what_is_saved(engram, birds, monkeypatch):
    paint(birds / "pictures", "cyan", "yellow")
    encode, calls = Averages.encode, iter([None])

    def interrupted(self, pictures):
        if next(calls, "yellow") == "yellow":
            raise KeyboardInterrupt
        return encode(self, pictures)

    monkeypatch.setattr(Averages, "encode", interrupted)
    stopped = engram("learn", "m.engram", "pictures")
    assert stopped.code == 130
    assert "1 classes were learned and saved" in stopped.err
    monkeypatch.undo()
    names = [one["name"] for one in engram("info", birds / "m.engram", "--json").json["classes"]]
    assert names == ["blue", "green", "red", "cyan"]


def test_predicting(engram, birds):
    paint(birds / "test", "red", "blue", n=2, seed=9)
    given = engram("predict", "m.engram", "test", "--top", "2", "--json")
    assert given.code == 0
    assert [set(one) for one in given.json] == [
        {"path", "label", "similarity", "probability", "familiarity", "top"}
    ] * 4
    assert [one["label"] for one in given.json] == ["blue", "blue", "red", "red"]
    for one in given.json:
        assert [set(entry) for entry in one["top"]] == [{"label", "similarity", "probability"}] * 2
        assert one["top"][0] == {name: one[name] for name in ("label", "similarity", "probability")}
        assert one["top"][0]["similarity"] >= one["top"][1]["similarity"]
        assert 1 >= one["probability"] > 0.5 > one["top"][1]["probability"] >= 0
    table = list(csv.DictReader(io.StringIO(engram("predict", "m.engram", "test", "--top", "2", "--csv").out)))
    assert [row["label"] for row in table] == ["blue", "blue", "red", "red"]
    for value in ("similarity", "probability"):
        assert [float(row[value]) for row in table] == [one[value] for one in given.json]
        assert [float(row[f"{value}_2"]) for row in table] == [one["top"][1][value] for one in given.json]
    plain = engram("predict", "m.engram", "test/red/9-0.png", "--top", "2")
    shares = [f"{one['label']} {100 * one['probability']:.0f} %" for one in given.json[2]["top"]]
    assert plain.out == f"test/red/9-0.png: red ({', '.join(shares)})\n"
    picture = (birds / "test" / "red" / "9-0.png").read_bytes()
    assert engram("predict", "m.engram", "-", "--json", stdin=picture).json[0]["label"] == "red"
    listed = engram("predict", "m.engram", "--list", "-", "--json", stdin=b"test/red/9-1.png\ntest/blue\n")
    assert [one["path"] for one in listed.json] == ["test/red/9-1.png", "test/blue/9-0.png", "test/blue/9-1.png"]
    odd = engram("predict", "m.engram", "--list", "-", "--json", stdin=b"test/red/9-1.png\n" + b"x" * 300 + b"\n")
    assert [one["label"] for one in odd.json] == ["red"]
    assert odd.err.startswith("cannot read xxx")


def test_only_these_answers(engram, birds):
    paint(birds / "test", "red", n=2, seed=9)
    every = engram("predict", "m.engram", "test", "--json").json
    some = engram("predict", "m.engram", "test", "--among", "green, blue", "--top", "3", "--json").json
    for all_three, two in zip(every, some, strict=True):
        odds = {one["label"]: one["probability"] for one in all_three["top"]}
        scores = {one["label"]: one["similarity"] for one in all_three["top"]}
        assert two["label"] == max(("green", "blue"), key=scores.__getitem__)
        assert {one["label"]: one["similarity"] for one in two["top"]} == {n: scores[n] for n in ("green", "blue")}
        assert sum(one["probability"] for one in two["top"]) == pytest.approx(1, abs=2e-4)
        assert odds["red"] > 0.5
        assert two["familiarity"] == all_three["familiarity"]
    (birds / "names.txt").write_text("blue\n\ndodo\ngreen\nblue\n", encoding="utf-8")
    listed = engram("predict", "m.engram", "test", "--among", "names.txt", "--json")
    assert listed.json == some
    assert listed.err == "not known to the model, so never an answer: dodo\n"
    many = ",".join(["green", "blue", *(f"bird {number}" for number in range(100))])  # longer than any file's name
    assert engram("predict", "m.engram", "test", "--among", many, "--json").json == some
    rows = list(csv.DictReader(io.StringIO(engram("predict", "m.engram", "test", "--among", "red", "--csv").out)))
    assert [list(row) for row in rows] == [
        ["path", "label", "similarity", "probability"]
        + [f"{column}_1" for column in ("label", "similarity", "probability")]
    ] * 2
    none = engram("predict", "m.engram", "test", "--among", "dodo,moa")
    assert (none.code, none.out) == (2, "")
    assert "the model knows none of the classes in --among dodo,moa" in none.err


def test_a_coarser_name_when_unsure(engram, birds):
    paint(birds / "varied", "red", "green", "blue", n=40, spread=40)
    engram("learn", "v.engram", "varied", *NEW)
    (birds / "blends").mkdir()
    for i in range(41):  # from red to green
        Image.new("RGB", (28, 20), (200 - 4 * i, 40 + 4 * i, 30)).save(birds / "blends" / f"{i:02}.png")
    blends = engram("predict", "v.engram", "blends", "--json").json
    between = min(blends, key=lambda one: one["probability"])["path"]
    (birds / "t.csv").write_text("class,parent\nred,warm,colour\ngreen,warm\nblue,cold,colour\n")
    ask = ("predict", "v.engram", between, "blends/00.png", "--json")
    plain = engram(*ask).json
    shares = {one["label"]: one["probability"] for one in plain[0]["top"]}
    assert max(shares.values()) < 0.9 < min(shares["red"] + shares["green"], plain[1]["probability"])
    named = engram(*ask, "--taxonomy", "t.csv", "--sure", "0.9").json
    assert [one["label"] for one in named] == ["warm", "red"]
    assert named[0]["label_probability"] == pytest.approx(shares["red"] + shares["green"], abs=2e-4)
    assert named[0]["top"] == plain[0]["top"]
    assert "label_probability" not in plain[0]
    one = engram("predict", "v.engram", between, "--taxonomy", "t.csv", "--sure", "0.9", "--csv").out
    assert next(csv.DictReader(io.StringIO(one)))["label_probability"] == str(named[0]["label_probability"])
    assert engram(*ask, "--taxonomy", "t.csv", "--among", "red,blue", "--sure", "0.9").json[0]["label"] == "red"
    (birds / "u.csv").write_text("blue,cold\n")
    lost = engram(*ask, "--taxonomy", "u.csv", "--sure", "0.9").json[0]
    assert (lost["label"], "label_probability" in lost) == ("unknown", False)
    refused = engram(*ask, "--taxonomy", "t.csv", "--unknown", "0.9999").json[0]
    assert (refused["label"], "label_probability" in refused) == ("unknown", False)
    assert "--sure belongs to --taxonomy" in engram(*ask, "--sure", "0.5").err
    assert "at most 1, not 7" in engram(*ask, "--taxonomy", "t.csv", "--sure", "7").err


def test_pictures_as_they_come(engram, birds, monkeypatch):
    from engram.store import inbox

    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(inbox.time, "sleep", sleep)
    (paint(birds / "in", "red", n=2, seed=9) / "red" / "bad.png").write_bytes(b"no")
    done = engram("watch", "m.engram", "in", "--every", "0.5")
    assert (done.code, looks) == (0, [0.5, 0.5])
    assert done.out == "in/red/9-0.png: red (red 100 %)\nin/red/9-1.png: red (red 100 %)\n"
    assert done.err.splitlines() == [
        "watching in, answers go to answers.csv; Ctrl-C ends it",
        "cannot read in/red/bad.png: not a picture in any format Pillow knows",
    ]
    assert len((birds / "answers.csv").read_text().splitlines()) == 4
    assert engram("watch", "m.engram", "nowhere").err == "error: nowhere is not a folder\n"
    assert "cannot write no/a.csv: No such file" in engram("watch", "m.engram", "in", "--out", "no/a.csv").err
    assert "--unknown takes auto or" in engram("watch", "m.engram", "in", "--unknown", "x", "--out", "b.csv").err
    assert not (birds / "b.csv").exists()


def test_unknown_by_the_methods_own_rule(engram, birds):
    """`--unknown SHARE` is the share of pictures of known classes that one is ready to lose."""
    noise = np.random.default_rng(0).integers(0, 255, (20, 28, 3), dtype=np.uint8)
    Image.fromarray(noise).save(birds / "noise.png")
    about = engram("info", "m.engram", "--json").json["unknown"]
    assert about["share"] == 0.05
    assert "about 5 % of pictures of known classes are refused" in engram("info", "m.engram").out
    answer = engram("predict", "m.engram", "noise.png", "--unknown", "auto", "--json").json[0]
    assert answer["label"] == "unknown"
    assert answer["familiarity"] < about["below"]
    assert answer["top"][0]["label"] in ("red", "green", "blue")
    # Among colours that vary, known pictures are as familiar as they are many.
    paint(birds / "varied", "red", "green", "blue", n=40, spread=40)
    engram("learn", "v.engram", "varied", *NEW)
    paint(birds / "test", "red", "green", "blue", n=20, seed=9, spread=40)
    lost = []
    for share in ("0.0001", "0.05", "0.5", "0.9999"):
        given = engram("predict", "v.engram", "test", "--unknown", share, "--json").json
        lost.append(np.mean([one["label"] == "unknown" for one in given]))
    assert lost == sorted(lost)
    assert lost[1] < 0.2 < lost[2] < 0.8 < lost[3]
    assert all(one["label"] != "unknown" for one in engram("predict", "v.engram", "test", "--json").json)


def test_a_model_of_one_class_cannot_tell_yet_what_is_unknown(engram, tmp_path):
    paint(tmp_path / "pictures", "red")
    assert engram("learn", "m.engram", "pictures", *NEW).code == 0
    assert engram("predict", "m.engram", "pictures", "--json").json[0]["label"] == "red"
    done = engram("predict", "m.engram", "pictures", "--unknown", "auto")
    assert done.code == 2
    assert "the model cannot tell yet what is unknown; it takes two classes" in done.err
    assert "unknown" not in engram("info", "m.engram").out


@pytest.mark.parametrize("share", ["auto", "0.05"])
def test_a_method_that_is_not_calibrated_calls_nothing_unknown(engram, birds, share):
    assert engram("learn", "n.engram", "pictures", *NEW, "--method", "ncm").code == 0
    assert engram("info", "n.engram", "--json").json["unknown"] is None
    refused = engram("predict", "n.engram", "pictures", "--unknown", share)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "not calibrated" in refused.err


def test_evaluating(engram, birds):
    paint(birds / "test", "red", "blue", n=3, seed=9)
    (birds / "test" / "red").rename(birds / "test" / "green")  # three reds that are called green
    paint(birds / "test", "black", n=1)  # and a class that nobody taught
    (birds / "test" / "blue" / "broken.png").write_bytes(b"no")
    done = engram("evaluate", "m.engram", "test", "--json")
    assert done.code == 0
    assert done.json["pictures"] == 7
    assert done.json["accuracy"] == pytest.approx(3 / 7)
    assert {one["name"]: (one["pictures"], one["right"]) for one in done.json["classes"]} == {
        "blue": (3, 3), "green": (3, 0), "black": (1, 0),
    }  # fmt: skip
    confusion = {(one["class"], one["answer"]): one["pictures"] for one in done.json["confusion"]}
    black = next(answer for truth, answer in confusion if truth == "black")
    assert confusion == {("blue", "blue"): 3, ("green", "red"): 3, ("black", black): 1}
    assert done.json["unknown_to_the_model"] == ["black"]
    assert "broken.png" in done.err
    shown = engram("evaluate", "m.engram", "test")
    assert "42.9% of 7 pictures right" in shown.out
    listed = [line for line in shown.out.splitlines() if ", taken for " in line]
    assert sorted(line.split(":")[0] for line in listed) == sorted(one["path"] for one in done.json["wrong"])
    assert len(listed) == 4


def test_the_surest_mistakes_are_listed_and_json_has_all(engram, birds):
    paint(birds / "test", "red", n=22, seed=9)
    (birds / "test" / "red").rename(birds / "test" / "green")
    wrong = engram("evaluate", "m.engram", "test", "--json").json["wrong"]
    assert len(wrong) == 22
    shown = engram("evaluate", "m.engram", "test").out
    surest = sorted(wrong, key=lambda one: -one["probability"])
    assert [one["path"] in shown for one in surest] == 20 * [True] + 2 * [False]


def test_taking_care_of_a_model(engram, birds):
    about = engram("info", "m.engram", "--json").json
    assert [one["name"] for one in about["classes"]] == ["blue", "green", "red"]
    assert "no picture" in about["not_stored"]
    assert about["accuracy"] == 1.0
    assert [(one["right"], one["taken_for"]) for one in about["classes"]] == [(1.0, {})] * 3
    shown = engram("info", "m.engram").out
    for text in ("red", "20", "base", "20 bytes", "averages@16", "none kept", "check_learner", "as if it had not been"):
        assert text in shown, text
    assert engram("rename", "m.engram", "red", "rot", "--json").json == {"old": "red", "new": "rot"}
    assert engram("rename", "m.engram", "rot", "rot").code == 1
    asked = engram("forget", "m.engram", "rot")
    assert asked.code == 2
    assert "no terminal to ask on; give --yes" in asked.err
    assert engram("forget", "m.engram", "rot", "--yes", "--json").json == {"forgotten": "rot", "versions_kept": 2}
    assert engram("forget", "m.engram", "rot", "--yes").code == 2
    what = [event["what"] for event in engram("history", "m.engram", "--json").json]
    assert what == ["base", "rename", "forget"]
    assert "renamed red to rot" in engram("history", "m.engram").out
    undone = engram("undo", "m.engram", "--yes", "--json").json
    assert (undone["undone"]["what"], undone["classes"]) == ("forget", ["blue", "green", "rot"])
    redone = engram("redo", "m.engram", "--json").json
    assert (redone["redone"]["what"], redone["classes"]) == ("forget", ["blue", "green"])
    assert engram("redo", "m.engram").code == 1
    assert engram("undo", "m.engram", "--yes").code == 0
    assert engram("undo", "m.engram", "--yes").code == 0
    nothing = engram("undo", "m.engram", "--yes")
    assert nothing.code == 1
    assert "nothing to go back to" in nothing.err


def test_a_card_is_printed(engram, birds):
    done = engram("card", "m.engram")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("---\nlibrary_name: engram\n")
    assert done.out.endswith("FOLDER`.\n")


def test_on_a_terminal_it_asks_first(engram, birds):
    before = (birds / "m.engram").read_bytes()
    refused = engram("forget", "m.engram", "red", stdin=b"n\n", terminal=True)
    assert refused.code == 1
    assert "Forget red?" in refused.err
    assert "stopped; nothing was changed" in refused.err
    assert (birds / "m.engram").read_bytes() == before
    assert engram("forget", "m.engram", "red", stdin=b"y\n", terminal=True).code == 0
    assert engram("undo", "m.engram", stdin=b"y\n", terminal=True).code == 0
    assert (birds / "m.engram").read_bytes() == before


def test_the_doctor_names_the_tensor_with_the_flipped_bit(engram, birds):
    healthy = engram("doctor", "m.engram", "--json")
    assert (healthy.code, healthy.json["whole"], healthy.json["classes"]) == (0, True, 3)
    content = bytearray((birds / "m.engram").read_bytes())
    size = int.from_bytes(content[:8], "little")
    where = json.loads(content[8 : 8 + size])["classes.means"]["data_offsets"][0]
    content[8 + size + where + 5] ^= 4
    (birds / "m.engram").write_bytes(bytes(content))
    for command in (
        ["doctor"],
        ["info"],
        ["history"],
        ["predict", "pictures"],
        ["learn", "pictures"],
        ["undo", "--yes"],
    ):
        found = engram(command[0], "m.engram", *command[1:])
        assert found.code == (1 if command[0] == "undo" else 3), command
        assert "Traceback" not in found.err
        if command[0] != "undo":
            assert "tensor classes.means does not match its checksum" in found.err
            assert len(found.err.strip().splitlines()) == 1


def test_the_doctor_looks_at_the_machine(engram):
    found = engram("doctor", "--json")
    assert found.code == 0
    assert found.json["packages"]["onnxruntime"]
    assert found.json["backbone"].startswith("efficientnet_lite0:joined@224:sha256-")
    assert found.json["self_test"]["right"] == "100%"
    assert "self test: right 100%" in engram("doctor").out


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("learn m.engram nowhere", 2, "nowhere is not a folder"),
        ("learn m.engram empty", 2, "expected one folder of pictures per class"),
        ("learn no/m.engram pictures", 2, "is not a folder; make it first"),
        ("learn new.engram pictures --backbone vgg99", 2, "no encoder is called 'vgg99'"),
        (
            "learn new.engram pictures --method prototypes --set epochs=3",
            2,
            "prototypes has no setting 'epochs'; it has layers",
        ),
        ("learn new.engram pictures --method magic", 2, "no method is called 'magic'; there are"),
        (
            "learn m.engram new --method slda",
            2,
            "the model was made with method whitened, and that cannot be changed",
        ),
        ("learn m.engram new --set kept_bits=32", 2, "was made with kept_bits 16, and that cannot be changed to 32"),
        ("learn m.engram new --set epochs=7", 2, "whitened has no setting 'epochs'"),
        ("learn m.engram new --backbone efficientnet_lite0", 2, "was made with backbone averages, and that cannot be"),
        ("predict m.engram", 1, "no pictures found"),
        ("predict m.engram empty", 1, "no pictures found"),
        ("predict m.engram nothing.png", 2, "cannot read nothing.png: No such file"),
        ("predict m.engram pictures --json --csv", 2, "choose one of --json and --csv"),
        ("predict m.engram pictures --unknown maybe", 2, "takes auto or the share of known pictures to lose, between"),
        ("predict m.engram pictures --unknown 1.5", 2, "between 0 and 1, not '1.5'"),
        ("predict m.engram pictures --unknown nan", 2, "between 0 and 1, not 'nan'"),
        ("predict m.engram pictures --device warp", 2, "error: unknown device 'warp'"),
        ("predict m.engram pictures --top 0", 2, "see engram predict --help"),
        ("predict nowhere.engram pictures", 2, "cannot read nowhere.engram: No such file"),
        ("predict pictures/red/0-0.png pictures", 3, "damaged or not an engram model"),
        ("evaluate m.engram empty", 2, "holds no folders"),
        ("forget m.engram nobody --yes", 2, "knows no class 'nobody'; it knows blue, green, red"),
        ("rename m.engram red blue", 2, "a class of that name exists"),
        ("info", 2, "Missing argument"),
        ("inform m.engram", 2, "No such command 'inform'"),
        ("export m.engram m.txt", 2, "must end in .onnx"),
        ("export m.engram no/m.onnx", 2, "is not a folder; make it first"),
    ],
)
def test_what_cannot_be_done_is_one_line_an_exit_code_and_no_change(engram, birds, command, code, message):
    (birds / "empty").mkdir()
    paint(birds / "new", "cyan")
    before = {path: path.read_bytes() for path in birds.rglob("*") if path.is_file()}
    if "prototypes" in command:
        pytest.importorskip("torch")
    done = engram(*command.split())
    assert done.code == code
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert {path: path.read_bytes() for path in birds.rglob("*") if path.is_file()} == before


def test_debug_shows_the_traceback(engram, birds):
    done = engram("forget", "m.engram", "nobody", "--yes", "--debug")
    assert done.code == 2
    assert "Traceback" in done.err
    assert done.err.strip().splitlines()[-1].startswith("error: ")


def test_quiet_says_nothing_but_the_result_and_errors(engram, birds):
    paint(birds / "pictures", "cyan")
    learned = engram("learn", "m.engram", "pictures", "-q")
    assert (learned.code, learned.out, learned.err) == (0, "", "")
    assert engram("predict", "m.engram", "pictures/red/0-0.png", "--quiet").out.startswith("pictures/red/0-0.png: red")
    missing = engram("predict", "m.engram", "nowhere.png", "--quiet")
    assert (missing.code, missing.out) == (2, "")
    assert "cannot read nowhere.png" in missing.err
    assert "error" in engram("forget", "m.engram", "nobody", "--yes", "--quiet").err


def test_every_command_has_help_with_an_example(engram):
    for name in ("learn", "predict", "evaluate", "export", "info", "history", "forget", "rename", "undo", "doctor"):
        page = engram(name, "--help")
        assert page.code == 0
        assert f"engram {name}" in page.out.split("Example")[1], name
        for option in ("--json", "--quiet", "--debug"):
            assert option in page.out, (name, option)
    assert "Exit codes: 0 done, 1 nothing to do or found, 2 bad input, 3 damaged model." in engram("--help").out


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_bar_on_the_terminal_leaves_the_result_alone(birds):
    """Rich sends what is printed while a bar is shown to the bar's terminal, if it is let."""
    import pty

    ours, terminal = pty.openpty()
    toys = Path(__file__).parent
    script = f"import sys; sys.path.append({str(toys)!r}); import toys; from engram.cli import main; main()"
    run = [sys.executable, "-c", script, "predict", "m.engram", "pictures", "--csv"]
    done = subprocess.run(run, cwd=birds, stdout=subprocess.PIPE, stderr=terminal, text=True)
    os.close(terminal)
    assert len(done.stdout.splitlines()) == 61
    assert b"60/60" in os.read(ours, 1 << 20)
    os.close(ours)


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    run = [sys.executable, "-c", "import sys; sys.argv[0] = 'engram'; from engram.cli import main; main()", *arguments]
    return subprocess.run(run, capture_output=True, text=True, env={**os.environ, **environment})


def test_no_color():
    colour = re.compile(r"\x1b\[[0-9;]*3[0-9]")
    environment = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    assert colour.search(command("learn", **environment).stderr)
    assert not colour.search(command("learn", NO_COLOR="1", **environment).stderr)


def test_shells_can_complete_commands():
    done = command(_ENGRAM_COMPLETE="complete_bash", COMP_WORDS="engram le", COMP_CWORD="1")
    assert done.stdout.split() == ["learn"]
