"""Learning from folders: what is learned, what is saved when, what is unknown."""

import json
from pathlib import Path

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from PIL import Image
from toys import COLOURS, averages, paint, quick_plan

from engram.datasets.folders import class_folders
from engram.encoders import registry
from engram.encoders.recorded import RecordedEncoder
from engram.files import model_file
from engram.images.stream import encode_all
from engram.learners.trying import assert_same_state
from engram.store import ImageBytes, Model, ModelStore, Plan, Step, learn_classes, unknown_threshold
from engram.store.recognition import fingerprint


def features(paths: list[Path]) -> np.ndarray:
    return encode_all(paths, averages()).features


def test_a_new_model_learns_all_classes_at_once(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", n=20))
    place, steps = ModelStore(tmp_path / "m.engram", device="cpu"), []
    report = learn_classes(place, folders, quick_plan(), steps.append)
    assert [(one.name, one.pictures, one.increment) for one in report.learned] == [
        ("blue", 20, 0), ("green", 20, 0), ("red", 20, 0),
    ]  # fmt: skip
    model = place.read()
    assert model.names == ["blue", "green", "red"]
    assert list(model.pictures().values()) == [20, 20, 20]
    assert [(s.done, s.total) for s in steps if s.stage == "look"][-1] == (60, 60)
    assert steps[-1].stage == "saved"
    same, _ = Model.new().learn(
        features([p for paths in folders.values() for p in paths]), np.repeat(list(folders), 20)
    )
    assert_same_state(same.learner.state(), model.learner.state())


def test_a_method_that_trains_tells_how_far_it_is(trained, tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", n=20))
    place, steps = ModelStore(tmp_path / "m.engram", device="cpu"), []
    learn_classes(place, folders, quick_plan(**trained), steps.append)
    assert [s.stage for s in steps][-2:] == ["train", "saved"]
    assert [s.done for s in steps if s.stage == "train"] == list(range(1, steps[-2].total + 1))
    again = learn_classes(ModelStore(place.path), folders, quick_plan(**trained))  # asked for what it was made with
    assert sorted(again.known) == ["blue", "green", "red"]
    new = ModelStore(tmp_path / "new")
    with pytest.raises(ValueError, match="at least two classes, and found 1"):
        learn_classes(new, {"cyan": [], "red": folders["red"]}, quick_plan(**trained))
    assert not new.exists()


def test_what_is_unknown_follows_what_is_learned(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", "cyan", n=20))
    place, plan = ModelStore(tmp_path / "m.engram", device="cpu"), quick_plan()
    learn_classes(place, {name: folders[name] for name in ("red", "green")}, plan)
    first = place.read()
    strange = features(sorted(paint(tmp_path / "s", "white", n=5).rglob("*.png")))
    blues = features(folders["blue"])
    for values in (strange, blues):
        assert (first.answer(values).novelty > first.unknown_above()).all()
    learn_classes(place, {"blue": folders["blue"]}, plan)
    second = place.read()
    assert second.unknown_above() == second.unknown_above(0.05) > second.unknown_above(0.5)
    assert (second.answer(blues).novelty < second.unknown_above()).mean() > 0.8  # a known class now
    assert (second.answer(strange).novelty > second.unknown_above()).all()
    assert place.info()["unknown"] == {"below": -second.unknown_above(), "share": 0.05}
    place.refuse(0.25)
    third = place.read()
    assert third.unknown_above() == second.unknown_above(0.25) == -place.info()["unknown"]["below"]
    assert (place.info()["unknown"]["share"], third.notes.history[-1].share) == (0.25, 0.25)
    assert place.undo().what == "refuse"
    assert place.read().unknown_above() == second.unknown_above()
    for share in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="lies between 0 and 1"):
            place.refuse(share)


def test_a_method_without_a_rule_has_no_unknown(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", n=8))
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    learn_classes(place, folders, quick_plan(method="ncm"))
    model = place.read()
    assert (model.unknown_above(), place.info()["unknown"]) == (None, None)
    for wanted in ("auto", "0.9"):
        with pytest.raises(ValueError, match="ncm is not calibrated"):
            unknown_threshold(model, wanted)


def test_one_class_is_enough_to_begin_with_where_nothing_is_trained(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", n=10))
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    assert [one.name for one in learn_classes(place, {"red": folders["red"]}, quick_plan()).learned] == ["red"]
    assert place.read().unknown_above() is None  # nothing to compare with yet
    assert place.info()["unknown"] is None
    report = learn_classes(place, folders, quick_plan())
    assert report.names == ["red", "green"]


def test_pictures_with_a_wrong_label_are_named_once_they_are_learned(tmp_path):
    """By what the other pictures say; nothing about them is in the file."""
    root = paint(tmp_path / "p", "red", "green", "blue", n=12)
    for wrong, shown in (("green", "red"), ("red", "blue")):
        rng = np.random.default_rng(9)
        noise = rng.integers(-25, 25, (20, 28, 3))
        pixels = np.clip(np.array(COLOURS[shown]) + noise, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(root / wrong / "odd.png")
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    report = learn_classes(place, class_folders(root), quick_plan())
    assert {(one.picture, one.name, one.answer) for one in report.misfits} == {
        (str(root / "green" / "odd.png"), "green", "red"), (str(root / "red" / "odd.png"), "red", "blue"),
    }  # fmt: skip
    sure = [one.probability for one in report.misfits]
    assert 1 >= sure[0] >= sure[1] > 0.5
    assert b"odd.png" not in place.path.read_bytes()
    # Of a class learned later, too; a class of one picture is nothing without it.
    (tmp_path / "later" / "cyan").mkdir(parents=True)
    (root / "green" / "odd.png").rename(paint(tmp_path / "later", "cyan") / "cyan" / "a red one.png")
    (tmp_path / "later" / "alone").mkdir()
    (root / "red" / "odd.png").rename(tmp_path / "later" / "alone" / "a.png")
    report = learn_classes(place, class_folders(tmp_path / "later"), quick_plan())
    assert [(one.picture, one.answer) for one in report.misfits] == [
        (str(tmp_path / "later" / "cyan" / "a red one.png"), "red")
    ]


def test_later_classes_come_one_by_one_each_saved_before_the_next(place, tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "yellow", "violet", "cyan"))
    known, kept = [], []

    def tell(step: Step) -> None:
        if step.stage == "saved":
            known.append(ModelStore(place.path).read().names[3:])
            kept.append(place.versions.numbers())

    report = learn_classes(place, folders, quick_plan(), tell)
    assert known == [["cyan"], ["cyan", "violet"], ["cyan", "violet", "yellow"]]
    assert kept == [[1], [1, 2], [1, 2, 3]]
    assert [one.increment for one in report.learned] == [1, 2, 3]
    assert report.changed == ["red"]  # other pictures of it than were learned
    assert learn_classes(place, folders, quick_plan()).learned == []
    # The same three tasks, and nothing else.
    model = Model.load(place.versions.path(1))
    for name in ("cyan", "violet", "yellow"):
        model, _ = model.learn(features(folders[name]), [name] * len(folders[name]))
    assert_same_state(model.learner.state(), place.read().learner.state())


def test_the_encoder_is_made_once_and_the_model_read_once(tmp_path, monkeypatch):
    built, read = [], []
    monkeypatch.setitem(registry._MAKERS, "averages", lambda *asked: (built.append(1), averages())[1])
    real = model_file.read
    monkeypatch.setattr(model_file, "read", lambda path: (read.append(Path(path).name), real(path))[1])
    place, root = ModelStore(tmp_path / "m.engram", device="cpu"), paint(tmp_path / "p", "red", "green")
    learn_classes(place, class_folders(root), quick_plan())
    assert (len(built), read.count("m.engram")) == (1, 0)
    learn_classes(place, class_folders(paint(root, "blue", "cyan")), quick_plan())
    assert (len(built), read.count("m.engram")) == (1, 0)  # nobody else has changed it
    report = learn_classes(ModelStore(place.path), class_folders(paint(root, "white", "black")), quick_plan())
    assert report.names == ["green", "red", "blue", "cyan", "black", "white"]
    assert (len(built), read.count("m.engram")) == (2, 1)


def test_a_model_goes_on_with_the_encoder_that_is_open_if_it_is_the_same(place):
    def known(encoder: FakeEncoder) -> Model:
        return Model.new(encoder=RecordedEncoder.of(encoder))

    same, other = averages(), FakeEncoder()
    assert ModelStore(place.path).read(known(same)).open_encoder() is same
    assert ModelStore(place.path).read(known(other)).open_encoder().identity == same.identity


def test_what_another_process_learns_meanwhile_stays_learned_and_is_not_learned_twice(place, tmp_path):
    folders = class_folders(paint(tmp_path / "p", "cyan", "white", "yellow"))
    met = []

    def meanwhile(step: Step) -> None:
        if step.stage == "look" and not met:  # before the model is locked
            met.append(step)
            learn_classes(ModelStore(place.path), {name: folders[name] for name in ("cyan", "white")}, quick_plan())

    report = learn_classes(place, {name: folders[name] for name in ("cyan", "yellow")}, quick_plan(), meanwhile)
    assert ([one.name for one in report.learned], report.known) == (["yellow"], ["cyan"])
    known = {"blue": 20, "green": 20, "red": 20, "cyan": 8, "white": 8, "yellow": 8}
    assert ModelStore(place.path).read().pictures() == known


def test_pictures_that_another_process_learns_meanwhile_do_not_count_twice(place, tmp_path):
    folders = class_folders(paint(tmp_path / "p", "cyan", "white"))
    met = []

    def meanwhile(step: Step) -> None:
        if step.stage == "look" and not met:
            met.append(step)
            learn_classes(ModelStore(place.path), {"cyan": folders["cyan"]}, quick_plan(more=True))

    report = learn_classes(place, folders, quick_plan(more=True, all_or_nothing=True), meanwhile)
    assert ([one.name for one in report.learned], report.known) == (["white"], ["cyan"])
    assert ModelStore(place.path).read().pictures() == {"blue": 20, "green": 20, "red": 20, "cyan": 8, "white": 8}


def test_a_model_that_gets_another_encoder_meanwhile_learns_nothing_of_the_first(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "cyan", "white"))
    path, met = tmp_path / "m.engram", []

    def meanwhile(step: Step) -> None:
        if step.stage == "look" and not met:
            met.append(step)
            learn_classes(ModelStore(path), folders, Plan(backbone="efficientnet_lite0"))

    with pytest.raises(ValueError, match="encoder"):
        learn_classes(ModelStore(path), folders, Plan(), meanwhile)
    assert ModelStore(path).read().pictures() == {"cyan": 8, "white": 8}


def test_an_interruption_keeps_what_was_saved(place, tmp_path):
    folders = class_folders(paint(tmp_path / "p", "yellow", "violet", "cyan"))

    def stop(step: Step) -> None:
        if (step.name, step.stage) == ("violet", "look"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learn_classes(place, folders, quick_plan(), stop)
    assert place.read().names == ["blue", "green", "red", "cyan"]
    assert {path.name for path in tmp_path.iterdir()} == {"m.engram", "m.engram.versions", "p"}
    assert [one.name for one in learn_classes(place, folders, quick_plan()).learned] == ["violet", "yellow"]


def test_more_pictures_of_known_classes_only_when_asked_and_only_once(place, tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", n=10, seed=7))
    assert learn_classes(place, folders, quick_plan()).changed == ["red"]
    report = learn_classes(place, folders, quick_plan(more=True))
    assert [(one.name, one.pictures) for one in report.learned] == [("red", 10)]
    assert place.read().pictures() == {"blue": 20, "green": 20, "red": 30}
    assert [event.what for event in place.history()] == ["base", "more"]
    again = learn_classes(
        place, folders, quick_plan(more=True)
    )  # a second run, after a kill perhaps, does not count twice
    assert (again.learned, again.known) == ([], ["red"])


def test_pictures_in_memory_are_learned_like_files(place, tmp_path):
    folders = class_folders(paint(tmp_path / "p", "cyan", n=10))
    twin = ModelStore(tmp_path / "twin.engram", device="cpu")
    twin.path.write_bytes(place.path.read_bytes())
    in_memory = {"cyan": [ImageBytes(path.read_bytes()) for path in folders["cyan"]]}
    learn_classes(place, folders, quick_plan())
    learn_classes(twin, in_memory, quick_plan())
    means = [each.read().class_vectors() for each in (place, twin)]
    np.testing.assert_allclose(*means, atol=2e-3)  # kept in 16 bits, and the pictures come in another order
    assert learn_classes(twin, in_memory, quick_plan(more=True)).known == ["cyan"]  # recognised by their content


def test_what_cannot_be_learned_is_named_and_the_rest_is_learned(place, tmp_path):
    folder = paint(tmp_path / "p", "cyan", "violet", "yellow")
    (folder / "cyan" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")
    (folder / "empty").mkdir()
    for path in (folder / "violet").iterdir():
        path.write_bytes(b"nothing")
    report = learn_classes(place, class_folders(folder), quick_plan())
    assert [one.name for one in report.learned] == ["cyan", "yellow"]
    assert dict(report.skipped) == {
        "empty": "its folder holds no pictures that can be read",
        "violet": "none of its pictures can be read",
    }
    assert len(report.unreadable) == 9
    with pytest.raises(ValueError, match="at least one class, and found 0"):
        learn_classes(ModelStore(tmp_path / "new"), {"cyan": [], "red": class_folders(folder)["violet"]}, quick_plan())
    assert not (tmp_path / "new").exists()


def test_a_folder_is_recognised_and_taken_for_no_other(tmp_path):
    folder = paint(tmp_path, "red") / "red"
    paths = sorted(folder.iterdir())
    mark = fingerprint("red", unread(paths))
    assert fingerprint("red", unread(paths[::-1])) == mark
    assert fingerprint("green", unread(paths)) != mark
    assert fingerprint("red", unread(paths[1:])) != mark
    bitmaps = [folder / f"{i}.bmp" for i in range(3)]  # equal names and sizes, other pictures
    marks = set()
    for colour in ("red", "green"):
        for path in bitmaps:
            Image.new("RGB", (90, 60), colour).save(path)
        marks.add(fingerprint("red", unread(bitmaps)))
    assert len(marks) == 2


def unread(paths: list[Path]) -> list[tuple[Path, None]]:
    return [(path, None) for path in paths]


def test_nothing_of_a_picture_is_in_the_notes(place, tmp_path):
    learn_classes(place, class_folders(paint(tmp_path / "secret", "cyan")), quick_plan())
    notes = place.read().notes.as_json()
    assert notes.pop("versions_at") == str(place.versions.folder)  # the one path in it, and not of a picture
    text = json.dumps(notes)
    for part in ("secret", ".png", str(tmp_path)):
        assert part not in text


def test_bad_plans_are_refused():
    with pytest.raises(ValueError, match="keep must be at least 0"):
        quick_plan(keep=-1)
