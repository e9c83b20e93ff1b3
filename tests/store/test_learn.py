"""Learning from folders: what is learned, what is saved when, what is checked and calibrated."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from toys import COLOURS, TRAINED, averages, paint, quick_plan

from engram import IncrementalClassifier, backbones
from engram.backbones import registry
from engram.datasets import class_folders
from engram.images import extract
from engram.io import model_file
from engram.store import ImageBytes, ModelStore, Step, learn_classes
from engram.store.holdout import hold_back, lower_quantile
from engram.store.image_bytes import fingerprint
from engram.testing import assert_same_state


def features(paths: list[Path]) -> np.ndarray:
    return extract(paths, averages(), device="cpu").values


def test_a_new_model_is_trained_on_all_classes_at_once(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", n=20))
    place, steps = ModelStore(tmp_path / "m.engram", device="cpu"), []
    report = learn_classes(place, folders, quick_plan(holdout=0.25, **TRAINED), steps.append)
    assert [(one.name, one.pictures, one.held_back, one.increment) for one in report.learned] == [
        ("blue", 15, 5, 0), ("green", 15, 5, 0), ("red", 15, 5, 0),
    ]  # fmt: skip
    assert (report.check_new.pictures, report.check_new.accuracy) == (15, 1.0)
    model = place.read()
    assert model.names == ["blue", "green", "red"]
    assert model.clf.counts_.tolist() == [15, 15, 15]
    assert model.clf.learner_.tasks_learned == 1
    assert [(s.done, s.total) for s in steps if s.stage == "look"][-1] == (60, 60)
    assert [s.stage for s in steps][-2:] == ["train", "saved"]
    # It is what the estimator makes of the pictures that were not held back.
    trained = {name: hold_back(paths, 0.25)[0] for name, paths in folders.items()}
    same = IncrementalClassifier(**{**model.clf.get_params(), "random_state": 0, "backbone": averages()})
    same.fit(features([p for paths in trained.values() for p in paths]), np.repeat(list(trained), 15))
    assert_same_state(same.learner_.state(), model.clf.learner_.state())


def test_below_which_similarity_a_picture_is_unknown(tmp_path):
    """The 5 % quantile of what pictures that were held back reach at best; of the training pictures where none were.

    Fifteen are too few for that: then their distances are taken for exponentially distributed.
    """
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", n=20))
    for holdout, which in ((0.25, 1), (0.0, 0)):
        place = ModelStore(tmp_path / f"{holdout}.engram", device="cpu")
        learn_classes(place, folders, quick_plan(holdout=holdout, **TRAINED))
        model = place.read()
        paths = [path for each in folders.values() for path in hold_back(each, holdout)[which]]
        codes = model.clf.learner_.encode(torch.from_numpy(features(paths))).detach().numpy()
        means = model.clf.class_vectors_
        cosines = codes @ means.T / np.linalg.norm(codes, axis=1)[:, None] / np.linalg.norm(means, axis=1)
        unknown = model.notes.unknown
        best = cosines.max(axis=1)
        expected = np.quantile(best, 0.05) if holdout == 0 else 1 - 15 * (20 ** (1 / 15) - 1) * (1 - best).mean()
        assert unknown.similarity == pytest.approx(expected, abs=1e-4)
        assert (unknown.share, unknown.pictures, unknown.held_back) == (0.05, len(paths), holdout > 0)
        assert model.unknown_below() == unknown.similarity
        assert place.info()["unknown"] == {
            "below": unknown.similarity, "share": 0.05, "pictures": len(paths),
            "rule": "held back" if holdout else "learned from", "adjustable": False,
        }  # fmt: skip


def test_a_method_with_a_rule_of_its_own_needs_no_picture_held_back_to_tell_what_is_unknown(tmp_path):
    """The rule follows what is learned: nothing about it is recorded beside the model."""
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", "cyan", n=20))
    place, plan = ModelStore(tmp_path / "m.engram", device="cpu"), quick_plan(holdout=0)
    learn_classes(place, {name: folders[name] for name in ("red", "green")}, plan)
    first = place.read()
    strange = features(sorted(paint(tmp_path / "s", "white", n=5).rglob("*.png")))
    blues = features(folders["blue"])
    for values in (strange, blues):
        assert (first.clf.familiarity(values) < first.unknown_below()).all()
    learn_classes(place, {"blue": folders["blue"]}, plan)
    second = place.read()
    assert second.notes.unknown is None
    assert second.unknown_below() == second.clf.unknown_below(0.05)
    assert second.unknown_below(0.5) == second.clf.unknown_below(0.5) > second.unknown_below()
    assert (second.clf.familiarity(blues) > second.unknown_below()).mean() > 0.8  # a known class now
    assert (second.clf.familiarity(strange) < second.unknown_below()).all()
    about = place.info()["unknown"]
    told = {"share": 0.05, "rule": "leave-one-out", "pictures": None, "adjustable": True}
    assert about == {"below": second.unknown_below(), **told}
    place.refuse(0.25)
    third = place.read()
    assert third.unknown_below() == second.clf.unknown_below(0.25) == place.info()["unknown"]["below"]
    assert (place.info()["unknown"]["share"], third.notes.history[-1].share) == (0.25, 0.25)
    assert place.undo().what == "refuse"
    assert place.read().unknown_below() == second.unknown_below()
    for share in (0.0, 1.0, float("nan")):
        with pytest.raises(ValueError, match="lies between 0 and 1"):
            place.refuse(share)


def test_one_class_is_enough_to_begin_with_where_nothing_is_trained(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", n=10))
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    assert [one.name for one in learn_classes(place, {"red": folders["red"]}, quick_plan()).learned] == ["red"]
    assert place.read().unknown_below() is None  # nothing to compare with yet
    assert place.info()["unknown"] is None
    report = learn_classes(place, folders, quick_plan())
    assert (report.names, report.check_known.accuracy, report.check_new.accuracy) == (["red", "green"], 1.0, 1.0)


def test_pictures_with_a_wrong_label_are_named_once_they_are_learned(tmp_path):
    """By what the other pictures say; nothing about them is in the file."""
    root = paint(tmp_path / "p", "red", "green", "blue", n=12)
    for wrong, shown in (("green", "red"), ("red", "blue")):
        rng = np.random.default_rng(9)
        noise = rng.integers(-25, 25, (20, 28, 3))
        pixels = np.clip(np.array(COLOURS[shown]) + noise, 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(root / wrong / "odd.png")
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    report = learn_classes(place, class_folders(root), quick_plan(holdout=0))
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
    report = learn_classes(place, class_folders(tmp_path / "later"), quick_plan(holdout=0))
    assert [(one.picture, one.answer) for one in report.misfits] == [
        (str(tmp_path / "later" / "cyan" / "a red one.png"), "red")
    ]
    other = ModelStore(tmp_path / "ncm.engram", device="cpu")
    assert learn_classes(other, class_folders(root), quick_plan(method="ncm")).misfits == []  # it cannot tell


@pytest.mark.parametrize("n", [1, 5, 59, 60, 200])
def test_so_often_the_next_similarity_lies_below_the_quantile(n):
    distances = np.random.default_rng(n).exponential(0.01, size=(2000, n + 1))
    below = [lower_quantile(1 - row[:-1], 0.05) > 1 - row[-1] for row in distances]
    assert np.mean(below) == pytest.approx(0.05, abs=0.02)


def test_scores_that_are_no_cosines_have_their_plain_quantile():
    scores = np.array([-900.0, -30.0, -20.0, -10.0, 0.5])
    assert lower_quantile(scores, 0.05) == np.quantile(scores, 0.05)


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
        trained = hold_back(folders[name], 0.1)[0]
        clf.partial_fit(features(trained), [name] * len(trained))
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
    assert [(one.name, one.pictures) for one in report.learned] == [("red", 9)]
    assert place.read().clf.counts_.tolist() == [before[0], before[1], before[2] + 9]
    assert [event.what for event in place.history()] == ["base", "more"]
    again = learn_classes(
        place, folders, quick_plan(more=True)
    )  # a second run, after a kill perhaps, does not count twice
    assert (again.learned, again.known) == ([], ["red"])


def test_the_check_asks_about_old_classes_only_what_was_held_back(place, tmp_path):
    folders = class_folders(paint(paint(tmp_path / "p", "red", "green", "blue", n=20), "cyan"))
    report = learn_classes(place, folders, quick_plan())
    assert report.known == ["blue", "green", "red"]
    assert report.check_new.pictures == 1
    assert report.check_known.pictures == 6  # a tenth of three times twenty
    assert report.check_known.accuracy == 1.0


def test_examples_at_hand_show_what_learning_does_to_earlier_classes(place, tmp_path):
    """Before and after on the same examples; together with what is held back they go into the history."""
    folders = class_folders(paint(tmp_path / "p", "cyan", n=20))
    reds, greens = (
        features(sorted(paint(tmp_path / "e", c, n=6, seed=5).joinpath(c).iterdir())) for c in ("red", "green")
    )
    examples = {"red": reds, "green": np.concatenate([greens, reds[:1]]), "gone": reds}  # a red that is called green
    report = learn_classes(place, folders, quick_plan(holdout=0.25), examples=examples)
    assert (report.check_before.pictures, report.check_before.right) == (13, 12)
    assert (report.check_known.pictures, report.check_known.right) == (13, 12)
    assert {name: len(values) for name, values in report.held.items()} == {"cyan": 5}
    event = place.history()[-1]
    assert (event.checked, event.right) == (18, 17)
    assert event.bytes == sum(path.stat().st_size for path in folders["cyan"])


def test_what_is_unknown_is_told_anew_by_examples_of_every_class(tmp_path):
    names = ("red", "green", "blue", "cyan")
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    learn_classes(place, class_folders(paint(tmp_path / "base", *names[:3], n=20)), quick_plan(**TRAINED))
    folders = class_folders(paint(tmp_path / "p", *names, n=20, seed=5))
    examples = {name: features(folders[name]) for name in names[:3]}
    before = place.read().notes.unknown
    learn_classes(ModelStore(place.path, device="cpu"), {"cyan": folders["cyan"]}, quick_plan(holdout=0.25))
    assert place.read().notes.unknown == before  # nothing is known of the others
    place.undo()
    report = learn_classes(place, {"cyan": folders["cyan"]}, quick_plan(holdout=0.25), examples=examples)
    model = place.read()
    best = [model.clf.learner_.scores(values).max(axis=1) for values in (*examples.values(), report.held["cyan"])]
    unknown = model.notes.unknown
    assert (unknown.pictures, unknown.held_back) == (65, True)
    assert unknown.similarity == pytest.approx(np.quantile(np.concatenate(best), 0.05), abs=1e-4)
    assert unknown.similarity != before.similarity


def test_pictures_in_memory_are_learned_like_files(place, tmp_path):
    folders = class_folders(paint(tmp_path / "p", "cyan", n=10))
    twin = ModelStore(tmp_path / "twin.engram", device="cpu")
    twin.path.write_bytes(place.path.read_bytes())
    in_memory = {"cyan": [ImageBytes(path.read_bytes()) for path in folders["cyan"]]}
    learn_classes(place, folders, quick_plan(holdout=0))
    learn_classes(twin, in_memory, quick_plan(holdout=0))
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


@pytest.mark.parametrize(("n", "share", "held"), [(10, 0.1, 1), (4, 0.1, 0), (5, 0.1, 0), (1, 0.9, 0), (30, 0.1, 3)])
def test_holding_back_depends_on_names_alone(n, share, held):
    paths = [Path("some") / f"{i}.png" for i in range(n)]
    train, back = hold_back(paths, share)
    assert (len(train), len(back)) == (n - held, held)
    assert sorted(train + back) == sorted(paths)
    moved = hold_back([Path("elsewhere") / path.name for path in reversed(paths)], share)[1]
    assert [path.name for path in moved] == [path.name for path in back]


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
    with pytest.raises(ValueError, match="holdout must be at least 0 and below 1"):
        quick_plan(holdout=1.0)
    with pytest.raises(ValueError, match="keep must be at least 0"):
        quick_plan(keep=-1)
