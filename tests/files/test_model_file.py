"""The model file: atomic, exact, and never half-loaded."""

import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import engram
from engram.errors import DamagedModelError, ModelFileError
from engram.files import model_file
from engram.learners.trying import assert_same_state, blobs
from engram.model import Model


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.new(seed=3).learn(*blobs("ab"))[0].learn(*blobs("c"))[0]


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "model.engram"
    model.save(path)
    return path.read_bytes()


KINDS = {
    "network.float16": np.array([[0.5, -2.0]], np.float16),
    "network.float32": np.linspace(0, 1, 7, dtype=np.float32),
    "network.float64": np.array(0.1),
    "network.int64": np.arange(3),
    "network.int32": np.zeros((0, 4), np.int32),
    "network.int8": np.array([[-128, 127]], np.int8),
    "network.uint8": np.array([255], np.uint8),
    "network.bool": np.array([True, False]),
}


def test_every_kind_of_array_is_read_as_it_was(tmp_path):
    given_ = KINDS | {"network.view": np.arange(12, dtype=np.float32).reshape(3, 4).T[::2]}
    model_file.write(tmp_path / "m", given_, {"a": 1})
    arrays, header = model_file.read(tmp_path / "m")
    assert header["a"] == 1
    for name, array in given_.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert np.array_equal(arrays[name], array)


def test_the_file_is_plain_safetensors_with_a_json_header(model, whole, tmp_path):
    from safetensors import safe_open

    (tmp_path / "m").write_bytes(whole)
    with safe_open(tmp_path / "m", framework="np") as file:
        header = json.loads(file.metadata()["engram"])["header"]
        assert set(file.keys()) == model.learner.state().arrays.keys() == header["tensors"].keys()
    assert (header["format_version"], header["learner"]["labels"]) == (1, ["a", "b", "c"])


@pytest.mark.parametrize("names", [{"a": "Zaunkönig / wren", "b": '"quoted" \\ ½'}, {"a": 7, "b": -2}])
def test_labels_survive_as_what_they_were(names, tmp_path):
    x, y = blobs("ab")
    Model.new("ncm").learn(x, [names[label] for label in y])[0].save(tmp_path / "m")
    assert sorted(Model.load(tmp_path / "m").labels) == sorted(names.values())


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_or_missing_byte_is_noticed_or_harmless(data, whole, model, tmp_path):
    mutated = bytearray(whole)
    if data.draw(st.booleans(), label="cut"):
        del mutated[data.draw(st.integers(0, len(whole) - 1), label="length") :]
    else:
        # Half of the flips go into the header, where the traps are.
        header = 8 + int.from_bytes(whole[:8], "little")
        limit = header if data.draw(st.booleans(), label="in header") else len(whole)
        mutated[data.draw(st.integers(0, limit - 1), label="position")] ^= data.draw(st.integers(1, 255), label="mask")
    path = tmp_path / "mutated"
    path.write_bytes(bytes(mutated))
    try:
        loaded = Model.load(path)
    except ModelFileError as error:
        assert "\n" not in str(error)
        assert str(path) in str(error)
    else:
        assert_same_state(model.learner.state(), loaded.learner.state())


def test_another_number_in_the_header_is_noticed(whole, tmp_path):
    (tmp_path / "m").write_bytes(whole.replace(rb"\"seed\": 3", rb"\"seed\": 4"))
    assert (tmp_path / "m").read_bytes() != whole
    with pytest.raises(DamagedModelError, match="header does not match"):
        model_file.read(tmp_path / "m")


def foreign(path: Path) -> dict[str, object]:
    """What may lie where a model should: content, or how it is made."""
    return {
        "nothing": lambda: None,
        "empty": lambda: path.write_bytes(b""),
        "picture": lambda: path.write_bytes(b"\x89PNG\r\n" * 100),
        "safetensors": lambda: save_file({"weight": np.zeros(3)}, path),
        "folder": lambda: path.mkdir(),
        "pipe": lambda: os.mkfifo(path),
    }


@pytest.mark.parametrize("what", foreign(Path()))
def test_foreign_files_are_named(what, tmp_path):
    foreign(tmp_path / "m")[what]()
    with pytest.raises(ModelFileError) as error:
        model_file.read(tmp_path / "m")
    assert str(tmp_path / "m") in str(error.value)
    assert isinstance(error.value, DamagedModelError) == (what in ("empty", "picture", "safetensors"))


def test_a_newer_format_is_refused_with_its_version(model, tmp_path, monkeypatch):
    monkeypatch.setattr(model_file, "FORMAT_VERSION", 99)
    monkeypatch.setattr(model_file, "read", lambda path: None)
    model.save(tmp_path / "m")
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="format version 99"):
        Model.load(tmp_path / "m")


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999"])
def test_a_header_that_is_not_finite_is_not_read(number, tmp_path, monkeypatch):
    dumps = json.dumps
    with monkeypatch.context() as patch:  # signed by somebody who writes such numbers
        patch.setattr(model_file, "_digest", lambda data: "x")
        patch.setattr(model_file.json, "dumps", lambda *a, **k: dumps(*a, **k).replace("123456789", number))
        patch.setattr(model_file, "read", lambda path: None)
        model_file.write(tmp_path / "m", {"network.x": np.zeros(2)}, {"notes": {"version": 123456789}})
    with pytest.raises(DamagedModelError, match=f"its header holds {number}"):
        model_file.read(tmp_path / "m")


