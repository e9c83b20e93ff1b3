"""The exported graph answers as the model does, from pixels to a label."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from PIL import Image

from engram.backbones.imagenet import read_head
from engram.encoders.onnx import OnnxEncoder
from engram.encoders.registry import create
from engram.errors import ModelFileError
from engram.files.export import OUTPUTS, TOLERANCE, export
from engram.files.steps import (
    Step,
    Steps,
    beside_head,
    code,
    head,
    linear,
    nearest_mean,
    nearest_sample,
    signed_root,
    whitened,
)
from engram.images.stream import encode_all
from engram.learner import Learner
from engram.methods import find_method, imagenet
from engram.methods.whitened import Whitened
from engram.nn import projection
from engram.nn.whitening import BACKGROUND

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


def ten_classes() -> tuple[list[str], torch.Tensor, torch.Tensor]:
    """A part of the network's own head."""
    found = read_head("efficientnet_lite0")
    return found.names[:300:30], found.weight[:300:30], found.bias[:300:30]


@pytest.fixture(scope="module")
def taught(encoder) -> Callable[..., Learner]:
    """A learner of today's that has learned such pictures."""
    labels, pictures = zip(*draw(8), strict=True)
    features = encode_all(pictures, encoder).features

    def teach(method: str, **settings: Any) -> Learner:
        learner = find_method(method)(find_method(method).configure(settings), device="cpu")
        if method == "imagenet":
            learner.adopt(*ten_classes(), 1280)
        learner.learn(features, list(labels))
        return learner

    return teach


def steps_of(learner: Any) -> Steps:
    """What a learner's `score` computes, from its arrays."""
    kept = {name: tensor.numpy() for name, tensor in learner.tensors.items()}
    if learner.method == "ncm":
        return nearest_mean(kept["classes.means"])
    if learner.method == "slda":
        return linear(kept["network.head.weight"], kept["network.head.bias"])
    if learner.method == "1nn":
        return nearest_sample(kept["samples.features"], kept["samples.targets"])
    if learner.method == "prototypes":
        layers = [(kept[f"network.encoder.{at}.weight"], kept[f"network.encoder.{at}.bias"]) for at in (0, 2)]
        return [*code(kept["network.feature_scale"], layers), *nearest_mean(kept["classes.means"], "code")]
    if learner.method == "imagenet":
        weight, bias = (learner.head[f"network.imagenet.{part}"].float().numpy() for part in ("weight", "bias"))
        first = head(weight, bias, learner._shown().numpy())
        if not learner.labels[: -len(learner.built_in)]:
            return first
        said, n = kept["classes.said"].astype(np.float32), kept["consolidation.alike"].sum()
        weights = np.r_[kept["consolidation.alike"], imagenet.DOUBT] / (n + imagenet.DOUBT) / imagenet.LOST
        middles = np.r_[(np.arange(imagenet.BINS) + 0.5) / imagenet.BINS, imagenet.USUAL]
        widths = np.r_[np.full(imagenet.BINS, imagenet.SPREAD * (1 + n) ** -0.2), imagenet.SPREAD]
        directions, heat = said / np.linalg.norm(said, axis=1, keepdims=True), Whitened.temperature.fget(learner)
        return [*first, *beside_head(whitened_steps(learner, kept), heat, directions, middles, widths, weights)]
    return whitened_steps(learner, kept)


def whitened_steps(learner: Any, kept: dict[str, np.ndarray]) -> Steps:
    space, unit = learner._space().traceable(), float(kept["network.unit"])
    rows, inverse = space.spread()
    lengths = torch.maximum(space.squares - space.noise, space.squares / 10).sqrt()
    spread = space.means[rows].T @ torch.linalg.cholesky(inverse)
    mapped = [*signed_root()]
    if learner.config.width:
        mapped.append(Step("z", "MatMul", ("z", projection.signs(1280, learner.config.width, learner.seed).numpy())))
    arrays = (
        each.numpy() for each in (space.origin * unit, space.solved / unit, space.means, space.squares, lengths, spread)
    )
    return [*mapped, *whitened(*arrays, BACKGROUND)]


def score_of(learner: Any) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray | None, float]]:
    return lambda x: (learner.scores(x), -learner.familiarity(x), learner.temperature)


def write(out: Path, encoder: OnnxEncoder, learner: Learner, **changes: Any) -> dict[str, Any]:
    labels = [str(label) for label in learner.labels]
    options = {"labels": labels, "unknown_above": None, "about": {"method": learner.method, "licence": "yours"}}
    return export(out, encoder, steps_of(learner), score_of(learner), **options | changes)


def answers(path: Path, pictures: np.ndarray) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip(OUTPUTS, session.run(OUTPUTS, {"pictures": pictures}), strict=True))


