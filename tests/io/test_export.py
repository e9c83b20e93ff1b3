"""The exported graph answers as the model does."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from toys import QUICK, averages, paint

from engram import IncrementalClassifier, ModelFileError
from engram.io.export import OUTPUTS, TOLERANCE, Graph
from engram.testing import blobs


@pytest.fixture(scope="module")
def pictures(tmp_path_factory) -> list[Path]:
    return sorted(paint(tmp_path_factory.mktemp("p"), "red", "green", "blue").rglob("*.png"))


@pytest.fixture(scope="module")
def clf(pictures) -> IncrementalClassifier:
    made = IncrementalClassifier("prototypes", config=QUICK, backbone=averages(), random_state=0, device="cpu")
    return made.fit(pictures, [path.parent.name for path in pictures])


def pixels(paths: list[Path]) -> np.ndarray:
    """As the model sees them; so nothing is left to resize."""
    seen = [averages().preprocess.image(Image.open(path).convert("RGB")) for path in paths]
    return np.stack(seen).transpose(0, 2, 3, 1)


def answer(path: Path, batch: np.ndarray) -> dict[str, np.ndarray]:
    session = pytest.importorskip("onnxruntime").InferenceSession(path)
    return dict(zip(OUTPUTS, session.run(OUTPUTS, {"pictures": batch}), strict=True))


def run(path: Path, batch: np.ndarray) -> np.ndarray:
    return answer(path, batch)["similarities"]


@pytest.fixture(scope="module")
def exported(clf, tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    """The file, and what was said of it: made once."""
    out = tmp_path_factory.mktemp("exported") / "m.onnx"
    return out, clf.export(out)


def test_pictures_in_similarities_out(clf, exported, pictures):
    out, about = exported
    assert about["difference"] <= TOLERANCE
    assert about["labels"] == ["blue", "green", "red"]
    expected = clf.decision_function(pictures)
    for n in (1, 3, len(pictures)):  # any batch
        np.testing.assert_allclose(run(out, pixels(pictures[:n])), expected[:n], atol=TOLERANCE)
    assert list(out.parent.iterdir()) == [out]


@pytest.mark.parametrize("config", [{}, {"encoder": QUICK, "recency": 0.1}])
def test_whitened_prototypes_in_a_graph(config, pictures, tmp_path):
    """Which solves no triangular system, and whose space is computed beforehand: a model just read has none yet."""
    clf = IncrementalClassifier(config=config, backbone=averages(), random_state=0, device="cpu")
    names = [path.parent.name for path in pictures]
    clf.fit(pictures[:16], names[:16]).partial_fit(pictures[16:], names[16:])
    expected = clf.decision_function(pictures)
    clf.save(tmp_path / "m.engram")
    read = IncrementalClassifier.load(tmp_path / "m.engram", backbone=averages(), device="cpu")
    read.export(tmp_path / "m.onnx")
    np.testing.assert_allclose(run(tmp_path / "m.onnx", pixels(pictures)), expected, atol=TOLERANCE)


def test_large_scores_are_compared_by_their_size(pictures, tmp_path):
    """Those of SLDA here are in the thousands, where 1e-4 is below what float32 can tell apart."""
    clf = IncrementalClassifier("slda", backbone=averages(), random_state=0, device="cpu")
    clf.fit(pictures, [path.parent.name for path in pictures])
    expected = clf.decision_function(pictures)
    assert np.abs(expected).max() > 1000
    assert clf.export(tmp_path / "m.onnx")["difference"] <= TOLERANCE
    np.testing.assert_allclose(run(tmp_path / "m.onnx", pixels(pictures)), expected, atol=np.abs(expected).max() * 1e-4)


def test_labels_and_preprocessing_are_in_the_metadata(exported):
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(exported[0])
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["labels"]) == ["blue", "green", "red"]
    assert json.loads(metadata["preprocess"])["size"] == 16
    (given,) = session.get_inputs()
    assert (given.name, given.type, given.shape[3]) == ("pictures", "tensor(uint8)", 3)
    assert all(isinstance(side, str) for side in given.shape[:3])  # free
    assert json.loads(metadata["unknown_below"]) is None  # this method has no rule
    assert metadata["licence"].startswith("the network's published weights: see where")


def test_a_graph_that_answers_otherwise_is_not_written(clf, tmp_path, monkeypatch):
    real = Graph.forward

    def forward(self, pictures):
        said = real(self, pictures)
        return said | {"similarities": said["similarities"] * (1 + 1e-3)}

    monkeypatch.setattr(Graph, "forward", forward)
    out = tmp_path / "m.onnx"
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


def test_from_pixels_to_a_label(pictures, tmp_path):
    """Pictures of any size, as they are; the answers are those of `predict`, with all that belongs to them."""
    names = [path.parent.name for path in pictures]
    clf = IncrementalClassifier(backbone=averages(), random_state=0, device="cpu").fit(pictures, names)
    below = float(np.median(clf.familiarity(pictures)))
    about = clf.export(tmp_path / "m.onnx", unknown_below=below)
    assert about["unknown_below"] == below
    for crop in ((0, 0, 28, 20), (0, 0, 17, 20), (3, 1, 28, 14)):  # wide, tall, and smaller than it looks at them
        shown = [Image.open(path).crop(crop) for path in pictures]
        said = answer(tmp_path / "m.onnx", np.stack([np.asarray(one) for one in shown]))
        np.testing.assert_allclose(said["similarities"], clf.decision_function(shown), atol=0.02)
        np.testing.assert_allclose(said["probabilities"], clf.predict_proba(shown), atol=0.02)
        np.testing.assert_allclose(said["familiarity"], clf.familiarity(shown), atol=0.2)
        assert (said["known"] == (said["familiarity"] >= below)).all()
        assert clf.classes_[said["best"]].tolist() == clf.predict(shown).tolist() == names
    assert 0 < said["known"].sum() < len(said["known"])


def test_the_label_is_text(pictures, tmp_path):
    """So that a browser and C++ need no JSON; also if names have letters of all the world."""
    onnxruntime = pytest.importorskip("onnxruntime")
    names = [{"red": "سرخ", "green": "grün", "blue": "青"}[path.parent.name] for path in pictures]
    clf = IncrementalClassifier(backbone=averages(), random_state=0, device="cpu").fit(pictures, names)
    clf.export(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    label, known = session.run(["label", "known"], {"pictures": pixels(pictures)})
    assert label.tolist() == names
    assert known.mean() > 0.8  # by the method's own rule


@pytest.mark.parametrize("interpolation", ["lanczos", "bilinear"])
def test_what_no_graph_can_resize_is_taken_at_its_own_size(interpolation, pictures, tmp_path):
    seen = averages()
    seen.preprocess = replace(seen.preprocess, interpolation=interpolation)
    clf = IncrementalClassifier("ncm", backbone=seen, device="cpu").fit(pictures, [p.parent.name for p in pictures])
    about = clf.export(tmp_path / "m.onnx")
    size = "16, 16" if interpolation == "lanczos" else "height, width"
    assert about["input"] == f"pictures: uint8 (batch, {size}, 3), RGB"
    np.testing.assert_allclose(
        run(tmp_path / "m.onnx", pixels(pictures)), clf.decision_function(list(pixels(pictures))), atol=1e-3
    )
