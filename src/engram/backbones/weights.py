"""Where pretrained weights come from, and how they get into a network.

For an encoder called NAME, in this order:

1. ``weights=``: a ``.safetensors``, ``.pth`` or ``.pt`` file, or a dictionary of tensors.
2. The folder named by the environment variable ``ENGRAM_WEIGHTS``: ``NAME.safetensors``, ``NAME.pth`` or ``NAME.pt``;
   failing that, the one file whose name starts with ``NAME_`` or ``NAME-`` (``vgg16-397923af.pth``,
   ``resnet50_msra.safetensors``). Several of either kind are an error: the choice is not ours.
3. The network's own source: torchvision's published file (cached by ``torch.hub``, checked by its hash), or timm.

Where only a model file names the encoder, nothing is fetched: see `engram.encoders.weights.without_downloads`.

Pickled files are only ever read with ``weights_only=True``. Keys a network does not need are ignored, so that a file
cut off after conv4_1 and torchvision's whole one serve alike.
"""

import os
import sys
import urllib.error
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import safetensors
import torch
from torch import Tensor, nn

from engram.encoders.base import EncoderError
from engram.encoders.weights import SUFFIXES, find_in_folder, require_download_allowed

Weights = str | os.PathLike[str] | Mapping[str, Tensor] | None


@dataclass(frozen=True)
class Loaded:
    """Tensors by name, where they came from, and what the file says about itself (safetensors only)."""

    tensors: Mapping[str, Tensor]
    source: str
    metadata: Mapping[str, str] = field(default_factory=dict)


def load(name: str, weights: Weights, *, url: str | None = None) -> Loaded:
    """Read the weights of the network called `name`, from the first place that has them; `url` is asked last."""
    if isinstance(weights, Mapping):
        return Loaded(weights, "the given tensors")
    path = Path(weights) if weights is not None else find_in_folder(name)
    if path is not None:
        return read(path)
    if url is None:
        raise EncoderError(f"the weights of {name} are not here; give weights= a file")
    return _download(name, url)


def read(path: Path) -> Loaded:
    """Read one file of tensors, without running anything it might hold."""
    path = path.expanduser()
    if path.suffix not in SUFFIXES:
        raise EncoderError(f"weights file {path} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if not path.is_file():
        raise EncoderError(f"weights file {path} does not exist")
    metadata: dict[str, str] = {}
    try:
        if path.suffix == ".safetensors":
            with safetensors.safe_open(path, framework="pt") as opened:
                metadata = opened.metadata() or {}
                tensors: Any = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118 (not a dict)
        else:
            tensors = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise EncoderError(f"weights file {path} cannot be read ({reason}); fetch or make it again") from None
    if not isinstance(tensors, Mapping) or not all(isinstance(value, Tensor) for value in tensors.values()):
        raise EncoderError(f"weights file {path} is not a plain dictionary of tensors; save model.state_dict() alone")
    return Loaded(tensors, str(path), metadata)


def _download(name: str, url: str) -> Loaded:
    file = Path(urlsplit(url).path).name
    target = Path(torch.hub.get_dir()) / "checkpoints" / file
    if not target.is_file():
        require_download_allowed(name, urlsplit(url).netloc)
    try:
        tensors = torch.hub.load_state_dict_from_url(
            url, map_location="cpu", progress=sys.stderr.isatty(), check_hash=True, weights_only=True
        )
    except (urllib.error.URLError, OSError, RuntimeError) as error:
        reason = str(getattr(error, "reason", error)).strip().partition("\n")[0]
        raise EncoderError(
            f"no weights for {name}: {url} cannot be had ({reason}); put {file} into {target.parent}, or into the "
            f"folder named by ENGRAM_WEIGHTS, or give weights= a file"
        ) from None
    return Loaded(tensors, url)


def fit(network: nn.Module, loaded: Loaded, what: str) -> None:
    """Put the tensors a network needs into it, as float32; one error lists all that is missing or misshapen."""
    wanted = network.state_dict()
    given: dict[str, Tensor] = {}
    missing, misshapen = [], []
    for key, expected in wanted.items():
        if key.endswith("num_batches_tracked"):
            given[key] = torch.zeros((), dtype=torch.long)  # only training reads it, and not every file has it
        elif key not in loaded.tensors:
            missing.append(key)
        elif loaded.tensors[key].shape != expected.shape:
            misshapen.append(f"{key} is {_shape(loaded.tensors[key])}, not {_shape(expected)}")
        else:
            tensor = loaded.tensors[key].detach()
            given[key] = tensor.to(torch.float32) if expected.is_floating_point() else tensor
    if missing or misshapen:
        faults = [_some(missing, "missing")] if missing else []
        faults += [_some(misshapen, "of the wrong shape")] if misshapen else []
        raise EncoderError(
            f"{loaded.source} does not hold {what}: {'; '.join(faults)}. "
            f"It has {_some(list(loaded.tensors), 'in all')}. Give weights= a file with the keys of {what}"
        )
    network.load_state_dict(given, assign=True)


def _shape(tensor: Tensor) -> str:
    return "×".join(map(str, tensor.shape)) or "a scalar"


def _some(items: list[str], what: str, shown: int = 4) -> str:
    more = ", …" if len(items) > shown else ""
    listed = f" ({', '.join(items[:shown])}{more})" if items else ""
    return f"{len(items)} {'key' if len(items) == 1 else 'keys'} {what}{listed}"
