"""What a network knows before anybody teaches it: the linear layer that answers ImageNet's 1,000 classes."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from engram.backbones.base import BackboneError
from engram.backbones.efficientnet import packaged
from engram.backbones.registry import parse
from engram.backbones.weights import load

LICENCE = (
    "weights: Google's EfficientNet-Lite, Apache-2.0, trained on ImageNet (ILSVRC 2012), whose pictures are for "
    "research and education only; names: torchvision, BSD-3-Clause"
)


@dataclass(frozen=True)
class Head:
    """Logits are `weight` times the last features of a vector, plus `bias`; one row for each of the `names`."""

    names: list[str]
    weight: Tensor
    bias: Tensor


def read_head(name: str) -> Head:
    """The head of the backbone of this name; BackboneError for one that has none, or whose file is cut off before it.

    The layers "pooled" and "joined" end in the global average, which is what the head was trained on.
    """
    registered, options = parse(name)
    if not registered.startswith("efficientnet_lite") or options.get("layer", "pooled") not in ("pooled", "joined"):
        raise BackboneError(
            f"{name} has no ImageNet classes to begin with; efficientnet_lite0, efficientnet_lite1 and "
            "efficientnet_lite2 have, pooled or joined"
        )
    loaded = load(registered, None, file=packaged(registered))
    try:
        weight, bias = loaded.tensors["_fc.weight"], loaded.tensors["_fc.bias"]
    except KeyError as error:
        raise BackboneError(f"{loaded.source} holds no {error.args[0]}, and so no ImageNet classes") from None
    return Head(imagenet_names(), weight.detach().float(), bias.detach().float())


def imagenet_names() -> list[str]:
    """The classes, in the order of a network's outputs."""
    lines = (Path(__file__).parent / "imagenet.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]
