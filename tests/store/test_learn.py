"""Learning from folders: what is learned, what is saved when, what is unknown."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from toys import COLOURS, TRAINED, averages, paint, quick_plan

from engram import IncrementalClassifier, backbones
from engram.backbones import registry
from engram.datasets import class_folders
from engram.images import extract
from engram.io import model_file
from engram.store import ImageBytes, ModelStore, Step, learn_classes, unknown_threshold
from engram.store.image_bytes import fingerprint
from engram.testing import assert_same_state


def features(paths: list[Path]) -> np.ndarray:
    return extract(paths, averages(), device="cpu").values


def test_a_new_model_is_trained_on_all_classes_at_once(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", n=20))
    place, steps = ModelStore(tmp_path / "m.engram", device="cpu"), []
    report = learn_classes(place, folders, quick_plan(**TRAINED), steps.append)
    assert [(one.name, one.pictures, one.increment) for one in report.learned] == [
        ("blue", 20, 0), ("green", 20, 0), ("red", 20, 0),
    ]  # fmt: skip
    model = place.read()
    assert model.names == ["blue", "green", "red"]
    assert model.clf.counts_.tolist() == [20, 20, 20]
    assert model.clf.learner_.tasks_learned == 1
    assert [(s.done, s.total) for s in steps if s.stage == "look"][-1] == (60, 60)
    assert [s.stage for s in steps][-2:] == ["train", "saved"]
    # It is what the estimator makes of all the pictures.
    same = IncrementalClassifier(**{**model.clf.get_params(), "random_state": 0, "backbone": averages()})
    same.fit(features([p for paths in folders.values() for p in paths]), np.repeat(list(folders), 20))
    assert_same_state(same.learner_.state(), model.clf.learner_.state())


def test_what_is_unknown_follows_what_is_learned(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", "cyan", n=20))
    place, plan = ModelStore(tmp_path / "m.engram", device="cpu"), quick_plan()
    learn_classes(place, {name: folders[name] for name in ("red", "green")}, plan)
    first = place.read()
    strange = features(sorted(paint(tmp_path / "s", "white", n=5).rglob("*.png")))
    blues = features(folders["blue"])
    for values in (strange, blues):
        assert (first.clf.familiarity(values) < first.unknown_below()).all()
    learn_classes(place, {"blue": folders["blue"]}, plan)
    second = place.read()
    assert second.unknown_below() == second.clf.unknown_below(0.05)
    assert second.unknown_below(0.5) == second.clf.unknown_below(0.5) > second.unknown_below()
    assert (second.clf.familiarity(blues) > second.unknown_below()).mean() > 0.8  # a known class now
    assert (second.clf.familiarity(strange) < second.unknown_below()).all()
    assert place.info()["unknown"] == {"below": second.unknown_below(), "share": 0.05}
    place.refuse(0.25)
    third = place.read()
    assert third.unknown_below() == second.clf.unknown_below(0.25) == place.info()["unknown"]["below"]
    assert (place.info()["unknown"]["share"], third.notes.history[-1].share) == (0.25, 0.25)
    assert place.undo().what == "refuse"
    assert place.read().unknown_below() == second.unknown_below()
    for share in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="lies between 0 and 1"):
            place.refuse(share)


def test_a_method_without_leave_one_out_has_no_unknown(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", n=8))
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    learn_classes(place, folders, quick_plan(method="ncm"))
    model = place.read()
    assert (model.unknown_below(), place.info()["unknown"]) == (None, None)
    assert model.unknown_below(0.9) == 0.9  # a similarity of one's own
    with pytest.raises(ValueError, match="ncm is not calibrated"):
        unknown_threshold(model, "auto")


def test_one_class_is_enough_to_begin_with_where_nothing_is_trained(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", n=10))
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    assert [one.name for one in learn_classes(place, {"red": folders["red"]}, quick_plan()).learned] == ["red"]
    assert place.read().unknown_below() is None  # nothing to compare with yet
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
    other = ModelStore(tmp_path / "ncm.engram", device="cpu")
    assert learn_classes(other, class_folders(root), quick_plan(method="ncm")).misfits == []  # it cannot tell


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
    # The same three tasks on the estimator, and nothing else.
    clf = IncrementalClassifier.load(place.versions.path(1), backbone=averages(), device="cpu")
    for name in ("cyan", "violet", "yellow"):
        clf.partial_fit(features(folders[name]), [name] * len(folders[name]))
    assert_same_state(clf.learner_.state(), place.read().clf.learner_.state())


def test_the_backbone_is_built_once_and_the_model_read_once(tmp_path, monkeypatch):
    built, read = [], []
    monkeypatch.setitem(registry._BUILDERS, "averages", lambda weights=None: (built.append(1), averages())[1])
    real = model_file.read
    monkeypatch.setattr(model_file, "read", lambda path: (read.append(Path(path).name), real(path))[1])
    place, root = ModelStore(tmp_path / "m.engram", device="cpu"), paint(tmp_path / "p", "red", "green")
    learn_classes(place, class_folders(root), quick_plan())
    assert (len(built), read.count("m.engram")) == (1, 0)
    report = learn_classes(place, class_folders(paint(root, "blue", "cyan")), quick_plan())
    assert report.names == ["green", "red", "blue", "cyan"]
    assert (len(built), read.count("m.engram")) == (2, 1)


def test_a_model_goes_on_with_a_backbone_that_was_given(place, tmp_path):
    """A file of a network made by name alone records the name, so that the next process can make it."""
    folders = class_folders(paint(tmp_path / "p", "cyan"))
    learn_classes(place, folders, quick_plan())
    assert ModelStore(place.path, device="cpu").read().clf.backbone == "averages"
    other = backbones.create("efficientnet_lite0")
    assert place.read(other).clf.backbone_.identity == averages().identity  # the model's own, not the given one


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
    before = place.read().clf.counts_.tolist()
    report = learn_classes(place, folders, quick_plan(more=True))
    assert [(one.name, one.pictures) for one in report.learned] == [("red", 10)]
    assert place.read().clf.counts_.tolist() == [before[0], before[1], before[2] + 10]
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
    means = [each.read().clf.class_vectors_ for each in (place, twin)]
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
    new = {"cyan": [], "red": folders_of(folder, "yellow")}
    with pytest.raises(ValueError, match="at least two classes, and found 1"):
        learn_classes(ModelStore(tmp_path / "new"), new, quick_plan(**TRAINED))
    with pytest.raises(ValueError, match="at least one class, and found 0"):
        learn_classes(ModelStore(tmp_path / "new"), {"cyan": [], "red": folders_of(folder, "violet")}, quick_plan())
    assert not (tmp_path / "new").exists()


def folders_of(folder: Path, name: str) -> list[Path]:
    return class_folders(folder)[name]


def test_a_folder_is_recognised_and_taken_for_no_other(tmp_path):
    folder = paint(tmp_path, "red") / "red"
    paths = sorted(folder.iterdir())
    mark = fingerprint("red", paths)
    assert fingerprint("red", paths[::-1]) == mark
    assert fingerprint("green", paths) != mark
    assert fingerprint("red", paths[1:]) != mark
    bitmaps = [folder / f"{i}.bmp" for i in range(3)]  # equal names and sizes, other pictures
    marks = set()
    for colour in ("red", "green"):
        for path in bitmaps:
            Image.new("RGB", (90, 60), colour).save(path)
        marks.add(fingerprint("red", bitmaps))
    assert len(marks) == 2


def test_nothing_of_a_picture_is_in_the_notes(place, tmp_path):
    learn_classes(place, class_folders(paint(tmp_path / "secret", "cyan")), quick_plan())
    notes = dict(place.read().clf.notes_)
    assert notes.pop("versions_at") == str(place.versions.folder)  # the one path in it, and not of a picture
    text = json.dumps(notes)
    for part in ("secret", ".png", str(tmp_path)):
        assert part not in text


def test_bad_plans_are_refused():
    with pytest.raises(ValueError, match="keep must be at least 0"):
        quick_plan(keep=-1)
