"""One model file: changing it without pictures, undoing, and who may change it when."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toys import paint, quick_plan

from engram.datasets.folders import class_folders
from engram.errors import DamagedModelError, ModelFileError
from engram.files import model_file
from engram.learners.trying import blobs
from engram.store import (
    ImageBytes,
    Model,
    ModelBusyError,
    ModelStore,
    Notes,
    NothingToDoError,
    Plan,
    learn_classes,
    predict_images,
)
from engram.store.lock import model_lock


def grow(place: ModelStore, tmp_path: Path, *colours: str, **changes: object) -> list[bytes]:
    """The bytes of the file after every class."""
    states = []
    for colour in colours:
        learn_classes(place, class_folders(paint(tmp_path / f"p-{colour}", colour)), quick_plan(**changes))
        states.append(place.path.read_bytes())
    return states


def test_undo_gives_back_what_was_there_byte_for_byte(place, tmp_path, base_bytes):
    states = [base_bytes, *grow(place, tmp_path, "cyan", "yellow")]
    place.rename("cyan", "turquoise")
    place.forget("red")
    assert place.read().names == ["blue", "green", "turquoise", "yellow"]
    assert place.versions.numbers() == [2, 3, 4]  # three are kept
    assert place.undo().what == "forget"
    assert place.undo().what == "rename"
    assert place.path.read_bytes() == states[2]
    assert place.undo().pictures == {"yellow": 8}
    assert place.path.read_bytes() == states[1]
    with pytest.raises(NothingToDoError, match="no previous version"):
        place.undo()
    assert place.path.read_bytes() == states[1]
    assert place.versions.numbers() == [3, 4, 5]  # undone, and not lost yet
    assert [place.redo().what for _ in range(3)] == ["learn", "rename", "forget"]
    assert place.read().names == ["blue", "green", "turquoise", "yellow"]
    with pytest.raises(NothingToDoError, match="nothing to redo"):
        place.redo()
    for _ in range(3):
        place.undo()
    assert place.path.read_bytes() == states[1]
    place.redo()
    assert place.path.read_bytes() == states[2]
    place.undo()
    grow(place, tmp_path, "violet")
    assert place.read().notes.version == 3
    with pytest.raises(NothingToDoError, match="nothing to redo"):  # a change ends what could be redone
        place.redo()
    assert place.undo().pictures == {"violet": 8}


@pytest.mark.parametrize("keep", [0, 1, 5])
def test_as_many_versions_are_kept_as_were_asked_for(place, tmp_path, keep):
    grow(place, tmp_path, "cyan", "yellow", "violet", keep=keep)
    expected = [1, 2, 3][3 - keep :] if keep < 3 else [1, 2, 3]
    assert place.versions.numbers() == expected
    place.forget("cyan")  # which follows what was asked for before
    assert place.versions.numbers() == ([*expected, 4][-keep:] if keep else [])
    assert place.info()["versions"]["bytes"] == sum(p.stat().st_size for p in place.versions.folder.glob("*.engram"))


def test_versions_are_kept_without_links_too(place, tmp_path, monkeypatch, base_bytes):
    def no_links(*args: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("os.link", no_links)
    grow(place, tmp_path, "cyan")
    assert place.versions.path(1).read_bytes() == base_bytes


def test_a_damaged_model_gives_way_to_the_last_whole_version(place, tmp_path):
    states = grow(place, tmp_path, "cyan", "yellow")
    flip(place.path)
    with pytest.raises(DamagedModelError):
        place.read()
    assert place.undo() is None
    assert place.path.read_bytes() == states[0]
    grow(place, tmp_path, "violet", "brown")
    flip(place.versions.path(3))  # the last version: the one before it is taken
    flip(place.path)
    place.undo()
    assert place.path.read_bytes() == states[0]


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-9] ^= 1
    path.unlink()  # the file, not its other names
    path.write_bytes(bytes(content))


def test_forgetting_for_good_leaves_no_trace_of_the_name(place, tmp_path):
    grow(place, tmp_path, "cyan")
    place.rename("cyan", "turquoise")
    place.forget("turquoise")
    assert b"turquoise" in place.path.read_bytes()  # in the history
    place.undo()
    place.forget("turquoise", for_good=True)
    for name in (b"cyan", b"turquoise"):
        assert name not in place.path.read_bytes()
    assert place.versions.numbers() == []
    assert [event.what for event in place.history()] == ["base", "learn", "rename", "forget"]
    with pytest.raises(NothingToDoError):
        place.undo()


def test_a_renamed_class_is_not_learned_again_from_the_folder_of_its_old_name(place, tmp_path):
    grow(place, tmp_path, "cyan")
    place.rename("cyan", "turquoise")
    report = learn_classes(place, class_folders(tmp_path / "p-cyan"), quick_plan())
    assert report.skipped == [("cyan", "these pictures have been learned, as turquoise")]
    assert place.read().names == ["blue", "green", "red", "turquoise"]
    place.forget("turquoise")
    assert [one.name for one in learn_classes(place, class_folders(tmp_path / "p-cyan"), quick_plan()).learned] == [
        "cyan"
    ]


def test_info_counts_what_is_there(place, tmp_path):
    grow(place, tmp_path, "cyan")
    about = place.info()
    assert about["bytes"] == place.path.stat().st_size
    assert [(one["name"], one["pictures"], one["increment"]) for one in about["classes"]] == [
        ("blue", 20, 0), ("green", 20, 0), ("red", 20, 0), ("cyan", 8, 1),
    ]  # fmt: skip
    assert about["bytes_per_class"] == 8 * 2 + 4  # 16 bits each, and a count
    assert sum(about["bytes_by_group"].values()) == sum(place.read().learner.state().memory().values())
    json.dumps(about)


def test_a_model_of_feature_vectors_is_taken_as_it_is(tmp_path):
    """No notes, classes that are numbers, feature vectors instead of pictures."""
    place = ModelStore(tmp_path / "m", device="cpu")
    X, _ = blobs(["a", "b"])
    Model.new("ncm").learn(X, [1] * 24 + [2] * 24)[0].save(place.path)
    assert place.history() == []
    assert place.info()["classes"][0] == {"name": "1", "pictures": 24, "learned": None, "increment": None}
    place.rename("1", "7")
    assert place.read().names == ["7", "2"]  # as they were learned
    with pytest.raises(ValueError, match="classes are numbers, and 'seven' is none"):
        place.rename("7", "seven")
    for look in (
        lambda: list(predict_images(place.read(), [b""])),
        lambda: learn_classes(place, {"8": [ImageBytes()]}, Plan()),
    ):
        with pytest.raises(ValueError, match="was taught feature vectors, and cannot look at pictures"):
            look()
    place.forget("2")
    assert place.read().names == ["7"]


def test_files_of_before_there_were_notes_still_load(place):
    tensors, header = model_file.read(place.path)
    del header["notes"], header["tensors"]
    model_file.write(place.path, tensors, header)
    model = place.read()
    assert model.names == ["blue", "green", "red"]
    assert model.notes.history == ()


def test_notes_of_before_about_pictures_held_back_and_lessons_are_read_without_them():
    event = {"when": "1", "what": "base", "pictures": {"a": 9}, "checked": 1, "right": 1, "accuracy": 0.9}
    older = {
        "keep_examples": True,
        "unknown": {"similarity": 0.5, "share": 0.05, "pictures": 9, "held_back": True},
        "lessons": {"0": {"folders": {"a": "5f"}, "answers": {}}},
        "history": [
            {**event, "basis": "asked again", "lesson": 0},
            {**event, "basis": "leave-one-out", "what": "unlearn"},
        ],
        "classes": {"a": {"learned": "1", "increment": 0, "folders": {"5f": 0.1}}},
    }
    notes = Notes.from_json(older, "m")
    assert notes.classes["a"].folders == ("5f",)
    assert [one.accuracy for one in notes.history] == [None, 0.9]  # of which the first was of other pictures
    assert Notes.from_json(notes.as_json(), "m") == notes


def test_a_failed_write_changes_nothing(place, monkeypatch, base_bytes):
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ModelFileError, match="No space left"):
        place.forget("red")
    assert place.path.read_bytes() == base_bytes


def hold(path: Path, seconds: float, held: Any) -> None:
    """What another process does."""
    with model_lock(path, "learn"):
        held.set()
        time.sleep(seconds)


@pytest.fixture
def holder(processes) -> Callable[[Path, float], Any]:
    def start(path: Path, seconds: float) -> Any:
        held = processes.Event()
        process = processes.Process(target=hold, args=(path, seconds, held), daemon=True)
        process.start()
        assert held.wait(60)
        return process

    return start


def test_a_second_process_is_told_who_is_at_work_or_waits(place, holder):
    told: list[str] = []
    place.waiting = told.append
    process = holder(place.path, 60)
    try:
        with pytest.raises(ModelBusyError, match=rf"process {process.pid} on \S+ \(engram learn, since 20"):
            place.forget("red")
        assert [f"process {process.pid}" in text for text in told] == [True]
        assert place.read().names == ["blue", "green", "red"]  # reading does not wait
    finally:
        process.kill()
        process.join()
    # The record a killed process leaves behind is no obstacle.
    assert (place.path.parent / ".m.engram.holder").exists()
    place.forget("red")
    assert [path.name for path in place.path.parent.iterdir() if path.name.startswith(".")] == []

    process, place.wait = holder(place.path, 1.0), 20.0
    place.forget("green")
    process.join()
    assert place.read().names == ["blue"]


def test_a_model_in_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="is not a folder; make it first"):
        ModelStore(tmp_path / "no" / "m").forget("red")


def test_a_moved_model_tells_where_its_versions_were(place, tmp_path):
    place.rename("red", "rot")
    behind = place.versions.folder
    (tmp_path / "else where").mkdir()
    place.path.rename(tmp_path / "else where" / "n.engram")
    moved = ModelStore(tmp_path / "else where" / "n.engram", device="cpu")
    bring = f"mv {behind} '{moved.versions.folder}'"
    assert moved.info()["versions"]["left_behind"].endswith(
        f"previous versions were in {behind}; bring them with: {bring}"
    )
    with pytest.raises(NothingToDoError, match="the model was moved") as error:
        moved.undo()
    assert bring in str(error.value)
    place.path.write_bytes(moved.path.read_bytes())  # then it is a copy, and the versions belong to both
    assert moved.info()["versions"]["left_behind"].endswith(f"cp -r {behind} '{moved.versions.folder}'")
    assert place.info()["versions"]["left_behind"] == ""
    shutil.copytree(behind, moved.versions.folder)
    assert moved.info()["versions"]["left_behind"] == ""
    moved.undo()
    assert "red" in moved.read().names
    shutil.rmtree(behind)
    place.path.rename(tmp_path / "o.engram")
    gone = ModelStore(tmp_path / "o.engram", device="cpu")
    assert f"were in {behind}, which is not on this machine" in gone.info()["versions"]["left_behind"]
    for forged in ("/", ".", ".versions", "no-suffix", "x" * 5000):
        assert gone.versions.tell_left_behind(forged) == ""
    assert "not on this machine" in gone.versions.tell_left_behind("x" * 5000 + ".versions")
    gone.rename("rot", "red")  # from now on versions are kept here
    assert gone.read().notes.versions_at == str(gone.versions.folder)
    gone.forget("red", for_good=True)
    assert gone.read().notes.versions_at == ""


def test_version_10_comes_after_version_9(place):
    place.versions.folder.mkdir()
    for number in (10, 9, 1):
        place.versions.path(number).write_bytes(b"")
    assert place.versions.numbers() == [1, 9, 10]
