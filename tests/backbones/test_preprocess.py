import json

import numpy as np
import pytest
import torch
from PIL import Image

from engram.backbones import Preprocess


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_a_picture_of_the_right_size_passes_untouched(monkeypatch):
    picture = noise(32, 32)
    expected = picture.transpose(2, 0, 1)
    spec = Preprocess(size=32)
    assert np.array_equal(spec.image(Image.fromarray(picture)), expected)
    monkeypatch.setattr(Image, "fromarray", None)  # an array must not even become a PIL image
    assert np.array_equal(spec.image(picture), expected)
    assert spec.image(picture).flags.c_contiguous


def test_a_margin_is_cut_even_from_a_picture_of_the_right_size():
    spec = Preprocess(size=32, resize_to=40)
    assert not spec.fits(32, 32)
    assert not np.array_equal(spec.image(noise(32, 32)), noise(32, 32).transpose(2, 0, 1))


def test_shorter_side_then_centre_crop_by_hand():
    # 8 wide, 4 high, to 2: the shorter side halves, 4×2 remain, and the middle two of its columns stay. Each output
    # pixel of the "nearest" filter is the pixel at the centre of its 2×2 patch.
    columns = np.tile(np.arange(8, dtype=np.uint8)[None, :, None], (4, 1, 3))
    spec = Preprocess(size=2, interpolation="nearest")
    assert spec.image(columns)[0].tolist() == [[3, 5], [3, 5]]
    rows = np.ascontiguousarray(columns.transpose(1, 0, 2))
    assert spec.image(rows)[0].tolist() == [[3, 3], [5, 5]]


def test_exact_stretches_the_whole_picture():
    halves = np.zeros((10, 40, 3), np.uint8)
    halves[:, 20:] = 200
    stretched = Preprocess(size=4, resize="exact", interpolation="nearest").image(halves)
    assert stretched[1].tolist() == [[0, 0, 200, 200]] * 4


def test_native_leaves_any_shape():
    assert Preprocess(size=None, resize="native").image(noise(5, 9)).shape == (3, 5, 9)


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize(("height", "width"), [(375, 500), (500, 333), (224, 225), (20, 31), (7, 300), (224, 500)])
def test_equals_resizing_everything_and_then_cropping(height, width, interpolation):
    size, short = 48, 56
    picture = Image.fromarray(noise(height, width))
    scaled = (short, short * height // width) if width <= height else (short * width // height, short)
    whole = picture.resize(scaled, Image.Resampling[interpolation.upper()])
    left, top = round((scaled[0] - size) / 2), round((scaled[1] - size) / 2)
    expected = np.asarray(whole.crop((left, top, left + size, top + size))).transpose(2, 0, 1).astype(int)
    got = Preprocess(size=size, resize_to=short, interpolation=interpolation).image(picture)
    assert got.shape == (3, size, size)
    assert np.abs(got - expected).max() <= 1  # float against integer coordinates may round one level apart


def test_small_pictures_are_enlarged():
    assert Preprocess(size=224).image(noise(32, 32)).shape == (3, 224, 224)


def test_normalise_by_hand():
    batch = torch.tensor([0, 128, 255], dtype=torch.uint8).view(1, 3, 1, 1)
    spec = Preprocess(size=1, mean=(0.5, 0.4, 0.0), std=(0.5, 0.2, 2.0))
    got = spec.normalise(batch)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.flatten(), torch.tensor([-1.0, (128 / 255 - 0.4) / 0.2, 0.5]))


def test_key_is_stable_and_tells_specs_apart():
    spec = Preprocess(size=224)
    assert spec.key() == Preprocess(size=224).key()
    assert json.loads(spec.key()) == spec.describe()
    others = [Preprocess(size=223), Preprocess(resize="exact"), Preprocess(resize_to=256), Preprocess(std=(1, 1, 1))]
    others.append(Preprocess(interpolation="bicubic"))
    assert len({spec.key(), *(other.key() for other in others)}) == 6


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"resize": "longer"}, "'longer'"),
        ({"size": None}, "'native'"),
        ({"size": 0}, "size is 0"),
        ({"size": 224, "resize_to": 200}, "200"),
        ({"size": 224, "resize_to": 256, "resize": "exact"}, "resize='shorter'"),
        ({"interpolation": "cubic"}, "'cubic'"),
    ],
)
def test_impossible_specs_are_refused(fault, words):
    with pytest.raises(ValueError, match=words):
        Preprocess(**fault)


def test_wrong_inputs_are_refused():
    spec = Preprocess(size=8)
    with pytest.raises(ValueError, match="RGB"):
        spec.image(Image.new("L", (8, 8)))
    with pytest.raises(ValueError, match="uint8"):
        spec.image(np.zeros((8, 8, 3), np.float32))
    with pytest.raises(ValueError, match="uint8"):
        spec.normalise(torch.zeros(1, 3, 8, 8))


@pytest.mark.parametrize("size", [(500, 375), (333, 500), (224, 224), (100, 41), (2000, 301), (305, 300), (302, 300)])
@pytest.mark.parametrize(
    "spec",
    [
        Preprocess(size=224, interpolation="bicubic"),
        Preprocess(size=224, resize_to=256),
        Preprocess(size=64, resize="exact", interpolation="bicubic"),
    ],
)
def test_torch_resamples_as_pillow_does(size, spec):
    coarse = np.random.default_rng(0).integers(0, 256, (12, 16, 3), dtype=np.uint8)  # margins of 0, 1, 2 and 3 mod 4
    picture = Image.fromarray(coarse).resize(size, Image.Resampling.BICUBIC)
    batch = torch.from_numpy(np.asarray(picture).transpose(2, 0, 1).copy())[None]
    difference = np.abs(spec.resample(batch)[0].numpy().astype(int) - spec.image(picture))
    assert difference.max() <= 2
    assert difference.mean() < 0.2  # a pixel beside would be 1 at least


def test_what_torch_cannot_resample():
    for spec in (Preprocess(size=None, resize="native"), Preprocess(interpolation="lanczos")):
        assert not spec.traceable
        with pytest.raises(ValueError, match="cannot be traced"):
            spec.resample(torch.zeros(1, 3, 50, 50, dtype=torch.uint8))