QUICK = {"layers": (16, 12), "base_epochs": 20, "base_rate": 5e-3, "increment_epochs": 3}
METHODS = [
    ("whitened", {}),
    ("imagenet", {}),
    ("prototypes", QUICK),
    ("whitened", {"width": 100, "kept_bits": 64}),
    ("ncm", {}),
    ("slda", {}),
    ("1nn", {}),
]


@pytest.mark.parametrize(("method", "settings"), METHODS)
def test_the_graph_scores_as_the_learner_does(method, settings, encoder, taught, tmp_path):
    learner = taught(method, **settings)
    assert write(tmp_path / "m.onnx", encoder, learner)["difference"] <= TOLERANCE
    onnx.checker.check_model(onnx.load(tmp_path / "m.onnx"), full_check=True)
    pictures = [each for _, each in draw(3, seed=1)]
    features = encode_all(pictures, encoder).features
    expected = learner.scores(features)
    novelty = -learner.familiarity(features)
    likely = torch.from_numpy(expected.astype(np.float64) / learner.temperature).softmax(dim=1).numpy()
    for n in (1, 3, 9):  # any batch
        found = answers(tmp_path / "m.onnx", np.stack([np.asarray(each) for each in pictures[:n]]))
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(found["scores"], expected[:n], atol=TOLERANCE * scale)
        np.testing.assert_allclose(found["novelty"], novelty[:n], atol=TOLERANCE * max(1.0, np.abs(novelty).max()))
        if method != "slda":  # whose scores are in the thousands, and undivided
            np.testing.assert_allclose(found["probabilities"], likely[:n], atol=1e-2)
        assert found["best"].tolist() == expected[:n].argmax(axis=1).tolist()
        assert found["label"].tolist() == [learner.labels[row] for row in found["best"]]
        assert not found["unknown"].any()


def test_a_head_alone(encoder, tmp_path):
    learner = imagenet.BesideImageNet(device="cpu")
    learner.adopt(*ten_classes(), 1280)
    assert write(tmp_path / "m.onnx", encoder, learner)["difference"] <= TOLERANCE


@pytest.mark.parametrize(("height", "width"), [(64, 64), (90, 64), (70, 201), (31, 17)])
def test_pictures_of_any_size_are_resized_as_pillow_does(height, width, encoder, taught, tmp_path):
    learner = taught("whitened")
    below = float(np.median(learner.familiarity(encode_all([each for _, each in draw(3, seed=1)], encoder).features)))
    write(tmp_path / "m.onnx", encoder, learner, unknown_above=-below)
    pictures = [each for _, each in draw(3, height, width, seed=1)]
    features = encode_all(pictures, encoder).features
    found = answers(tmp_path / "m.onnx", np.stack([np.asarray(each) for each in pictures]))
    np.testing.assert_allclose(found["scores"], learner.scores(features), atol=5e-3)
    assert (found["unknown"] == (found["novelty"] > -below)).all()
    assert 0 < found["unknown"].sum() < 9


def test_mirrored_features_are_averaged_in_the_graph(taught, tmp_path):
    mirrored = create("efficientnet_lite0:mirror", size=64, device="cpu")
    assert write(tmp_path / "m.onnx", mirrored, taught("ncm"))["difference"] <= TOLERANCE


def test_the_metadata_say_what_goes_in_and_what_comes_out(encoder, taught, tmp_path):
    about = write(tmp_path / "m.onnx", encoder, taught("ncm"), unknown_above=-0.25)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    metadata = session.get_modelmeta().custom_metadata_map
    assert json.loads(metadata["labels"]) == about["labels"] == sorted(CLASSES)
    assert json.loads(metadata["unknown_above"]) == -0.25
    assert json.loads(metadata["preprocess"])["size"] == 64
    assert metadata["encoder"] == encoder.identity.text
    assert (metadata["method"], metadata["licence"]) == ("ncm", "yours")
    (given,) = session.get_inputs()
    assert (given.name, given.type, given.shape) == ("pictures", "tensor(uint8)", ["batch", "height", "width", 3])
    assert [each.name for each in session.get_outputs()] == list(OUTPUTS)


def test_a_graph_that_answers_otherwise_is_not_written(encoder, taught, tmp_path):
    learner, out = taught("ncm"), tmp_path / "m.onnx"
    out.write_bytes(b"before")
    wrong = nearest_mean(learner.tensors["classes.means"].numpy() + 1e-3)
    with pytest.raises(ModelFileError, match="differ"):
        export(out, encoder, wrong, score_of(learner), labels=sorted(CLASSES), unknown_above=None, about={})
    assert out.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [out]
    with pytest.raises(ValueError, match="missing"):
        write(tmp_path / "missing" / "m.onnx", encoder, learner)
