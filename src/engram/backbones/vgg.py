"""VGG-16 and VGG-19 (Simonyan and Zisserman 2014), the extractors of the paper, under torchvision's keys."""

from typing import Literal

import torch
from torch import Tensor, nn

from engram.backbones.base import Network
from engram.backbones.weights import Weights, fit, load
from engram.encoders.base import EncoderError, Preprocess

Layer = Literal["conv4_1", "fc1"]

# Convolutions per stage; every stage but the first begins with a 2×2 max pooling, and all end their life at 512 maps.
_STAGES = {"vgg16": (2, 2, 3, 3, 3), "vgg19": (2, 2, 4, 4, 4)}
_CHANNELS = (64, 128, 256, 512, 512)

_URLS = {
    "vgg16": "https://download.pytorch.org/models/vgg16-397923af.pth",
    "vgg19": "https://download.pytorch.org/models/vgg19-dcbb9e9d.pth",
}


class VGG(nn.Module):
    """The network as far as the wanted layer, no further: a file cut off there is enough."""

    def __init__(self, stages: tuple[int, ...], layer: Layer) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        width = 3
        for stage, (count, channels) in enumerate(zip(stages, _CHANNELS, strict=True), start=1):
            last = stage == 4 and layer == "conv4_1"
            for _ in range(1 if last else count):
                layers += [nn.Conv2d(width, channels, 3, padding=1), nn.ReLU(inplace=True)]
                width = channels
            if last:
                break
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential()
        if layer == "fc1":
            # torchvision averages to 7×7 first, which leaves 224-pixel inputs alone and admits all others.
            self.classifier = nn.Sequential(nn.Linear(512 * 7 * 7, 4096), nn.ReLU(inplace=True))
        self.layer = layer

    def forward(self, batch: Tensor) -> Tensor:
        """Run the network as far as it goes."""
        features: Tensor = self.features(batch)
        if self.layer == "fc1":
            features = self.classifier(nn.functional.adaptive_avg_pool2d(features, 7).flatten(1))
        return features


def _vgg(name: str, weights: Weights, layer: Layer, size: int | None) -> Network:
    size = size or {"conv4_1": 32, "fc1": 224}[layer]
    smallest = {"conv4_1": 8, "fc1": 32}[layer]
    if size < smallest:
        raise EncoderError(f"size is {size}; {name} up to {layer} needs at least {smallest} pixels")
    with torch.device("meta"):  # nothing is drawn or stored for weights that are about to be replaced
        network = VGG(_STAGES[name], layer)
    fit(network, load(name, weights, url=_URLS[name]), f"torchvision's {name} as far as {layer}")
    dim = 512 * (size // 8) ** 2 if layer == "conv4_1" else 4096
    return Network(network, f"{name}:{layer}@{size}", dim, Preprocess(size=size))


def vgg16(weights: Weights = None, layer: Layer = "conv4_1", size: int | None = None) -> Network:
    """VGG-16 up to ``conv4_1`` + ReLU (512×4×4 = 8192-d at its default 32 px) or ``fc1`` + ReLU (4096-d, 224 px)."""
    return _vgg("vgg16", weights, layer, size)


def vgg19(weights: Weights = None, layer: Layer = "conv4_1", size: int | None = None) -> Network:
    """VGG-19, the paper's extractor: ``conv4_1`` (8192-d at 32 px) for CIFAR-100, ``fc1`` (4096-d, 224 px) for CUB."""
    return _vgg("vgg19", weights, layer, size)
