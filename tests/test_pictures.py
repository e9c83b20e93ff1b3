"""Pictures in, labels out."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from toys import COLOURS, averages

from engram import IncrementalClassifier, ModelFileError
from engram.encoders import registry
from engram.images.stream import encode_all
from engram.testing import reachable_arrays


def picture(colour: str, seed: int) -> Image.Image:
    noise = np.random.default_rng(seed).integers(-25, 25, (20, 28, 3))
    return Image.fromarray(np.clip(np.array(COLOURS[colour]) + noise, 0, 255).astype(np.uint8))


def pictures(*colours: str, n: int = 6, start: int = 0) -> tuple[list[Image.Image], list[str]]:
    made = [picture(colour, start + i) for colour in colours for i in range(n)]
    return made, [colour for colour in colours for _ in range(n)]


def saved(folder: Path, images: list[Image.Image]) -> list[Path]:
    paths = [folder / f"{i}.png" for i in range(len(images))]
    for path, image in zip(paths, images, strict=True):
        image.save(path)
    return paths


def test_every_form_of_picture_gives_the_same_answer(tmp_path):
    clf = IncrementalClassifier(backbone=averages()).fit(*pictures("red", "green")).partial_fit(*pictures("blue"))
    tests, truth = pictures("red", "green", "blue", n=3, start=50)
    assert clf.predict(tests).tolist() == truth
    expected = clf.predict_proba(tests)
    paths = saved(tmp_path, tests)
    array = np.stack([np.asarray(image) for image in tests])
    for form in (paths, [str(path) for path in paths], np.array([str(path) for path in paths]), array, list(array)):
        np.testing.assert_array_equal(clf.predict_proba(form), expected)
    np.testing.assert_array_equal(clf.predict_proba(encode_all(tests, averages()).features), expected)
    assert clf.n_features_in_ == 8


def test_the_embedded_backbone_works_by_name(tmp_path):
    clf = IncrementalClassifier(backbone="efficientnet_lite0")
    clf.fit(*pictures("red", "green", n=4)).partial_fit(*pictures("blue", n=4))
    clf.save(tmp_path / "m")
    loaded = IncrementalClassifier.load(tmp_path / "m")
    assert loaded.backbone == "efficientnet_lite0"
    tests, truth = pictures("red", "green", "blue", n=2, start=50)
    assert loaded.predict(tests).tolist() == truth


def test_the_model_refuses_another_backbone(tmp_path):
    clf = IncrementalClassifier(backbone=averages(name="one's own")).fit(*pictures("red", "green"))
    clf.save(tmp_path / "m")
    tests, truth = pictures("red", "green", n=2, start=50)
    assert IncrementalClassifier.load(tmp_path / "m", backbone=averages()).predict(tests).tolist() == truth
    with pytest.raises(ValueError, match="taught with encoder averages@16"):
        IncrementalClassifier.load(tmp_path / "m", backbone=averages(seed=1))
    # Without one, feature vectors still work; a picture says what is missing.
    blind = IncrementalClassifier.load(tmp_path / "m")
    assert blind.predict(encode_all(tests, averages()).features).tolist() == truth
    with pytest.raises(ValueError, match="one's own"):
        blind.predict(tests)
    blind.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


def test_a_named_backbone_with_other_weights_is_refused(tmp_path, monkeypatch):
    IncrementalClassifier(backbone="averages").fit(*pictures("red", "green")).save(tmp_path / "m")
    monkeypatch.setitem(registry._MAKERS, "averages", lambda name, device: averages(name, seed=1))
    with pytest.raises(ValueError, match="taught with encoder"):
        IncrementalClassifier.load(tmp_path / "m").predict(pictures("red")[0])


def test_a_model_of_vectors_takes_no_pictures(tmp_path):
    clf = IncrementalClassifier().fit(np.random.default_rng(0).normal(size=(20, 5)), ["a", "b"] * 10)
    with pytest.raises(ValueError, match="feature vectors"):
        clf.predict(pictures("red")[0])
    clf.save(tmp_path / "m")
    with pytest.raises(ValueError, match="without backbone="):
        IncrementalClassifier.load(tmp_path / "m", backbone=averages())


def test_bad_pictures_name_themselves_and_change_nothing(tmp_path):
    clf = IncrementalClassifier(backbone=averages()).fit(*pictures("red", "green"))
    before, paths = clf.model_, saved(tmp_path, pictures("blue")[0])
    paths[2].write_bytes(paths[2].read_bytes()[:60])
    with pytest.raises(ValueError, match=r"2\.png"):
        clf.partial_fit(paths, ["blue"] * 6)
    with pytest.raises(ValueError, match=r"missing\.png"):
        clf.predict([tmp_path / "missing.png"])
    assert clf.model_ is before


def test_no_picture_is_kept():
    images, labels = pictures("red", "green")
    clf = IncrementalClassifier(backbone=averages()).fit(images, labels)
    flat = {row.tobytes() for row in encode_all(images, averages()).features}
    for values in reachable_arrays(clf.model_.learner):
        assert values.dtype != np.uint8
        if values.shape[-1:] == (8,):
            assert not flat & {row.tobytes() for row in values.reshape(-1, 8)}


def test_an_unknown_backbone_is_refused_before_anything_happens():
    with pytest.raises(ValueError, match="'vgg99'"):
        IncrementalClassifier(backbone="vgg99").fit(*pictures("red", "green"))
    with pytest.raises(ModelFileError):
        IncrementalClassifier.load("nowhere", backbone=averages())
