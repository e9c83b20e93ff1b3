"""How classes are doing: asked again where examples are at hand, else by leave-one-out answers."""

import numpy as np
import pytest
from toys import TRAINED, paint, quick_plan

from engram import IncrementalClassifier
from engram.datasets import class_folders
from engram.store import ImageBytes, ModelStore, Notes, learn_classes
from engram.store.health import Health, by_leave_one_out, examine
from engram.store.history import ClassRecord
from engram.testing import assert_same_state


def notes(**records: tuple[int, dict[str, int]]) -> Notes:
    return Notes(classes={name: ClassRecord("", at, {}, answers) for name, (at, answers) in records.items()})


def test_a_class_is_taken_for_later_ones_as_often_as_they_are_taken_for_it():
    known = notes(
        wren=(0, {"wren": 9, "tit": 1}), tit=(0, {"tit": 10}), crow=(1, {"crow": 6, "wren": 2}), jay=(2, {"jay": 5})
    )
    health = by_leave_one_out(known, ["wren", "tit", "crow", "jay", "owl"])
    # 1 in 10 goes to the tit, learned with it; 2 of 8 crows, learned later, were taken for wrens.
    wren = health.classes["wren"]
    assert wren.share == pytest.approx(0.9 * 0.75)
    assert list(wren.taken_for) == ["crow", "tit"]
    assert wren.taken_for == {"crow": pytest.approx(0.9 * 0.25), "tit": pytest.approx(0.1)}
    assert (wren.pictures, wren.state) == (10, "good")
    assert health.classes["tit"].share == 1.0  # what the wren takes of the tit is known: nothing
    assert health.classes["crow"].share == pytest.approx(0.75)
    crowded = notes(a=(0, {"a": 5, "b": 3, "c": 2}), b=(0, {"b": 1}), c=(0, {"c": 1}), d=(1, {"d": 1, "a": 1}),
                    e=(2, {"e": 3, "a": 1}))  # fmt: skip
    a = by_leave_one_out(crowded, list("abcde")).classes["a"]
    assert a.share == pytest.approx(0.5 * 0.5 * 0.75)  # what was asked counts as it was answered
    taken = {"b": 0.3, "c": 0.2, "d": 0.3125 * 2 / 3, "e": 0.3125 / 3}
    assert a.taken_for == {name: pytest.approx(share) for name, share in taken.items()}
    assert health.classes["owl"] is None
    assert health.overall() == (None, None)
    assert by_leave_one_out(known, ["wren", "jay"]).overall() == (0.95, "leave-one-out")


def test_a_class_that_lost_its_pictures_is_called_so():
    states = {
        n: by_leave_one_out(notes(a=(0, {"a": n, "b": 100 - n}), b=(0, {"b": 1})), ["a", "b"]) for n in (24, 59, 60)
    }
    assert [states[n].classes["a"].state for n in states] == ["lost", "weak", "good"]
    assert Health("leave-one-out", {}).overall() == (None, None)


def test_leave_one_out_answers_are_recorded_and_follow_names(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "violet", n=12))
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    mixed = {"red": [*folders["red"], *folders["green"][:2]], "green": folders["green"][2:]}
    learn_classes(place, mixed, quick_plan(holdout=0))
    records = place.read().notes.classes
    assert records["red"].answers == {"red": 12, "green": 2}
    learn_classes(place, {"violet": folders["violet"]}, quick_plan(holdout=0))
    place.rename("green", "lime")
    records = place.read().notes.classes
    assert records["red"].answers == {"red": 12, "lime": 2}
    health = examine(place.read(), {})
    assert health.basis == "leave-one-out"
    assert health.classes["red"].share == pytest.approx(12 / 14)
    assert place.read().notes.history[1].accuracy == health.overall()[0]
    place.forget("lime")
    model = place.read()
    assert (model.notes.classes["red"].answers, "lime" in model.notes.classes) == ({"red": 12}, False)
    learn_classes(place, {"red": paint_more(tmp_path)}, quick_plan(holdout=0, more=True))
    assert sum(place.read().notes.classes["red"].answers.values()) == 12 + 3
    alone = {"cyan": class_folders(paint(tmp_path / "one", "cyan", n=1))["cyan"]}
    learn_classes(place, alone, quick_plan(holdout=0))
    assert place.read().notes.classes["cyan"].answers == {}  # without its only picture there would be no such class


def paint_more(tmp_path):
    return class_folders(paint(tmp_path / "more", "red", n=3, seed=5))["red"]


