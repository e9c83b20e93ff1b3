"""What lies where a model should, and what a file with a right checksum may still say."""

import errno
import json
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from toys import paint

from engram.errors import DamagedModelError, ModelFileError
from engram.files import model_file
from engram.store import ModelStore
from engram.store.lock import model_lock

NEW = ["--backbone", "averages", "--quiet"]


def test_the_record_of_the_lock_follows_no_link(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (tmp_path / ".m.engram.holder").symlink_to(precious)
    with model_lock(tmp_path / "m.engram", "learn"):
        assert json.loads((tmp_path / ".m.engram.holder").read_text())["doing"] == "learn"
    assert precious.read_text() == "mine"
    assert not (tmp_path / ".m.engram.holder").exists()


def test_a_pipe_is_no_model(engram, tmp_path):
    os.mkfifo(tmp_path / "m.engram")
    with pytest.raises(ModelFileError, match="it is no file, but a pipe"):
        model_file.read(tmp_path / "m.engram")
    paint(tmp_path / "pictures", "red")
    for command in (["info", "m.engram"], ["learn", "m.engram", "pictures", *NEW], ["doctor", "m.engram"]):
        done = engram(*command)
        assert (done.code, "it is no file, but a pipe" in done.err) == (2, True), done.err


@pytest.fixture(scope="module")
def taught(tmp_path_factory) -> Path:
    from engram.datasets.folders import class_folders
    from engram.store import Plan, learn_classes

    folder = tmp_path_factory.mktemp("taught")
    learn_classes(
        ModelStore(folder / "m", device="cpu"),
        class_folders(paint(folder / "p", "red", "green")),
        Plan(backbone="averages"),
    )
    return folder / "m"


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("version",), "three"),
        (("version",), 1.5),
        (("keep",), None),
        (("refuse",), "much"),
        (("refuse",), 1.0),
        (("version",), -1),
        (("keep",), -1),
        (("history", 0, "pictures"), [1]),
        (("history", 0, "pictures"), {"red": "many"}),
        (("history", 0, "seconds"), "long"),
        (("history", 0, "what"), "explode"),
        (("history", 0, "when"), 7),
        (("classes", "red", "increment"), "first"),
        (("classes", "red", "folders"), 3),
        (("classes", "red", "folders"), [3]),
    ],
)
def test_notes_of_wrong_kinds_are_refused_when_they_are_read(where, value, taught, tmp_path):
    tensors, header = model_file.read(taught)
    at = header["notes"]
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = value
    model_file.write(tmp_path / "m", tensors, {k: v for k, v in header.items() if k != "tensors"})
    with pytest.raises(DamagedModelError, match="its notes are not engram's"):
        ModelStore(tmp_path / "m", device="cpu").read()


def test_a_model_file_has_nothing_fetched(engram, taught, tmp_path, monkeypatch):
    monkeypatch.setenv("ENGRAM_ALLOW_DOWNLOAD", "")  # and as it was, afterwards
    timm, data = ModuleType("timm"), ModuleType("timm.data")
    asked = []

    def create_model(name, **options):
        asked.append(name)
        raise OSError("no network in tests")

    timm.create_model, data.resolve_model_data_config = create_model, None
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "timm.data", data)
    tensors, header = model_file.read(taught)
    header["backbone"]["name"] = "timm:hf-hub:somebody/something"
    model_file.write(tmp_path / "m.engram", tensors, {k: v for k, v in header.items() if k != "tensors"})
    paint(tmp_path / "p", "red", "blue")
    picture = next((tmp_path / "p").rglob("*.png"))
    for command in (
        ["predict", "m.engram", picture],
        ["evaluate", "m.engram", "p"],
        ["learn", "m.engram", "p"],
        ["export", "m.engram", "m.onnx"],
    ):
        done = engram(*command)
        assert (done.code, asked) == (2, []), done.err
        assert "Traceback" not in done.err
    assert engram("info", "m.engram").code == 0


def test_what_is_written_is_given_to_the_models_owner(taught, tmp_path, monkeypatch):
    model, given = tmp_path / "m.engram", []
    model.write_bytes(taught.read_bytes())
    monkeypatch.setattr(os, "link", refuse_links)
    monkeypatch.setattr(os, "chown", lambda path, uid, gid: given.append((Path(path).suffix, uid, gid)))
    ModelStore(model, device="cpu").rename("red", "rot")
    owner = model.stat()
    assert sorted(given) == [(suffix, owner.st_uid, owner.st_gid) for suffix in (".lock", ".tmp", ".tmp", ".versions")]


def test_who_is_not_root_may_still_change_what_he_may_write(taught, tmp_path, monkeypatch):
    model = tmp_path / "m.engram"
    model.write_bytes(taught.read_bytes())

    def refuse(*args):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chown", refuse)
    ModelStore(model, device="cpu").rename("red", "rot")
    assert ModelStore(model, device="cpu").read().names == ["green", "rot"]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root writes what others own")
@pytest.mark.parametrize("links", [True, False])
def test_what_root_writes_stays_its_owners(links, taught, tmp_path, monkeypatch):
    model = tmp_path / "m.engram"
    model.write_bytes(taught.read_bytes())
    model.chmod(0o640)
    os.chown(model, 12345, 54321)
    if not links:
        monkeypatch.setattr(os, "link", refuse_links)
    store = ModelStore(model, device="cpu")
    store.rename("red", "rot")
    (version,) = map(store.versions.path, store.versions.numbers())
    for path in (model, version, store.versions.folder):
        about = path.stat()
        assert (about.st_uid, about.st_gid) == (12345, 54321), path
        assert path.is_dir() or about.st_mode & 0o777 == 0o640
    store.undo()
    assert (model.stat().st_uid, store.read().names) == (12345, ["green", "red"])


def refuse_links(*args, **kwargs):
    raise OSError(errno.EPERM, "Operation not permitted")


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOTSUP])
def test_a_file_system_without_locks_is_called_one(code, tmp_path, monkeypatch):
    def refuse(*args):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("fcntl.flock", refuse)
    with (
        pytest.raises(OSError, match=r"no lock \.m\.engram\.lock can be made beside it") as said,
        model_lock(tmp_path / "m.engram", "learn", wait=30),
    ):
        pass
    assert str(said.value).endswith(
        f"{os.strerror(code)}; its file system has no locks: copy the model to a local disk, change it there, and copy "
        "it back"
    )
    assert list(tmp_path.iterdir()) == []
