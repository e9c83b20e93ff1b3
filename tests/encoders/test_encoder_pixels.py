"""How a picture becomes what an encoder takes, whatever its shape."""

import numpy as np
import pytest
from PIL import Image

from engram.encoders.base import Preprocess

SIDES = [(32, 32), (1, 1), (1, 50), (75, 2), (33, 32), (32, 96), (301, 200)]


@pytest.mark.parametrize("interpolation", ["nearest", "bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize(("size", "resize_to"), [(32, None), (24, 30), (224, None)])
def test_it_equals_resizing_everything_and_then_cropping(size, resize_to, interpolation):
    """By torchvision's rules: the longer side rounds down, the margin to the even number."""
    preprocess = Preprocess(size=size, resize_to=resize_to, interpolation=interpolation)
    for width, height in SIDES:
        picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))
        short = resize_to or size
        wide, tall = (short * side // min(width, height) for side in (width, height))
        left, top = round((wide - size) / 2), round((tall - size) / 2)
        whole = picture.resize((wide, tall), Image.Resampling[interpolation.upper()])
        expected = np.asarray(whole.crop((left, top, left + size, top + size)), int)
        most = 0 if interpolation == "nearest" and width == height else 255 if interpolation == "nearest" else 2
        assert np.abs(preprocess.image(picture).astype(int) - expected).max() <= most


def test_what_fits_passes_untouched_and_exact_stretches():
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
    assert np.array_equal(Preprocess(size=32).image(Image.fromarray(pixels)), pixels)
    wide = Image.fromarray(np.repeat(pixels, 3, axis=1))
    stretched = Preprocess(size=32, resize="exact", interpolation="nearest").image(wide)
    assert np.array_equal(stretched, pixels)


def test_the_key_is_that_of_the_files_of_before():
    assert Preprocess(size=32).key() == (
        '{"interpolation":"bilinear","mean":[0.485,0.456,0.406],"resize":"shorter","resize_to":null,"size":32,'
        '"std":[0.229,0.224,0.225]}'
    )
    assert len({Preprocess(size=32, **one).key() for one in ({}, {"resize_to": 40}, {"mean": (0.5, 0.5, 0.5)})}) == 3


@pytest.mark.parametrize(
    "wrong", [{"size": 0}, {"resize": "squash"}, {"resize_to": 100}, {"resize": "exact", "resize_to": 300},
              {"interpolation": "magic"}],
)  # fmt: skip
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValueError, match=next(reversed(wrong))):
        Preprocess(**wrong)
