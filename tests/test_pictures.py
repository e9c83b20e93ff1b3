"""Pictures in, labels out."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from engram import IncrementalClassifier, ModelFileError, backbones
from engram.backbones import Backbone, Preprocess, recorded
from engram.images import extract

CONFIG = {"layers": (32, 16), "base_epochs": 30, "base_rate": 5e-3, "feature_rms": 1.0, "increment_epochs": 5}
SMALL = {"method": "prototypes", "config": CONFIG, "random_state": 0, "device": "cpu"}
COLOURS = {"red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200)}


def picture(colour: str, seed: int) -> Image.Image:
    noise = np.random.default_rng(seed).integers(-25, 25, (20, 28, 3))
    return Image.fromarray(np.clip(np.array(COLOURS[colour]) + noise, 0, 255).astype(np.uint8))


def pictures(*colours: str, n: int = 6, start: int = 0) -> tuple[list[Image.Image], list[str]]:
    made = [picture(colour, start + i) for colour in colours for i in range(n)]
    return made, [colour for colour in colours for _ in range(n)]


def averages(weight: float = 1.0) -> Backbone:
    """A backbone that takes no time: per-cell averages through one linear layer."""
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(12, 8))
    with torch.no_grad():
        generator = torch.Generator().manual_seed(0)
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * weight)
    return Backbone(network, name="averages@16", dim=8, preprocess=Preprocess(size=16))


def saved(folder: Path, images: list[Image.Image]) -> list[Path]:
    paths = [folder / f"{i}.png" for i in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        image.save(path)
    return paths


def test_every_form_of_picture_gives_the_same_answer(tmp_path):
    images, labels = pictures("red", "green")
    clf = IncrementalClassifier(backbone=averages(), **SMALL).fit(images, labels)
    clf.partial_fit(*pictures("blue"))
    tests, truth = pictures("red", "green", "blue", n=3, start=50)
    assert clf.predict(tests).tolist() == truth
    expected = clf.predict_proba(tests)
    paths = saved(tmp_path, tests)
    array = np.stack([np.asarray(image) for image in tests])
    for form in (paths, [str(path) for path in paths], np.array([str(path) for path in paths]), array, list(array)):
        np.testing.assert_array_equal(clf.predict_proba(form), expected)
    vectors = extract(tests, averages(), device="cpu").values
    np.testing.assert_array_equal(clf.predict_proba(vectors), expected)
    assert clf.n_features_in_ == 8


def test_the_embedded_backbone_works_by_name(tmp_path):
    clf = IncrementalClassifier(backbone="efficientnet_lite0", **SMALL)
    clf.fit(*pictures("red", "green", n=4)).partial_fit(*pictures("blue", n=4))
    clf.save(tmp_path / "m")
    loaded = IncrementalClassifier.load(tmp_path / "m", device="cpu")
    assert loaded.backbone == "efficientnet_lite0"
    assert loaded.backbone_identity_ == clf.backbone_identity_ == backbones.create("efficientnet_lite0").identity
    tests, truth = pictures("red", "green", "blue", n=2, start=50)
    assert loaded.predict(tests).tolist() == truth


def test_the_model_refuses_another_backbone(tmp_path):
    clf = IncrementalClassifier(backbone=averages(), **SMALL).fit(*pictures("red", "green"))
    clf.save(tmp_path / "m")
    tests, truth = pictures("red", "green", n=2, start=50)
    same = IncrementalClassifier.load(tmp_path / "m", backbone=averages(), device="cpu")
    assert same.predict(tests).tolist() == truth
    with pytest.raises(ValueError, match=r"taught with backbone averages@16:sha256-\w+, and this is averages"):
        IncrementalClassifier.load(tmp_path / "m", backbone=averages(1.5), device="cpu")
    # Without one, feature vectors still work; a picture says what is missing.
    blind = IncrementalClassifier.load(tmp_path / "m", device="cpu")
    vectors = extract(tests, averages(), device="cpu").values
    assert blind.predict(vectors).tolist() == truth
    with pytest.raises(ValueError, match="load it with backbone="):
        blind.predict(tests)
    blind.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_a_named_backbone_with_other_weights_is_refused(tmp_path, monkeypatch):
    @dataclasses.dataclass
    class Fake:
        weight: float

        def __call__(self, name: str) -> Backbone:
            return averages(self.weight)

    monkeypatch.setattr(recorded, "create", Fake(1.0))
    IncrementalClassifier(backbone="averages", **SMALL).fit(*pictures("red", "green")).save(tmp_path / "m")
    monkeypatch.setattr(recorded, "create", Fake(2.0))
    clf = IncrementalClassifier.load(tmp_path / "m", device="cpu")
    with pytest.raises(ValueError, match="the model was taught with backbone"):
        clf.predict(pictures("red")[0])


def test_a_model_of_vectors_takes_no_pictures(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(20, 5))
    clf = IncrementalClassifier(**SMALL).fit(vectors, ["a", "b"] * 10)
    with pytest.raises(ValueError, match=r"make it with IncrementalClassifier\(backbone='efficientnet_lite0'\)"):
        clf.predict(pictures("red")[0])
    assert clf.backbone_identity_ is None
    clf.save(tmp_path / "m")
    with pytest.raises(ValueError, match="load it without backbone="):
        IncrementalClassifier.load(tmp_path / "m", backbone=averages())


def test_bad_pictures_name_themselves_and_change_nothing(tmp_path):
    clf = IncrementalClassifier(backbone=averages(), **SMALL).fit(*pictures("red", "green"))
    clf.save(tmp_path / "m")
    paths = saved(tmp_path, pictures("blue")[0])
    paths[2].write_bytes(paths[2].read_bytes()[:60])
    with pytest.raises(ValueError, match=r"2\.png"):
        clf.partial_fit(paths, ["blue"] * 6)
    with pytest.raises(ValueError, match=r"missing\.png"):
        clf.predict([tmp_path / "missing.png"])
    clf.save(tmp_path / "after")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "after").read_bytes()


def test_no_picture_is_kept():
    from engram.testing import reachable_arrays

    images, labels = pictures("red", "green")
    clf = IncrementalClassifier(backbone=averages(), **SMALL).fit(images, labels)
    features = extract(images, averages(), device="cpu").values
    flat = {row.tobytes() for row in features}
    for values in reachable_arrays(clf):
        assert values.dtype != np.uint8
        if values.shape[-1:] == (8,):
            assert not flat & {row.tobytes() for row in values.reshape(-1, 8)}


def test_an_unknown_backbone_is_refused_before_anything_happens():
    with pytest.raises(ValueError, match="no backbone is called 'vgg99'"):
        IncrementalClassifier(backbone="vgg99", **SMALL).fit(*pictures("red", "green"))
    with pytest.raises(ModelFileError, match="cannot read"):
        IncrementalClassifier.load("nowhere", backbone=averages())
