"""The exported graph answers as the model does, from pixels to a label."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from fake_encoder import FakeEncoder
from PIL import Image

from engram.encoders.head import read_head
from engram.encoders.onnx import OnnxEncoder
from engram.encoders.recorded import RecordedEncoder
from engram.encoders.registry import create
from engram.errors import ModelFileError
from engram.files.export import OUTPUTS, TOLERANCE, export
from engram.files.steps import nearest_mean
from engram.images.stream import encode_all
from engram.learners.codes import Codes
from engram.model import Model
from engram.store.export import export_model

CLASSES = {"rot": (200, 30, 30), "grün": (30, 200, 30), "青": (30, 30, 200)}


def draw(n: int, height: int = 64, width: int = 64, seed: int = 0) -> list[tuple[str, Image.Image]]:
    """Coarse patterns of a colour."""
    made, rng = [], np.random.default_rng(seed)
    for label, colour in CLASSES.items():
        for _ in range(n):
            coarse = np.clip(rng.integers(-60, 60, (5, 6, 3)) + colour, 0, 255).astype(np.uint8)
            made.append((label, Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)))
    return made


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    found = create("efficientnet_lite0", size=64, device="cpu")
    assert isinstance(found, OnnxEncoder)
    return found


@pytest.fixture(scope="module")
def taught(encoder) -> Callable[..., Model]:
    """A model that has learned such pictures."""
    labels, pictures = zip(*draw(8), strict=True)
    features = encode_all(pictures, encoder).features

    def teach(method: str, **settings: Any) -> Model:
        if method == "prototypes":
            return Model(codes(features, labels), RecordedEncoder.of(encoder))
        model = Model.new(method, settings, encoder=RecordedEncoder.of(encoder))
        if method == "imagenet":
            model = beside_ten_classes(model)
        return model.learn(features, labels)[0]

    return teach


def codes(features: np.ndarray, labels: list[str]) -> Codes:
    """A network of random weights, as if it had been trained, and the means of its codes."""
    kept, random = {"network.feature_scale": np.float32(2)}, np.random.default_rng(0)
    for at, (inputs, outputs) in zip((0, 2), ((1280, 16), (16, 12)), strict=True):
        kept[f"network.encoder.{at}.weight"] = random.normal(size=(outputs, inputs)).astype(np.float32) / inputs**0.5
        kept[f"network.encoder.{at}.bias"] = random.normal(size=outputs).astype(np.float32)
    made = Codes({"layers": (16, 12)}, 0, 1, 1280, tuple(CLASSES), kept)
    means = [made.encode(features[[one == label for one in labels]]).mean(axis=0) for label in CLASSES]
    return replace(made, kept={**kept, "classes.means": np.stack(means)})


def beside_ten_classes(model: Model) -> Model:
    """With a part of the network's own head."""
    found = read_head("efficientnet_lite0")
    some = slice(None, 300, 30)
    return replace(model, learner=model.learner.adopt(found.names[some], found.weight[some], found.bias[some], 1280))


def answers(path: Path, pictures: np.ndarray) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip(OUTPUTS, session.run(OUTPUTS, {"pictures": pictures}), strict=True))


METHODS = [
    ("whitened", {}),
    ("imagenet", {}),
    ("prototypes", {}),
    ("whitened", {"width": 100, "kept_bits": 64}),
    ("whitened", {"transform": "none"}),
    ("ncm", {}),
    ("slda", {}),
    ("1nn", {}),
]


@pytest.mark.parametrize(("method", "settings"), METHODS)
def test_the_graph_answers_as_the_model_does(method, settings, encoder, taught, tmp_path):
    model = taught(method, **settings)
    assert export_model(model, tmp_path / "m.onnx")["difference"] <= TOLERANCE
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"), full_check=True)
    pictures = [each for _, each in draw(3, seed=1)]
    features = encode_all(pictures, encoder).features
    expected, novelty, temperature = model.learner.score(features)
    novelty = -expected.max(axis=1) if novelty is None else novelty
    odds = np.exp((expected - expected.max(axis=1, keepdims=True)) / temperature)
    for n in (1, 3, 9):  # any batch
        found = answers(tmp_path / "m.onnx", np.stack([np.asarray(each) for each in pictures[:n]]))
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(found["scores"], expected[:n], atol=TOLERANCE * scale)
        np.testing.assert_allclose(found["novelty"], novelty[:n], atol=TOLERANCE * max(1.0, np.abs(novelty).max()))
        if method != "slda":  # whose scores are in the thousands, and undivided
            np.testing.assert_allclose(found["probabilities"], (odds / odds.sum(1, keepdims=True))[:n], atol=1e-2)
        assert found["best"].tolist() == expected[:n].argmax(axis=1).tolist()
        assert found["label"].tolist() == [model.learner.labels[row] for row in found["best"]]