@pytest.mark.parametrize("tensors", [[], None, {"network.x": {}}, {"network.y": {}}])
def test_a_header_that_lists_other_arrays_is_damage(tensors, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(model_file, "_fingerprint", lambda array: {"made": "up"})
        patch.setattr(model_file, "read", lambda path: None)
        model_file.write(tmp_path / "made up", {"network.x": np.zeros(2)}, {})
        canonical = model_file._canonical
        lie = lambda header: header.update(tensors=tensors) or canonical(header)  # noqa: E731
        patch.setattr(model_file, "_canonical", lie)
        model_file.write(tmp_path / "m", {"network.x": np.zeros(2)}, {})
    for name in ("made up", "m"):
        with pytest.raises(DamagedModelError):
            model_file.read(tmp_path / name)


def test_what_cannot_give_answers_is_neither_written_nor_read(tmp_path, monkeypatch):
    for value in (np.nan, np.inf, -np.inf):
        for dtype in (np.float16, np.float32, np.float64):
            bad = {"network.x": np.array([1, value, 2], dtype)}
            with pytest.raises(ModelFileError, match=r"network\.x holds -?(nan|inf)"):
                model_file.write(tmp_path / "m", bad, {})
            with monkeypatch.context() as patch:
                patch.setattr(model_file, "find_not_finite", lambda arrays: None)
                model_file.write(tmp_path / "m", bad, {})
            with pytest.raises(DamagedModelError, match=r"cannot give answers: network\.x holds"):
                model_file.read(tmp_path / "m")
            (tmp_path / "m").unlink()
    largest = {"network.x": np.full(9, np.finfo(np.float64).max), "network.n": np.array([2**62])}
    assert model_file.find_not_finite(largest) is None
    with pytest.raises(ModelFileError, match="not what JSON holds"):
        model_file.write(tmp_path / "m", {}, {"notes": {1, 2}})
    assert not list(tmp_path.iterdir())


def test_an_unwritable_path_leaves_everything_as_it_was(model, tmp_path, monkeypatch):
    with pytest.raises(ModelFileError, match="cannot write"):
        model.save(tmp_path / "no" / "such" / "folder")
    path = tmp_path / "m"
    model.save(path)
    old = path.read_bytes()

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    for target, name in ((Path, "write_bytes"), (os, "fsync"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, full)
            with pytest.raises(ModelFileError, match="No space left on device"):
                model.forget("a").save(path)
        assert path.read_bytes() == old
        assert os.listdir(tmp_path) == ["m"]


def test_what_cannot_be_read_back_does_not_take_the_place_of_the_model(model, tmp_path, monkeypatch):
    path = tmp_path / "m"
    model.save(path)
    old, save = path.read_bytes(), model_file.save
    monkeypatch.setattr(model_file, "save", lambda *args, **named: save(*args, **named)[:-1] + b"?")
    with pytest.raises(ModelFileError, match="cannot write"):
        model.forget("a").save(path)
    assert path.read_bytes() == old


def test_killed_while_saving_leaves_the_old_model_whole(model, tmp_path):
    path = tmp_path / "m"
    model.save(path)
    old = path.read_bytes()
    script = f"""
        import os, signal
        from engram.model import Model
        model = Model.load({str(path)!r})
        def die(written, target):
            os.truncate(written, os.path.getsize(written) // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        os.replace = die
        model.forget("a").save({str(path)!r})
    """
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True)
    assert process.returncode == -9, process.stderr
    assert path.read_bytes() == old


def test_permissions_and_links_are_kept(model, tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    model.save(target)
    target.chmod(0o640)
    link.symlink_to(target)
    model.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_file_may_be_replaced_while_its_model_is_in_use(model, whole, tmp_path):
    path = tmp_path / "m"
    path.write_bytes(whole)
    loaded = Model.load(path)
    path.write_bytes(bytes(len(whole)))  # in place: what is mapped into memory would change
    assert_same_state(loaded.learner.state(), model.learner.state())


def test_nothing_that_reads_a_file_of_a_stranger_pickles():
    """The restricted readers of one old format of torch's and of official data sets are the only pickle in sight."""
    root = Path(engram.__file__).parent
    readers = {"cluster/dask_job.py", "encoders/torch_file.py"}
    for source in root.rglob("*.py"):
        text, name = source.read_text(), source.relative_to(root).as_posix()
        if name not in readers and not name.endswith("/pickles.py"):
            assert "import pickle" not in text, source
            assert "joblib" not in text, source
        for line in text.splitlines():
            assert "torch.load(" not in line or "weights_only=True" in line, source
