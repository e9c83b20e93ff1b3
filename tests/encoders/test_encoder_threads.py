"""An encoder as threads and devices meet it."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from engram.encoders.base import EncoderError
from engram.encoders.onnx import OnnxEncoder, devices
from engram.encoders.registry import create


@pytest.fixture(scope="module")
def encoder() -> OnnxEncoder:
    return create("efficientnet_lite0", size=64, device="cpu")


@pytest.fixture(scope="module")
def pictures() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (12, 64, 64, 3), dtype=np.uint8)


def test_threads_may_share_it_and_pieces_give_the_whole(encoder, pictures):
    whole = encoder.encode(pictures)
    with ThreadPoolExecutor(4) as pool:
        pieces = list(pool.map(encoder.encode, np.split(pictures, [1, 3, 4, 9])))
    np.testing.assert_allclose(np.concatenate(pieces), whole, atol=1e-5)


def test_no_pictures_make_no_features(encoder, pictures):
    for one in (encoder, create("efficientnet_lite0:mirror", size=64, device="cpu")):
        assert one.encode(pictures[:0]).shape == (0, 1280)


def test_what_is_not_prepared_is_refused(encoder, pictures):
    for wrong in (pictures[:, :32], pictures.astype(np.float32), pictures[0], pictures.transpose(0, 3, 1, 2)):
        with pytest.raises(EncoderError, match=r"takes uint8 pictures \(n, 64, 64, 3\)"):
            encoder.encode(wrong)


def test_a_thread_takes_two_pictures_at_a_time():
    assert create("efficientnet_lite0", device="cpu").batch == 2
    assert create("efficientnet_lite0:mirror", device="cpu").batch == 1


def test_devices():
    assert "cpu" in devices()
    with pytest.raises(EncoderError, match="unknown device 'abacus'"):
        create("efficientnet_lite0", device="abacus")
    missing = next(one for one in ("directml", "coreml", "cuda") if one not in devices())
    with pytest.raises(EncoderError, match=f"'{missing}' was asked for"):
        create("efficientnet_lite0", device=missing)
