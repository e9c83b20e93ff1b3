"""What an encoder knows before anybody teaches it: the linear layer that answers ImageNet's 1,000 classes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from engram.encoders.base import EncoderError
from engram.encoders.efficientnet import SIZES
from engram.encoders.registry import parse, read_network

LICENCE = (
    "weights: Google's EfficientNet-Lite, Apache-2.0, trained on ImageNet (ILSVRC 2012), whose pictures are for "
    "research and education only; names: torchvision, BSD-3-Clause"
)


@dataclass(frozen=True)
class ImageNetHead:
    """Logits are `weight` times the last features of a vector, plus `bias`; one row for each of the `names`."""

    names: list[str]
    weight: NDArray[Any]
    bias: NDArray[Any]


def read_head(name: str) -> ImageNetHead:
    """The head of the encoder of this name; EncoderError for one that has none, or whose file is cut off before it.

    The layers "pooled" and "joined" end in the global average, which is what the head was trained on.
    """
    registered = name.partition(":")[0]
    if registered not in SIZES or parse(name)[1] not in ("pooled", "joined"):
        raise EncoderError(f"{name} has no ImageNet classes to begin with; {', '.join(SIZES)} have, pooled or joined")
    tensors = read_network(f"{registered}:logits").tensors
    try:
        weight, bias = tensors["_fc.weight"], tensors["_fc.bias"]
    except KeyError as error:
        raise EncoderError(f"the weights of {registered} hold no {error.args[0]}, and so no ImageNet classes") from None
    return ImageNetHead(imagenet_names(), weight, bias)


def imagenet_names() -> list[str]:
    """The classes, in the order of an encoder's outputs."""
    lines = (Path(__file__).parent / "imagenet.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]
