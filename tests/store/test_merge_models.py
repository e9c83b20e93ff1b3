"""Model files made one: what comes of names, histories and folders, and what is refused before anything is written."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from toys import averages, paint, quick_plan

from engram.datasets.folders import class_folders
from engram.history import ClassRecord
from engram.images.stream import encode_all
from engram.store import Event, MergeSource, Model, ModelStore, Notes, examine, learn_classes, merge_models, plan_merge

EXACT = {"settings": {"kept_bits": 64}}
OLDER = Path(__file__).parents[1] / "files" / "older"


def teach(path: Path, *colours: str, seed: int = 0, **plan: object) -> ModelStore:
    place = ModelStore(path, device="cpu")
    folder = paint(path.with_suffix(".pictures"), *colours, seed=seed)
    learn_classes(place, class_folders(folder), quick_plan(**{**EXACT, **plan}))
    return place


@pytest.fixture
def garden(tmp_path: Path) -> ModelStore:
    return teach(tmp_path / "garden.engram", "red", "green")


@pytest.fixture
def lake(tmp_path: Path) -> ModelStore:
    return teach(tmp_path / "lake.engram", "red", "blue", seed=1)


def out(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "out.engram", device="cpu")


def pictures_of(*places: ModelStore) -> tuple[np.ndarray, list[str]]:
    found = [(name, path) for place in places for name, paths in
             class_folders(place.path.with_suffix(".pictures")).items() for path in paths]  # fmt: skip
    return encode_all([path for _, path in found], averages()).features, [name for name, _ in found]


def test_the_merged_file_is_what_one_model_would_have_learned(tmp_path, garden, lake):
    done = merge_models(out(tmp_path), [garden.path, lake.path])
    assert (done.added, done.joined, done.twice) == ({"blue": 8}, {"red": 8}, ())
    merged = out(tmp_path).read()
    assert merged.pictures() == {"green": 8, "red": 16, "blue": 8}
    X, y = pictures_of(garden, lake)
    whole, _ = Model.new(settings={"kept_bits": 64}).learn(X, y)
    expected = whole.learner.score(X).values[:, whole.learner.rows(merged.labels)]
    np.testing.assert_allclose(merged.learner.score(X).values, expected, atol=1e-5)
    assert merged.encoder.identity == averages().identity.text


def test_histories_are_merged_in_order_of_time_and_folders_stay_known(tmp_path, garden, lake):
    learn_classes(garden, class_folders(paint(tmp_path / "more", "cyan")), quick_plan(**EXACT))
    merge_models(out(tmp_path), [lake.path, garden.path])
    notes = out(tmp_path).read().notes
    assert [event.what for event in notes.history] == ["base", "base", "learn", "merge"]
    assert notes.history[-1].pictures == {"blue": 8, "red": 16, "green": 8, "cyan": 8}
    assert [event.when for event in notes.history] == sorted(event.when for event in notes.history)
    assert len(notes.classes["red"].folders) == 2
    assert notes.version == 1
    report = learn_classes(out(tmp_path), class_folders(tmp_path / "more"), quick_plan(**EXACT))
    assert report.known == ["cyan"]
    assert out(tmp_path).read().notes.increments() == 1


def test_notes_of_both_in_order_of_time(garden, lake):
    """A class known to both was learned when the first of them learned it."""
    mine = Notes(history=(Event("2", "base", {"red": 1}), Event("4", "forget", {"old": 1})),
                 classes={"red": ClassRecord("2", 0, ("a",))})  # fmt: skip
    theirs = Notes(history=(Event("1", "base", {"ruby": 1}), Event("3", "rename", {"ruby": 0}, new_name="red")),
                   classes={"red": ClassRecord("1", 7, ("b",))})  # fmt: skip
    sources = [MergeSource("x.engram", replace(garden.read(), notes=mine)),
               MergeSource("y.engram", replace(lake.read(), notes=theirs))]  # fmt: skip
    joined = plan_merge(sources).model.notes
    assert [event.when for event in joined.history[:-1]] == ["1", "2", "3", "4"]
    assert joined.classes == {"red": ClassRecord("1", 7, ("a", "b"))}


def test_the_same_folder_in_both_is_told(tmp_path, garden):
    copy = ModelStore(tmp_path / "copy.engram", device="cpu")
    copy.path.write_bytes(garden.path.read_bytes())
    copy.forget("green")
    done = merge_models(out(tmp_path), [garden.path, copy.path])
    assert done.twice == (("red", str(garden.path), str(copy.path)),)
    assert done.model.pictures() == {"green": 8, "red": 16}


def test_a_class_that_was_renamed_before_stays_apart(tmp_path, garden, lake):
    lake.rename("red", "rose")
    files = {place.path: place.path.read_bytes() for place in (garden, lake)}
    done = merge_models(out(tmp_path), [garden.path, lake.path])
    assert done.model.pictures() == out(tmp_path).read().pictures() == {"green": 8, "red": 8, "blue": 8, "rose": 8}
    assert {path: path.read_bytes() for path in files} == files  # the models themselves are left alone


def test_into_an_existing_model_with_a_way_back(tmp_path, garden, lake):
    before = garden.path.read_bytes()
    with pytest.raises(ValueError, match=r"garden.engram exists; .* --force"):
        merge_models(garden, [garden.path, lake.path])
    assert garden.path.read_bytes() == before
    done = merge_models(garden, [garden.path, lake.path], replace_existing=True)
    assert garden.read().names == ["green", "red", "blue"]
    assert (done.model.notes.version, garden.read().notes.version) == (2, 2)
    assert garden.undo().what == "merge"
    assert garden.path.read_bytes() == before


def test_a_preview_writes_nothing(garden, lake):
    files = {place.path: place.path.read_bytes() for place in (garden, lake)}
    seen = plan_merge([MergeSource("mine", garden.read()), MergeSource("yours", lake.read())])
    assert (seen.added, seen.joined) == ({"blue": 8}, {"red": 8})
    assert seen.model.names == ["green", "red", "blue"]
    assert {path: path.read_bytes() for path in files} == files
    third = plan_merge([MergeSource(str(i), lake.read()) for i in range(3)])
    assert (third.added, third.joined) == ({}, {"blue": 16, "red": 16})


def test_what_cannot_be_merged_is_one_line_and_writes_nothing(tmp_path, garden):
    plain = teach(tmp_path / "plain.engram", "red", settings={"kept_bits": 64, "transform": "none"})
    vectors = ModelStore(tmp_path / "vectors.engram", device="cpu")
    Model.new().learn(np.eye(8), ["a"] * 8)[0].save(vectors.path)
    refused = [
        ([garden.path, plain.path], "cannot merge .*garden.engram and .*plain.engram: .*transform.*: sqrt and none"),
        ([garden.path, vectors.path], "different backbones .*: averages.* and none, but feature vectors"),
        ([OLDER / "mas.engram", OLDER / "si.engram"], "mas cannot be merged"),
        ([garden.path], "two models at least"),
        ([garden.path, tmp_path / "." / "garden.engram"], "named twice"),
    ]
    for paths, reason in refused:
        with pytest.raises(ValueError, match=reason) as error:
            merge_models(out(tmp_path), paths)
        assert "\n" not in str(error.value)
    assert not out(tmp_path).exists()
    assert not list(tmp_path.glob(".out*"))


def test_models_whose_classes_are_numbers_can_be_merged(tmp_path):
    for name in ("a", "b"):
        Model.new().learn(np.eye(8), [1] * 8)[0].save(tmp_path / f"{name}.engram")
    paths = [tmp_path / "a.engram", tmp_path / "b.engram"]
    assert merge_models(out(tmp_path), paths).model.pictures() == {"1": 16}


def test_a_merged_model_does_not_pretend_to_know_how_its_classes_do_among_each_other(tmp_path):
    stores = []
    for name in ("red", "blue"):
        stores.append(ModelStore(tmp_path / f"{name}.engram", device="cpu"))
        folders = class_folders(paint(tmp_path / name, name, "green", n=10, seed=len(stores)))
        learn_classes(stores[-1], folders, quick_plan())
        assert examine(stores[-1].read()).overall() == 1.0
    model = merge_models(out(tmp_path), [store.path for store in stores]).model
    assert examine(model).overall() is None
