import pytest
import torch
from safetensors.torch import load_file
from seeing import normalised, random_pictures, see
from torch.nn import functional

from engram.backbones.registry import make
from engram.encoders.base import EncoderError

# Where torchvision numbers the convolutions, and where a max pooling comes before one: written out, not derived.
VGG16 = {"conv": (0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28), "pool_before": (5, 10, 17, 24)}
VGG19 = {"conv": (0, 2, 5, 7, 10, 12, 14, 16, 19, 21, 23, 25, 28, 30, 32, 34), "pool_before": (5, 10, 19, 28)}


def plain_vgg(state, layout, x, last):
    for index in layout["conv"]:
        if index > last:
            break
        if index in layout["pool_before"]:
            x = functional.max_pool2d(x, kernel_size=2, stride=2)
        x = functional.relu(
            functional.conv2d(x, state[f"features.{index}.weight"], state[f"features.{index}.bias"], padding=1)
        )
    return x


def random_state(layout, last, fc1=False):
    generator = torch.Generator().manual_seed(0)
    state, inputs = {}, 3
    for index in layout["conv"]:
        stage = sum(index >= pool for pool in layout["pool_before"])
        outputs = (64, 128, 256, 512, 512)[stage]
        if index <= last:
            weight = torch.randn(outputs, inputs, 3, 3, generator=generator) * (2 / (9 * inputs)) ** 0.5
            state[f"features.{index}.weight"] = weight
            state[f"features.{index}.bias"] = 0.1 * torch.randn(outputs, generator=generator)
        inputs = outputs
    if fc1:
        state["classifier.0.weight"] = torch.empty(4096, 25088).uniform_(-0.01, 0.01, generator=generator)
        state["classifier.0.bias"] = torch.randn(4096, generator=generator)
    return state


@pytest.mark.parametrize(
    ("name", "file", "layout", "last"),
    [
        ("vgg16", "vgg16_torchvision_conv4_1.safetensors", VGG16, 17),
        ("vgg19", "vgg19_oxford_conv4_1.safetensors", VGG19, 19),
    ],
)
def test_real_features_of_real_images_agree_with_a_plain_forward(
    name, file, layout, last, shared_weights, cifar_images
):
    backbone = make(name, weights=shared_weights / file)
    assert backbone.preprocess.fits(32, 32)  # CIFAR-100 at its native size, as in the paper
    got = see(backbone, cifar_images)

    state = load_file(shared_weights / file)
    expected = plain_vgg(state, layout, normalised(cifar_images), last).flatten(1)

    assert got.shape == (len(cifar_images), 8192) == (len(cifar_images), backbone.dim)
    assert (got - expected).norm() / expected.norm() < 1e-5
    assert (got - expected).abs().max() / expected.abs().max() < 1e-5
    rms = got.square().mean().sqrt().item()
    assert 5 < rms < 9  # over all of CIFAR-100 it is 6.83 for both files
    assert backbone.identity.text.startswith(f"{name}:conv4_1@32:sha256-")


@pytest.mark.parametrize(("name", "layout", "last"), [("vgg16", VGG16, 17), ("vgg19", VGG19, 19)])
def test_conv4_1_at_another_size_ignores_what_lies_beyond(name, layout, last):
    whole = random_state(layout, last=34)
    backbone = make(name, weights=whole, size=48)
    batch = random_pictures(2, 48)
    assert backbone.dim == 512 * 6 * 6
    expected = plain_vgg(whole, layout, normalised(batch), last).flatten(1)
    assert (see(backbone, batch) - expected).norm() / expected.norm() < 1e-5
    cut = random_state(layout, last)
    assert len(cut) < len(whole)
    assert make(name, weights=cut, size=48).identity.text == backbone.identity.text


def test_fc1_is_4096_features_after_the_first_fully_connected_layer():
    state = random_state(VGG16, last=34, fc1=True)
    backbone = make("vgg16", weights=state, layer="fc1")
    assert (backbone.dim, backbone.preprocess.size, backbone.preprocess.resize) == (4096, 224, "shorter")
    batch = random_pictures(1, 224)
    maps = functional.max_pool2d(plain_vgg(state, VGG16, normalised(batch), last=34), 2)
    assert maps.shape == (1, 512, 7, 7)
    expected = functional.relu(maps.flatten(1) @ state["classifier.0.weight"].T + state["classifier.0.bias"])
    got = see(backbone, batch)
    assert got.shape == (1, 4096)
    torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)
    assert backbone.identity.text.startswith("vgg16:fc1@224:sha256-")


def test_the_wrong_vgg_is_refused_and_the_keys_named(shared_weights):
    with pytest.raises(EncoderError, match=r"features\.16\.bias, features\.16\.weight|features\.16\.weight") as error:
        make("vgg19", weights=shared_weights / "vgg16_torchvision_conv4_1.safetensors")
    assert "vgg16_torchvision_conv4_1.safetensors" in str(error.value)


def test_bad_options():
    with pytest.raises(EncoderError, match="'conv5_1'"):
        make("vgg16", weights={}, layer="conv5_1")
    with pytest.raises(EncoderError, match="at least 8 pixels"):
        make("vgg16", weights={}, size=4)
