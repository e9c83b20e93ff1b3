"""ResNet-50 (He et al. 2015), under torchvision's keys, with the stride where the weights want it."""

from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from engram.backbones.base import Network
from engram.backbones.weights import Loaded, Weights, fit, load
from engram.encoders.base import EncoderError, Preprocess

Layer = Literal["pooled", "joined", "logits"]

_URL = "https://download.pytorch.org/models/resnet50-0676ba61.pth"


class Bottleneck(nn.Module):
    """1×1 down to a quarter of the width, 3×3, 1×1 up again, around a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int, stride_in: str) -> None:
        super().__init__()
        first, second = (stride, 1) if stride_in == "1x1" else (1, stride)
        self.conv1 = nn.Conv2d(inputs, width, 1, stride=first, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=second, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = nn.Sequential()
        if inputs != 4 * width:
            shortcut = nn.Conv2d(inputs, 4 * width, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(4 * width))

    def forward(self, batch: Tensor) -> Tensor:
        """Add the block's correction to its input."""
        out = torch.relu_(self.bn1(self.conv1(batch)))
        out = torch.relu_(self.bn2(self.conv2(out)))
        return torch.relu_(self.bn3(self.conv3(out)) + self.downsample(batch))


class ResNet50(nn.Module):
    """The network up to the global average (see :func:`resnet50` for the layers)."""

    def __init__(self, stride_in: str, layer: Layer) -> None:
        super().__init__()
        self.layer = layer
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        inputs, stages = 64, []
        for stage, count in enumerate((3, 4, 6, 3), start=1):
            width, blocks = 32 * 2**stage, []
            for index in range(count):
                blocks.append(Bottleneck(inputs, width, 2 if index == 0 and stage > 1 else 1, stride_in))
                inputs = 4 * width
            stages.append(nn.Sequential(*blocks))
        self.layer1, self.layer2, self.layer3, self.layer4 = stages
        self.fc = nn.Linear(2048, 1000) if layer == "logits" else nn.Sequential()

    def forward(self, batch: Tensor) -> Tensor:
        """Run the network."""
        out = torch.relu_(self.bn1(self.conv1(batch)))
        out = nn.functional.max_pool2d(out, 3, stride=2, padding=1)
        third = self.layer3(self.layer2(self.layer1(out)))
        pooled: Tensor = self.fc(self.layer4(third).mean((2, 3)))
        return torch.cat((third.mean((2, 3)), pooled), 1) if self.layer == "joined" else pooled


def resnet50(
    weights: Weights = None,
    layer: Layer = "pooled",
    size: int = 224,
    stride_in: Literal["1x1", "3x3"] | None = None,
) -> Network:
    """ResNet-50's global average, 2048-d; the shorter side of any picture is scaled to 224 px and the centre cropped.

    ``layer="joined"`` puts the average of the third stage (1024-d) before it, 3072-d in all from the same pass;
    ``"logits"`` goes on to the 1000 ImageNet classes.

    Two networks share one set of keys: ``stride_in="3x3"`` (v1.5: torchvision's, the default) and ``"1x1"`` (v1: the
    original of He et al., Caffe and Keras). Left out, it is what the file's safetensors metadata says under
    ``stride_in``; failing that ``"1x1"`` for a file with ``msra`` in its name, else ``"3x3"``.
    """
    loaded = load("resnet50", weights, url=_URL)
    placed = stride_in or _stride_of(loaded)
    if placed not in ("1x1", "3x3"):
        raise EncoderError(f"stride_in is {placed!r}; choose '3x3' (v1.5, torchvision) or '1x1' (v1)")
    with torch.device("meta"):
        network = ResNet50(placed, layer)
    fit(network, loaded, "torchvision's resnet50")
    dim = {"pooled": 2048, "joined": 1024 + 2048, "logits": 1000}[layer]
    name = f"resnet50:{layer},stride-in-{placed}@{size}"
    return Network(network, name, dim, Preprocess(size=size), fold=True)


def _stride_of(loaded: Loaded) -> str:
    return loaded.metadata.get("stride_in") or ("1x1" if "msra" in Path(loaded.source).name.lower() else "3x3")
