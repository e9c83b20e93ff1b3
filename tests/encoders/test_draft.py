"""A large JPEG need not be decoded whole, and an encoder that does not is another one than those of before."""

import io

import numpy as np
import pytest
from PIL import Image

from engram.encoders.base import Preprocess
from engram.encoders.recorded import RecordedEncoder
from engram.encoders.registry import create
from engram.images.decode import load_image
from engram.images.stream import encode_all, prepare

NAME = "efficientnet_lite0"


def photo(width: int, height: int, kind: str = "JPEG", **options: object) -> bytes:
    """Shapes of every size, the smaller the fainter, as in what a camera sees."""
    rng, pixels = np.random.default_rng(width), np.full((height, width, 3), 128.0)
    for octave in range(3, 9):
        coarse = rng.normal(0, 90 * 2.0 ** (2 - octave), (3 * 2**octave // 4, 2**octave, 3))
        layers = [Image.fromarray(coarse[..., c].astype(np.float32)).resize((width, height), 3) for c in range(3)]
        pixels += np.stack([np.asarray(layer) for layer in layers], axis=2)
    file = io.BytesIO()
    Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(file, kind, **options)
    return file.getvalue()


@pytest.fixture(scope="module")
def encoders():
    return create(NAME), create(NAME, draft=False)


def test_features_of_a_large_photo_are_nearly_those_of_all_its_pixels(encoders):
    one, other = (encode_all([photo(2400, 1800), photo(2700, 3600)], encoder).features for encoder in encoders)
    cosines = (one * other).sum(axis=1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
    assert cosines.min() >= 0.9998
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("picture", [photo(880, 660), photo(2400, 1800, "PNG")], ids=["small", "not a JPEG"])
def test_what_is_small_or_no_jpeg_is_decoded_as_before(encoders, picture):
    one, other = (prepare(picture, encoder.preprocess) for encoder in encoders)
    assert np.array_equal(one, other)


@pytest.mark.parametrize(
    ("enough", "size"), [(None, (1600, 1200)), (448, (800, 600)), (300, (400, 300)), (700, (1600, 1200))]
)
def test_sides_stay_as_long_as_is_enough(enough, size):
    assert load_image(photo(1600, 1200), enough=enough).size == size


def test_enough_is_twice_what_the_network_sees():
    assert Preprocess(size=224, draft=True).enough == 448
    assert Preprocess(size=224, resize_to=256, draft=True).enough == 512
    assert Preprocess(size=224).enough is None


def test_the_identity_tells_them_apart_and_makes_each_again(encoders):
    texts = [encoder.identity.text for encoder in encoders]
    assert texts[0] == f"{texts[1]}:draft"
    for encoder in encoders:
        made = RecordedEncoder(encoder.identity.text, NAME).open("cpu")
        assert (made.identity, made.preprocess) == (encoder.identity, encoder.preprocess)
