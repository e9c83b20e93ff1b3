"""Any model of the timm library, pooled, by the name ``timm:NAME``."""

from typing import Any

import torch

from engram.backbones.base import Network
from engram.backbones.weights import Weights, fit, load
from engram.encoders.base import EncoderError, Preprocess
from engram.encoders.weights import require_download_allowed


def timm_model(model: str, weights: Weights = None, size: int | None = None) -> Network:
    """Take a timm model without its classifier; pictures are prepared as the model's own data configuration says.

    timm downloads and caches the pretrained weights itself unless `weights` gives a file with the model's own keys.
    `size` replaces the configured input size where the model allows it.
    """
    try:
        import timm
        from timm.data import resolve_model_data_config
    except ImportError as error:
        remedy = "install it with: pip install 'engram-learn[timm]'"
        raise EncoderError(f"timm:{model} needs timm ({error}); {remedy}") from None
    if weights is None:
        require_download_allowed(f"timm:{model}", "timm")
    try:
        network = timm.create_model(model, pretrained=weights is None, num_classes=0)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise EncoderError(
            f"timm cannot make {model!r} ({reason}); timm.list_models() names its models, and where the download fails "
            "weights= takes a file"
        ) from None
    if weights is not None:
        fit(network, load(f"timm:{model}", weights), f"timm's {model}")
    preprocess = _preprocess(resolve_model_data_config(network), size)
    side = preprocess.size or 224
    network.eval()
    with torch.no_grad():  # asked, not looked up: num_features is not the pooled width in every family
        dim = network(torch.zeros(1, 3, side, side)).flatten(1).shape[1]
    return Network(network, f"timm:{model}@{side}", dim, preprocess)


def _preprocess(config: dict[str, Any], size: int | None) -> Preprocess:
    size = size or int(config["input_size"][-1])
    squash = config.get("crop_mode") == "squash"
    interpolation = config["interpolation"]
    return Preprocess(
        size=size,
        resize="exact" if squash else "shorter",
        # timm scales the shorter side so that the crop is crop_pct of it.
        resize_to=None if squash else int(size / config["crop_pct"]),
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
        interpolation=interpolation if interpolation != "random" else "bicubic",
    )