def test_a_method_that_cannot_leave_one_out_is_asked_again_or_says_nothing(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", n=10))
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    report = learn_classes(place, {n: folders[n] for n in ("red", "green")}, quick_plan(holdout=0.3, **TRAINED))
    assert place.read().notes.history[0].basis == "asked again"
    assert examine(place.read(), {}).overall() == (None, None)
    health = examine(place.read(), report.held)
    assert (health.basis, health.classes["red"].pictures, health.overall()[0]) == ("asked again", 3, 1.0)
    swapped = {"red": report.held["green"], "green": report.held["green"]}
    assert examine(place.read(), swapped).classes["red"].taken_for == {"green": 1.0}
    # After a restart there are no examples of red and green: what is known of blue says nothing about them.
    learn_classes(place, {"blue": folders["blue"]}, quick_plan(holdout=0.3, **TRAINED))
    last = place.read().notes.history[-1]
    assert (last.checked, last.accuracy, last.basis) == (3, None, None)


@pytest.mark.parametrize("method", [{}, TRAINED])
def test_examples_stay_in_the_file_if_the_owner_wants_that(tmp_path, method):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", n=10))
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    first = quick_plan(holdout=0.3, keep_examples=True, **method)
    report = learn_classes(place, {n: folders[n] for n in ("red", "green")}, first)
    clf = place.read().clf
    assert {name: values.dtype for name, values in clf.examples_.items()} == {"red": np.float16, "green": np.float16}
    np.testing.assert_allclose(clf.examples_["red"], report.held["red"], rtol=1e-3)
    bytes_ = sum(values.nbytes for values in clf.examples_.values())
    assert place.info()["bytes_by_group"]["examples to check with"] == bytes_ > 0
    # Whoever teaches next knows nothing of the first lesson, and still sees that nothing was forgotten.
    report = learn_classes(place, {"blue": folders["blue"]}, quick_plan(holdout=0.3, **method))
    assert (report.check_before.pictures, report.check_known.pictures) == (6, 6)
    last = place.read().notes.history[-1]
    assert (last.checked, last.accuracy, last.basis) == (9, 1.0, "asked again")
    place.rename("red", "crimson")
    place.forget("green")
    assert set(place.read().clf.examples_) == {"blue", "crimson"}
    place.read().clf.save(tmp_path / "slim.engram", slim=True)
    assert IncrementalClassifier.load(tmp_path / "slim.engram").examples_ == {}


def test_at_most_twenty_examples_of_a_class_are_kept_the_newest_first(tmp_path):
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    plan = quick_plan(holdout=0.5, keep_examples=True, more=True)
    held = []
    for seed in range(3):
        report = learn_classes(place, class_folders(paint(tmp_path / str(seed), "red", n=16, seed=seed)), plan)
        held.append(report.held["red"])
    kept = place.read().clf.examples_["red"]
    np.testing.assert_allclose(kept, np.concatenate([held[2], held[1], held[0]])[:20], rtol=1e-3)


@pytest.mark.parametrize("method", [{}, TRAINED])
def test_classes_learned_together_are_one_change_and_the_same_model(tmp_path, method):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", "cyan", n=10))
    apart, together = (ModelStore(tmp_path / f"{name}.engram", device="cpu") for name in ("apart", "together"))
    for place, whole in ((apart, False), (together, True)):
        plan = quick_plan(holdout=0.3, all_or_nothing=whole, **method)
        learn_classes(place, {n: folders[n] for n in ("red", "green")}, plan)
        learn_classes(place, folders, plan)
    assert [len(place.read().notes.history) for place in (apart, together)] == [3, 2]
    assert together.read().notes.history[-1].pictures == {"blue": 7, "cyan": 7}
    assert_same_state(apart.read().clf.learner_.state(), together.read().clf.learner_.state())
    together.undo()
    assert together.read().names == ["green", "red"]


def test_a_lesson_with_a_class_that_cannot_be_learned_teaches_nothing(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", n=6))
    place, plan = ModelStore(tmp_path / "m.engram", device="cpu"), quick_plan(all_or_nothing=True)
    broken = {"odd": [ImageBytes(b"no picture")]}
    with pytest.raises(ValueError, match=r"^odd: none of its pictures can be read; nothing was learned$"):
        learn_classes(place, {"red": folders["red"], **broken}, plan)
    assert not place.exists()
    learn_classes(place, {n: folders[n] for n in ("red", "green")}, plan)
    before = place.path.read_bytes()
    with pytest.raises(ValueError, match=r"^odd: none of its pictures"):
        learn_classes(place, {"blue": folders["blue"], **broken}, plan)
    assert place.path.read_bytes() == before
    place.rename("red", "crimson")
    with pytest.raises(ValueError, match=r"^red: these pictures have been learned, as crimson; nothing was learned$"):
        learn_classes(place, {"blue": folders["blue"], "red": folders["red"]}, plan)
    with pytest.raises(ValueError, match="nothing was learned"):
        learn_classes(place, {"red": folders["red"]}, plan)
    assert place.read().names == ["green", "crimson"]
