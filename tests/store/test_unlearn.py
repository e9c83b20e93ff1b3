"""One lesson taken back in a model file: the model, what is known about it, and the way back."""

import numpy as np
import pytest
from toys import TRAINED, paint, quick_plan

from engram.datasets import class_folders
from engram.store import ModelStore, examine, learn_classes, model_card, unlearn_lesson
from engram.store.statistics import write_statistics

EXACT = {"settings": {"kept_bits": 64}}


def teach(place, folder, *colours, seed=0, **plan):
    """A lesson from pictures of these colours, which lie in a folder of their own."""
    pictures = paint(folder, *colours, seed=seed, spread=40.0)
    kept = {"keep_lessons": True, "more": True, "all_or_nothing": True, **EXACT, **plan}
    return learn_classes(place, class_folders(pictures), quick_plan(**kept))


@pytest.fixture
def taught(tmp_path):
    """Three lessons: red and green; blue, and more of red; yellow."""
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    teach(place, tmp_path / "0", "red", "green")
    teach(place, tmp_path / "1", "red", "blue", seed=1)
    teach(place, tmp_path / "2", "yellow", seed=2)
    return place


def without(tmp_path, lesson):
    """The model that never had a lesson."""
    place = ModelStore(tmp_path / f"without-{lesson}.engram", device="cpu")
    for number, colours in enumerate((("red", "green"), ("red", "blue"), ("yellow",))):
        if number != lesson:
            teach(place, tmp_path / str(number), *colours, seed=number)
    return place.read()


def vectors(model):
    order = sorted(model.names)
    return model.clf.decision_function(np.random.default_rng(0).normal(size=(20, 8))), order


@pytest.mark.parametrize("lesson", [0, 1, 2])
def test_the_model_is_what_it_would_be_without_the_lesson(tmp_path, taught, lesson):
    event = unlearn_lesson(taught, lesson)
    after, never = taught.read(), without(tmp_path, lesson)
    assert (event.what, event.lesson) == ("unlearn", lesson)
    assert after.pictures() == {name: never.pictures()[name] for name in after.names}
    assert sorted(after.names) == sorted(never.names)
    np.testing.assert_allclose(vectors(after)[0], vectors(never)[0], rtol=1e-6, atol=1e-6)
    assert {name: record.folders for name, record in after.notes.classes.items()} == {
        name: record.folders for name, record in never.notes.classes.items()
    }
    assert sorted(after.clf.lessons_) == [n for n in range(3) if n != lesson] == sorted(map(int, after.notes.lessons))


def test_it_is_one_change_that_can_be_undone_and_made_again(taught):
    before = taught.path.read_bytes()
    version = taught.read().notes.version
    unlearn_lesson(taught, 1)
    after = taught.path.read_bytes()
    assert taught.read().notes.version == version + 1
    assert taught.undo().what == "unlearn"
    assert taught.path.read_bytes() == before
    assert taught.redo().lesson == 1
    assert taught.path.read_bytes() == after


def test_what_is_known_about_classes_follows(taught):
    before = taught.read()
    assert sum(before.notes.classes["red"].answers.values()) == 16
    assert before.notes.classes["red"].increment == 0
    unlearn_lesson(taught, 1)
    after = taught.read()
    red = after.notes.classes["red"]
    assert sum(red.answers.values()) == 8
    assert "blue" not in after.notes.classes
    assert all("blue" not in record.answers for record in after.notes.classes.values())
    health = examine(after)
    assert set(health.classes) == {"green", "red", "yellow"}
    assert health.classes["red"].pictures == 8
    assert after.notes.history[-1].accuracy == health.overall()
    unlearn_lesson(taught, 0)
    assert taught.read().names == ["yellow"]


def test_a_class_is_as_old_as_the_oldest_lesson_that_is_left(taught):
    unlearn_lesson(taught, 0)
    red = taught.read().notes.classes["red"]
    assert red.increment == 1
    assert red.learned == taught.history()[1].when
    assert red.answers == taught.read().notes.lessons["1"].answers["red"]


def test_the_folder_of_a_lesson_taken_back_can_be_learned_again(tmp_path, taught):
    unlearn_lesson(taught, 1)
    report = teach(taught, tmp_path / "1", "red", "blue", seed=1)
    assert sorted(one.name for one in report.learned) == ["blue", "red"]
    assert [event.lesson for event in taught.history()] == [0, 1, 2, 1, 3]  # a number is never given again
    unlearn_lesson(taught, 3)
    assert taught.read().pictures() == {"green": 8, "red": 8, "yellow": 8}


def test_a_lesson_is_taken_back_once(taught):
    unlearn_lesson(taught, 1)
    with pytest.raises(ValueError, match="lesson 1 has been taken back already, on 20"):
        unlearn_lesson(taught, 1)
    with pytest.raises(ValueError, match=r"nothing is kept of a lesson 7, and kept are 0, 2: .*--keep-lessons keeps"):
        unlearn_lesson(taught, 7)


def test_lessons_that_were_not_kept(tmp_path):
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    teach(place, tmp_path / "0", "red", "green", keep_lessons=False)
    teach(place, tmp_path / "1", "blue", seed=1)
    before = place.path.read_bytes()
    with pytest.raises(ValueError, match="nothing is kept of a lesson 0, and kept are 1"):
        unlearn_lesson(place, 0)
    assert place.path.read_bytes() == before
    unlearn_lesson(place, 1)
    with pytest.raises(ValueError, match="nothing is kept of a lesson 0, and none is kept"):
        unlearn_lesson(place, 0)
    assert place.info()["lessons_kept"] == []


