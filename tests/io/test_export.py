"""The exported graph answers as the model does."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from toys import QUICK, averages, paint

from engram import IncrementalClassifier, ModelFileError
from engram.io.export import TOLERANCE, Graph
from engram.testing import blobs


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> list[Path]:
    return sorted(paint(tmp_path_factory.mktemp("p"), "red", "green", "blue").rglob("*.png"))


@pytest.fixture(scope="module")
def clf(pictures) -> IncrementalClassifier:
    made = IncrementalClassifier("prototypes", config=QUICK, backbone=averages(), random_state=0, device="cpu")
    return made.fit(pictures, [path.parent.name for path in pictures])


def pixels(paths: list[Path]) -> np.ndarray:
    return np.stack([averages().preprocess.image(Image.open(path).convert("RGB")) for path in paths])


def run(path: Path, batch: np.ndarray) -> np.ndarray:
    if path.suffix == ".onnx":
        onnxruntime = pytest.importorskip("onnxruntime")
        return onnxruntime.InferenceSession(path).run(["similarities"], {"pictures": batch})[0]
    return torch.export.load(path).module()(torch.from_numpy(batch)).numpy()


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_pictures_in_similarities_out(suffix, clf, pictures, tmp_path):
    out = tmp_path / f"m{suffix}"
    about = clf.export(out)
    assert about["difference"] <= TOLERANCE
    assert about["labels"] == ["blue", "green", "red"]
    expected = clf.decision_function(pictures)
    for n in (1, 3, len(pictures)):  # any batch
        np.testing.assert_allclose(run(out, pixels(pictures[:n])), expected[:n], atol=TOLERANCE)
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
@pytest.mark.parametrize("config", [{}, {"encoder": QUICK, "recency": 0.1}])
def test_whitened_prototypes_in_a_graph(suffix, config, pictures, tmp_path):
    """Which solves no triangular system, and whose space is computed beforehand: a model just read has none yet."""
    clf = IncrementalClassifier(config=config, backbone=averages(), random_state=0, device="cpu")
    names = [path.parent.name for path in pictures]
    clf.fit(pictures[:16], names[:16]).partial_fit(pictures[16:], names[16:])
    expected = clf.decision_function(pictures)
    clf.save(tmp_path / "m.engram")
    read = IncrementalClassifier.load(tmp_path / "m.engram", backbone=averages(), device="cpu")
    read.export(tmp_path / f"m{suffix}")
    np.testing.assert_allclose(run(tmp_path / f"m{suffix}", pixels(pictures)), expected, atol=TOLERANCE)


def test_large_scores_are_compared_by_their_size(pictures, tmp_path):
    """Those of SLDA here are in the thousands, where 1e-4 is below what float32 can tell apart."""
    clf = IncrementalClassifier("slda", backbone=averages(), random_state=0, device="cpu")
    clf.fit(pictures, [path.parent.name for path in pictures])
    expected = clf.decision_function(pictures)
    assert np.abs(expected).max() > 1000
    assert clf.export(tmp_path / "m.onnx")["difference"] <= TOLERANCE
    np.testing.assert_allclose(run(tmp_path / "m.onnx", pixels(pictures)), expected, atol=np.abs(expected).max() * 1e-4)


def test_labels_and_preprocessing_are_in_the_onnx_metadata(clf, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    clf.export(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["labels"]) == ["blue", "green", "red"]
    assert json.loads(metadata["preprocess"])["size"] == 16
    (given,) = session.get_inputs()
    assert (given.name, given.type, given.shape[1:]) == ("pictures", "tensor(uint8)", [3, 16, 16])
    assert isinstance(given.shape[0], str)  # free
    extra = {"engram.json": ""}
    clf.export(tmp_path / "m.pt2")
    torch.export.load(tmp_path / "m.pt2", extra_files=extra)
    assert json.loads(extra["engram.json"])["labels"] == ["blue", "green", "red"]


@pytest.mark.parametrize("suffix", [".onnx", ".pt2"])
def test_a_graph_that_answers_otherwise_is_not_written(suffix, clf, tmp_path, monkeypatch):
    real = Graph.forward
    monkeypatch.setattr(Graph, "forward", lambda self, pictures: real(self, pictures) * (1 + 1e-3))
    out = tmp_path / f"m{suffix}"
    out.write_bytes(b"before")
    with pytest.raises(ModelFileError, match="differ from the model's by"):
        clf.export(out)
    assert out.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [out]


def test_a_model_of_vectors_has_no_pictures_to_take(tmp_path):
    made = IncrementalClassifier("ncm", device="cpu").fit(*blobs(["a", "b"]))
    with pytest.raises(ValueError, match="taught pictures"):
        made.export(tmp_path / "m.onnx")


def test_without_onnx_the_remedy_is_named(clf, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ValueError, match=r"pip install 'engram-learn\[onnx\]'"):
        clf.export(tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())
