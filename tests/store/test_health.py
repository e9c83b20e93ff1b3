"""How classes are doing, by leave-one-out answers."""

import pytest
from toys import paint, quick_plan

from engram.datasets.folders import class_folders
from engram.history import ClassRecord
from engram.store import ImageBytes, ModelStore, Notes, learn_classes
from engram.store.health import Health, by_leave_one_out, examine


def notes(**records: tuple[int, dict[str, int]]) -> Notes:
    return Notes(classes={name: ClassRecord("", at, (), answers) for name, (at, answers) in records.items()})


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
    assert health.overall() is None
    assert by_leave_one_out(known, ["wren", "jay"]).overall() == 0.95


def test_a_class_that_lost_its_pictures_is_called_so():
    states = {
        n: by_leave_one_out(notes(a=(0, {"a": n, "b": 100 - n}), b=(0, {"b": 1})), ["a", "b"]) for n in (24, 59, 60)
    }
    assert [states[n].classes["a"].state for n in states] == ["lost", "weak", "good"]
    assert Health({}).overall() is None


def test_leave_one_out_answers_are_recorded_and_follow_names(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "violet", n=12))
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    mixed = {"red": [*folders["red"], *folders["green"][:2]], "green": folders["green"][2:]}
    learn_classes(place, mixed, quick_plan())
    records = place.read().notes.classes
    assert records["red"].answers == {"red": 12, "green": 2}
    learn_classes(place, {"violet": folders["violet"]}, quick_plan())
    place.rename("green", "lime")
    records = place.read().notes.classes
    assert records["red"].answers == {"red": 12, "lime": 2}
    health = examine(place.read())
    assert health.classes["red"].share == pytest.approx(12 / 14)
    assert place.read().notes.history[1].accuracy == health.overall()
    place.forget("lime")
    model = place.read()
    assert (model.notes.classes["red"].answers, "lime" in model.notes.classes) == ({"red": 12}, False)
    learn_classes(place, {"red": paint_more(tmp_path)}, quick_plan(more=True))
    assert sum(place.read().notes.classes["red"].answers.values()) == 12 + 3
    alone = {"cyan": class_folders(paint(tmp_path / "one", "cyan", n=1))["cyan"]}
    learn_classes(place, alone, quick_plan())
    assert place.read().notes.classes["cyan"].answers == {}  # without its only picture there would be no such class


def paint_more(tmp_path):
    return class_folders(paint(tmp_path / "more", "red", n=3, seed=5))["red"]


def test_nothing_is_said_of_a_method_that_cannot_leave_one_out(trained, tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", n=6))
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    learn_classes(place, folders, quick_plan(**trained))
    model = place.read()
    assert examine(model).classes == {"green": None, "red": None}
    assert model.notes.history[0].accuracy is None


def test_classes_learned_together_are_one_change(tmp_path):
    folders = class_folders(paint(tmp_path / "p", "red", "green", "blue", "cyan", n=10))
    apart, together = (ModelStore(tmp_path / f"{name}.engram", device="cpu") for name in ("apart", "together"))
    for place, whole in ((apart, False), (together, True)):
        plan = quick_plan(all_or_nothing=whole)
        learn_classes(place, {n: folders[n] for n in ("red", "green")}, plan)
        learn_classes(place, folders, plan)
    assert [len(place.read().notes.history) for place in (apart, together)] == [3, 2]
    assert together.read().notes.history[-1].pictures == {"blue": 10, "cyan": 10}
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
