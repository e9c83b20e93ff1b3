import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from seeing import normalised, random_pictures, see
from torch.nn import functional

from engram.backbones.registry import make
from engram.encoders.base import EncoderError


@pytest.fixture(scope="module")
def state():
    """Random weights under torchvision's names, with batch-norm statistics that are not those of a fresh network."""
    generator = torch.Generator().manual_seed(0)
    tensors = {}

    def conv(conv_name, norm_name, outputs, inputs, kernel):
        scale = (2 / (inputs * kernel * kernel)) ** 0.5
        tensors[f"{conv_name}.weight"] = scale * torch.randn(outputs, inputs, kernel, kernel, generator=generator)
        tensors[f"{norm_name}.weight"] = 0.5 + torch.rand(outputs, generator=generator)
        tensors[f"{norm_name}.bias"] = 0.1 * torch.randn(outputs, generator=generator)
        tensors[f"{norm_name}.running_mean"] = 0.1 * torch.randn(outputs, generator=generator)
        tensors[f"{norm_name}.running_var"] = 0.5 + torch.rand(outputs, generator=generator)

    conv("conv1", "bn1", 64, 3, 7)
    inputs = 64
    for layer, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), 1):
        for block in range(blocks):
            at = f"layer{layer}.{block}"
            conv(f"{at}.conv1", f"{at}.bn1", width, inputs, 1)
            conv(f"{at}.conv2", f"{at}.bn2", width, width, 3)
            conv(f"{at}.conv3", f"{at}.bn3", 4 * width, width, 1)
            if block == 0:
                conv(f"{at}.downsample.0", f"{at}.downsample.1", 4 * width, inputs, 1)
            inputs = 4 * width
    tensors["fc.weight"] = 0.01 * torch.randn(1000, 2048, generator=generator)
    tensors["fc.bias"] = torch.randn(1000, generator=generator)
    return tensors


def plain_resnet50(state, x, stride_in):
    def conv(x, conv_name, norm_name, stride=1, padding=0):
        x = functional.conv2d(x, state[f"{conv_name}.weight"], stride=stride, padding=padding)
        norm = [state[f"{norm_name}.{part}"] for part in ("running_mean", "running_var", "weight", "bias")]
        return functional.batch_norm(x, *norm, training=False, eps=1e-5)

    x = functional.max_pool2d(functional.relu(conv(x, "conv1", "bn1", 2, 3)), 3, 2, 1)
    for layer, blocks in ((1, 3), (2, 4), (3, 6), (4, 3)):
        for block in range(blocks):
            at = f"layer{layer}.{block}"
            stride = 2 if layer > 1 and block == 0 else 1
            y = functional.relu(conv(x, f"{at}.conv1", f"{at}.bn1", stride if stride_in == "1x1" else 1))
            y = functional.relu(conv(y, f"{at}.conv2", f"{at}.bn2", stride if stride_in == "3x3" else 1, 1))
            y = conv(y, f"{at}.conv3", f"{at}.bn3")
            x = functional.relu(y + (conv(x, f"{at}.downsample.0", f"{at}.downsample.1", stride) if block == 0 else x))
    return functional.adaptive_avg_pool2d(x, 1).flatten(1)


@pytest.mark.parametrize("stride_in", ["1x1", "3x3"])
def test_agrees_with_a_plain_forward(state, stride_in):
    backbone = make("resnet50", weights=state, stride_in=stride_in, size=64)
    batch = random_pictures(2, 64)
    expected = plain_resnet50(state, normalised(batch), stride_in)
    got = see(backbone, batch)
    assert got.shape == (2, 2048) == (2, backbone.dim)
    assert (got - expected).norm() / expected.norm() < 1e-5
    other = plain_resnet50(state, normalised(batch), "3x3" if stride_in == "1x1" else "1x1")
    assert (got - other).norm() / other.norm() > 1e-2  # the placement matters, and shows in the identity
    assert f"stride-in-{stride_in}" in backbone.identity.text


def test_logits_are_the_head_on_the_pooled_features(state):
    batch = random_pictures(2, 64)
    pooled = see(make("resnet50", weights=state), batch)
    logits = see(make("resnet50", weights=state, layer="logits"), batch)
    torch.testing.assert_close(logits, pooled @ state["fc.weight"].T + state["fc.bias"], rtol=1e-4, atol=1e-4)


def test_joined_is_the_third_stage_before_the_pooled_features(state):
    pooled, joined = (make("resnet50", weights=state, layer=layer) for layer in ("pooled", "joined"))
    seen = []
    hooked = pooled._module.layer3.register_forward_hook(lambda module, inputs, output: seen.append(output.clone()))
    pictures = random_pictures(2, 64)
    expected, got = see(pooled, pictures), see(joined, pictures)
    hooked.remove()
    assert joined.dim == 1024 + 2048 == got.shape[1]
    torch.testing.assert_close(got[:, :1024], seen[0].mean((2, 3)))
    torch.testing.assert_close(got[:, 1024:], expected)
    assert joined.identity.text == pooled.identity.text.replace(":pooled,", ":joined,")


def test_where_the_stride_goes_when_nobody_says(state, tmp_path):
    headless = {key: value for key, value in state.items() if not key.startswith("fc.")}
    torch.save(headless, tmp_path / "resnet50-0676ba61.pth")
    torch.save(headless, tmp_path / "resnet50_MSRA.pth")
    save_file(headless, tmp_path / "mine.safetensors", metadata={"stride_in": "1x1"})

    def identity(file, **options):
        return make("resnet50", weights=tmp_path / file, **options).identity.text

    assert "stride-in-3x3" in identity("resnet50-0676ba61.pth")
    assert "stride-in-1x1" in identity("resnet50_MSRA.pth")
    assert "stride-in-1x1" in identity("mine.safetensors")
    assert "stride-in-3x3" in identity("mine.safetensors", stride_in="3x3")
    with pytest.raises(EncoderError, match="'2x2'"):
        identity("mine.safetensors", stride_in="2x2")


@pytest.fixture
def weights_folder():
    folder = Path(os.environ.get("ENGRAM_WEIGHTS", ""))
    if not (folder / "resnet50_msra.safetensors").is_file():
        pytest.skip("no resnet50_msra.safetensors in the folder ENGRAM_WEIGHTS names")
    return folder


def test_the_original_weights_know_an_albatross(weights_folder, albatrosses, probability_of_albatross):
    path = weights_folder / "resnet50_msra.safetensors"
    right, sure = probability_of_albatross(make("resnet50", weights=path, layer="logits"), albatrosses)
    assert right >= 0.8
    wrong_stride = make("resnet50", weights=path, layer="logits", stride_in="3x3")
    assert probability_of_albatross(wrong_stride, albatrosses)[1] < sure - 0.1
