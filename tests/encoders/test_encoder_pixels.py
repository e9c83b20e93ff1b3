"""The same pixels as before, whatever the shape."""

from dataclasses import asdict

import numpy as np
import pytest
from PIL import Image

from engram import backbones
from engram.encoders.base import Preprocess

SPECS = [
    {"size": 32, "interpolation": "bicubic"},
    {"size": 24, "resize_to": 30},
    {"size": 17, "resize": "exact", "interpolation": "lanczos"},
    {"size": 224, "interpolation": "bicubic", "mean": (0.5, 0.5, 0.5)},
    {"size": 9, "interpolation": "nearest"},
]


@pytest.mark.parametrize("spec", SPECS)
def test_pixels_are_those_of_before(spec):
    now, before, rng = Preprocess(**spec), backbones.Preprocess(**spec), np.random.default_rng(0)
    side = spec["size"]
    for width, height in [(side, side), (1, 1), (1, 50), (75, 2), (side + 1, side), (side, 3 * side), (301, 200)]:
        picture = Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8))
        np.testing.assert_array_equal(now.image(picture), before.image(picture).transpose(1, 2, 0))
        assert now.fits(height, width) == before.fits(height, width)
    assert now.key() == before.key()
    assert Preprocess(**{**asdict(now), "mean": (0.1, 0.1, 0.1)}).key() != now.key()


@pytest.mark.parametrize(
    "wrong", [{"size": 0}, {"resize": "squash"}, {"resize_to": 100}, {"resize": "exact", "resize_to": 300},
              {"interpolation": "magic"}],
)  # fmt: skip
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValueError, match=next(reversed(wrong))):
        Preprocess(**wrong)