def test_a_head_alone(encoder, tmp_path):
    model = beside_ten_classes(Model.new("imagenet", encoder=RecordedEncoder.of(encoder)))
    assert export_model(model, tmp_path / "m.onnx")["difference"] <= TOLERANCE


def test_a_temperature_of_ones_own_is_in_the_graph(taught, tmp_path):
    model, pictures = taught("ncm"), np.stack([np.asarray(each) for _, each in draw(1, seed=1)])
    likely = []
    for temperature in (0.01, 1.0):
        export_model(replace(model, temperature=temperature), tmp_path / "m.onnx")
        likely.append(answers(tmp_path / "m.onnx", pictures)["probabilities"].max())
    assert likely[0] > 2 * likely[1]


@pytest.mark.parametrize(("height", "width"), [(64, 64), (90, 64), (70, 201), (31, 17)])
def test_pictures_of_any_size_are_resized_as_pillow_does(height, width, encoder, taught, tmp_path):
    model = taught("whitened")
    above = float(np.median(model.answer(encode_all([each for _, each in draw(3, seed=1)], encoder).features).novelty))
    export_model(model, tmp_path / "m.onnx", above)
    pictures = [each for _, each in draw(3, height, width, seed=1)]
    features = encode_all(pictures, encoder).features
    found = answers(tmp_path / "m.onnx", np.stack([np.asarray(each) for each in pictures]))
    np.testing.assert_allclose(found["scores"], model.learner.score(features).values, atol=5e-3)
    assert (found["unknown"] == (found["novelty"] > above)).all()
    assert 0 < found["unknown"].sum() < 9


def test_mirrored_features_are_averaged_in_the_graph(taught, tmp_path):
    mirrored = RecordedEncoder.of(create("efficientnet_lite0:mirror", size=64, device="cpu"))
    assert export_model(replace(taught("ncm"), encoder=mirrored), tmp_path / "m.onnx")["difference"] <= TOLERANCE


def test_the_metadata_say_what_goes_in_and_what_comes_out(encoder, taught, tmp_path):
    about = export_model(taught("ncm"), tmp_path / "m.onnx", -0.25)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["labels"]) == about["labels"] == sorted(CLASSES)
    assert json.loads(metadata["unknown_above"]) == -0.25
    assert json.loads(metadata["preprocess"])["size"] == 64
    assert metadata["encoder"] == encoder.identity.text
    assert (metadata["method"], "Apache-2.0" in metadata["licence"]) == ("ncm", True)
    (given,) = session.get_inputs()
    assert (given.name, given.type, given.shape) == ("pictures", "tensor(uint8)", ["batch", "height", "width", 3])
    assert [each.name for each in session.get_outputs()] == list(OUTPUTS)


def test_a_graph_that_answers_otherwise_is_not_written(encoder, taught, tmp_path):
    learner, out = taught("ncm").learner, tmp_path / "m.onnx"
    out.write_bytes(b"before")
    wrong = nearest_mean(learner.sums.means + 1e-3)
    with pytest.raises(ModelFileError):
        export(out, encoder, wrong, learner.score, labels=sorted(CLASSES), unknown_above=None, about={})
    assert out.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [out]


def test_what_cannot_be_exported_is_refused_and_nothing_written(taught, tmp_path):
    model, out = taught("whitened"), tmp_path / "m.onnx"
    refused = [
        (replace(model, encoder=None), out, "feature vectors"),
        (replace(model, encoder=RecordedEncoder.of(FakeEncoder())), out, "fake"),
        (replace(model, learner=replace(model.learner, recency=0.1)), out, "recency"),
        (Model.new(encoder=model.encoder), out, "no class"),
        (model, tmp_path / "m.pt2", "pt2"),
        (model, tmp_path / "missing" / "m.onnx", "missing"),
    ]
    for one, where, reason in refused:
        with pytest.raises(ValueError, match=reason):
            export_model(one, where)
    assert not list(tmp_path.iterdir())