def test_the_only_lesson_stays(tmp_path):
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    teach(place, tmp_path / "0", "red", "green")
    before = place.path.read_bytes()
    with pytest.raises(ValueError, match="no class would be left; for that, remove the model"):
        unlearn_lesson(place, 0)
    assert place.path.read_bytes() == before


def test_renamed_in_between(taught):
    taught.rename("blue", "azure")
    taught.rename("red", "scarlet")
    lesson = taught.read().notes.lessons["1"]
    assert set(lesson.folders) == {"azure", "scarlet"} == set(lesson.answers)
    unlearn_lesson(taught, 1)
    after = taught.read()
    assert after.pictures() == {"green": 8, "scarlet": 8, "yellow": 8}
    assert (after.notes.classes["scarlet"].increment, sum(after.notes.classes["scarlet"].answers.values())) == (0, 8)


def test_forgotten_in_between(tmp_path, taught):
    taught.forget("blue", for_good=True)  # which lesson 1 alone has taught
    after = taught.read()
    assert after.clf.lessons_[1] == {"red": 8}
    assert b"blue" not in taught.path.read_bytes()
    unlearn_lesson(taught, 1)
    never = without(tmp_path, 1)
    np.testing.assert_allclose(vectors(taught.read())[0], vectors(never)[0], rtol=1e-6, atol=1e-6)
    taught.undo()
    taught.forget("red")  # which two lessons have taught
    assert sorted(taught.read().clf.lessons_) == [2] == sorted(map(int, taught.read().notes.lessons))
    with pytest.raises(ValueError, match="lesson 1 cannot be taken back any more: a class that it taught together"):
        unlearn_lesson(taught, 1)
    unlearn_lesson(taught, 2)


def test_a_class_of_statistics_has_no_date_before(tmp_path):
    from engram.store import merge_models

    for name, seed in (("a", 0), ("b", 1)):
        pictures = class_folders(paint(tmp_path / name, "red", "green", seed=seed))
        write_statistics(ModelStore(tmp_path / f"{name}.stats", device="cpu"), pictures, quick_plan(**EXACT))
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    merge_models(place, [tmp_path / "a.stats", tmp_path / "b.stats"])
    teach(place, tmp_path / "2", "red", "blue", seed=2)
    assert set(place.read().notes.classes) == {"red", "blue"}
    unlearn_lesson(place, 1)
    assert (place.read().pictures(), place.read().notes.classes) == ({"green": 16, "red": 16}, {})


def test_methods_that_cannot(tmp_path):
    place = ModelStore(tmp_path / "m.engram", device="cpu")
    why = "the method prototypes cannot take lessons back, so none can be kept"
    with pytest.raises(ValueError, match=why):
        teach(place, tmp_path / "0", "red", "green", **TRAINED)
    assert not place.exists()
    teach(place, tmp_path / "0", "red", "green", keep_lessons=False, **TRAINED)
    with pytest.raises(ValueError, match=why):
        teach(place, tmp_path / "1", "blue", **TRAINED)
    assert place.read().names == ["green", "red"]


def test_other_methods(tmp_path):
    for method in ("slda", "ncm"):
        place = ModelStore(tmp_path / f"{method}.engram", device="cpu")
        teach(place, tmp_path / "0", "red", "green", method=method, settings={})
        scores = vectors(place.read())[0]
        teach(place, tmp_path / "1", "red", "blue", seed=1, method=method, settings={})
        unlearn_lesson(place, 1)
        np.testing.assert_allclose(vectors(place.read())[0], scores, rtol=0, atol=1e-4 * np.abs(scores).max())


def test_the_card_tells_that_lessons_are_kept(taught):
    assert "Of 3 lessons their own counts, means and scatter are stored as well" in model_card(taught)


def test_from_the_command_line(engram, tmp_path):
    paint(tmp_path / "p", "red", "green")
    new = ["--backbone", "averages", "--keep-lessons"]
    assert engram("learn", "m.engram", "p", *new).code == 0
    paint(tmp_path / "p", "blue", "yellow")
    assert engram("learn", "m.engram", "p", "--keep-lessons").code == 0
    lines = engram("history", "m.engram").out.splitlines()
    assert " base (lesson 0): 2 classes" in lines[0]
    assert lines[1].endswith(" s (lesson 1)")
    told = engram("info", "m.engram")
    assert "lessons that engram unlearn can take back: 0, 1, 2; " in told.out
    assert engram("info", "m.engram", "--json").json["bytes_by_group"]["lessons that can be taken back"] > 0
    assert "Of 3 lessons" in " ".join(told.out.split())
    assert engram("unlearn", "m.engram", "--lesson", "1").err == "error: there is no terminal to ask on; give --yes\n"
    done = engram("unlearn", "m.engram", "--lesson", "1", "--yes", "--json")
    assert done.json == {
        "lesson": 1, "pictures": {"blue": 8}, "gone": ["blue"], "classes": ["green", "red", "yellow"]
    }  # fmt: skip
    assert done.err == "took lesson 1 back: 8 pictures of blue; m.engram knows 3 classes, no longer blue\n"
    assert engram("history", "m.engram").out.splitlines()[-1].endswith("took lesson 1 back: 8 pictures of blue")
    again = engram("unlearn", "m.engram", "--lesson", "1")  # before anybody is asked
    assert (again.code, again.err.count("\n"), "taken back already" in again.err) == (2, 1, True)
    assert engram("undo", "m.engram", "--yes").err.startswith(
        "undone: took lesson 1 back: 8 pictures of blue; m.engram"
    )
    assert engram("predict", "m.engram", "p/blue", "--json").json[0]["label"] == "blue"
    refused = engram("learn", "s.stats", "p", "--statistics", *new)
    assert "--keep-lessons is for pictures that are learned here" in refused.err
