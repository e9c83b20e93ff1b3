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
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from engram import IncrementalClassifier, ModelFileError
from engram.io import model_file
from engram.testing import assert_same_state, blobs


@pytest.fixture(scope="module")
def clf() -> IncrementalClassifier:
    made = IncrementalClassifier(
        "prototypes",
        config={"layers": (6, 4), "base_epochs": 2, "increment_epochs": 1, "feature_rms": 1.0},
        random_state=0,
        device="cpu",
    )
    made.fit(*blobs(["a", "b"]))
    return made.partial_fit(*blobs(["c"]))


@pytest.fixture(scope="module")
def whole(clf, tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "model.engram"
    clf.save(path)
    return path.read_bytes()


def test_load_gives_the_same_model_and_goes_on_bit_for_bit(tmp_path):
    made = IncrementalClassifier(
        "prototypes",
        config={"layers": (6, 4), "base_epochs": 2, "increment_epochs": 2, "feature_rms": 1.0},
        device="cpu",
    )
    made.fit(*blobs(["a", "b"]))
    made.save(tmp_path / "m")
    loaded = IncrementalClassifier.load(tmp_path / "m", device="cpu")
    assert_same_state(made.learner_.state(), loaded.learner_.state())
    X, _ = blobs(["a", "b", "c"])
    assert np.array_equal(made.predict_proba(X), loaded.predict_proba(X))
    for each in (made, loaded):
        each.partial_fit(*blobs(["c"]))
        each.partial_fit(*blobs(["d"]))
    assert_same_state(made.learner_.state(), loaded.learner_.state())


def test_labels_survive_as_what_they_were(tmp_path):
    X, y = blobs(["a", "b"])
    for names in ({"a": "Zaunkönig / wren", "b": '"quoted" \\ ½'}, {"a": 7, "b": -2}):
        made = IncrementalClassifier("prototypes", config={"layers": (4,), "base_epochs": 1}, device="cpu").fit(
            X, [names[label] for label in y]
        )
        made.save(tmp_path / "m")
        loaded = IncrementalClassifier.load(tmp_path / "m", device="cpu")
        assert loaded.classes_.tolist() == sorted(names.values())


def test_settings_survive(tmp_path, clf):
    clf.save(tmp_path / "m")
    loaded = IncrementalClassifier.load(tmp_path / "m", device="cpu")
    mine, theirs = clf.get_params(), loaded.get_params()
    assert theirs["config"].items() >= mine["config"].items()
    for name in set(mine) - {"random_state", "config"}:
        assert theirs[name] == mine[name], name


def test_the_file_is_plain_safetensors_with_a_json_header(tmp_path, clf):
    from safetensors import safe_open

    clf.save(tmp_path / "m")
    with safe_open(tmp_path / "m", framework="pt") as file:
        header = json.loads(file.metadata()["engram"])["header"]
        assert set(file.keys()) == set(clf.memory())
    assert header["format_version"] == 1
    assert header["learner"]["labels"] == ["a", "b", "c"]
    assert header["learner"]["config"]["lambda_reg"] == 10.0


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_or_missing_byte_is_noticed_or_harmless(data, whole, clf, tmp_path):
    mutated = bytearray(whole)
    if data.draw(st.booleans(), label="cut"):
        del mutated[data.draw(st.integers(0, len(whole) - 1), label="length") :]
    else:
        # Half of the flips go into the header, where the traps are.
        header = 8 + int.from_bytes(whole[:8], "little")
        limit = header if data.draw(st.booleans(), label="in header") else len(whole)
        position = data.draw(st.integers(0, limit - 1), label="position")
        mutated[position] ^= data.draw(st.integers(1, 255), label="mask")
    path = tmp_path / "mutated"
    path.write_bytes(bytes(mutated))
    try:
        loaded = IncrementalClassifier.load(path, device="cpu")
    except ModelFileError as error:
        assert "\n" not in str(error)
        assert str(path) in str(error)
    else:
        assert_same_state(clf.learner_.state(), loaded.learner_.state())


def test_foreign_and_future_files_are_named(tmp_path, clf):
    path = tmp_path / "m"
    with pytest.raises(ModelFileError, match="No such file"):
        IncrementalClassifier.load(path)
    path.write_bytes(b"")
    with pytest.raises(ModelFileError, match="damaged or not an engram model"):
        IncrementalClassifier.load(path)
    path.write_bytes(b"\x89PNG\r\n" * 100)
    with pytest.raises(ModelFileError, match="damaged or not an engram model"):
        IncrementalClassifier.load(path)
    save_file({"weight": torch.zeros(3)}, path)
    with pytest.raises(ModelFileError, match="not an engram model"):
        IncrementalClassifier.load(path)
    with pytest.raises(ModelFileError, match="irectory"):
        IncrementalClassifier.load(tmp_path)


def test_a_newer_format_is_refused_with_its_version(tmp_path, clf, monkeypatch):
    monkeypatch.setattr(model_file, "FORMAT_VERSION", 99)
    clf.save(tmp_path / "m")
    monkeypatch.undo()
    with pytest.raises(ModelFileError, match="format version 99"):
        IncrementalClassifier.load(tmp_path / "m")


def test_a_valid_file_of_something_else_is_refused(tmp_path, clf):
    state = clf.learner_.state()
    for header in ({}, {"method": "unheard-of"}, {"method": "prototypes", "learner": {}, "estimator": {}}):
        model_file.write(tmp_path / "m", state.tensors, header)
        with pytest.raises(ModelFileError, match="not a model this version can use"):
            IncrementalClassifier.load(tmp_path / "m")
    meta = {**state.meta, "n_features": 5}  # the tensors are of another width
    model_file.write(tmp_path / "m", state.tensors, {"method": "prototypes", "learner": meta, "estimator": {}})
    with pytest.raises(ModelFileError, match="not a model this version can use"):
        IncrementalClassifier.load(tmp_path / "m")


def test_an_unwritable_path_leaves_everything_as_it_was(tmp_path, clf, monkeypatch):
    before = clf.learner_.state()
    with pytest.raises(ModelFileError, match="cannot write"):
        clf.save(tmp_path / "no" / "such" / "folder")
    path = tmp_path / "m"
    clf.save(path)
    old = path.read_bytes()

    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    for target, name in ((Path, "write_bytes"), (os, "fsync"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, full)
            with pytest.raises(ModelFileError, match="No space left on device"):
                clf.save(path)
        assert path.read_bytes() == old
        assert os.listdir(tmp_path) == ["m"]
    assert_same_state(before, clf.learner_.state())


def test_killed_while_saving_leaves_the_old_model_whole(tmp_path, clf):
    path = tmp_path / "m"
    clf.save(path)
    old = path.read_bytes()
    script = f"""
        import os, signal
        from engram import IncrementalClassifier
        clf = IncrementalClassifier.load({str(path)!r}, device="cpu")
        clf.forget("a")
        def die(written, target):
            os.truncate(written, os.path.getsize(written) // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        os.replace = die
        clf.save({str(path)!r})
    """
    process = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True)
    assert process.returncode == -9, process.stderr
    assert path.read_bytes() == old


def test_permissions_and_links_are_kept(tmp_path, clf):
    target, link = tmp_path / "target", tmp_path / "link"
    clf.save(target)
    target.chmod(0o640)
    link.symlink_to(target)
    clf.save(link)
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    fresh = tmp_path / "fresh"
    clf.save(fresh)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_nothing_in_the_package_pickles():
    """`weights_only` loading and the restricted reader of the official CIFAR files are the only pickle in sight."""
    allowed = {"data/pickles.py"}
    root = Path(model_file.__file__).parent
    for source in root.rglob("*.py"):
        text = source.read_text()
        if source.relative_to(root).as_posix() not in allowed:
            assert "import pickle" not in text, source
            assert "joblib" not in text, source
        for line in text.splitlines():
            assert "torch.load(" not in line or "weights_only=True" in line, source
