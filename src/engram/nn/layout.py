"""What the tensors that a learner keeps have to be: their names, shapes, number formats and bounds.

A file can have a right checksum and still hold anything. With this it is refused when it is read, not when it is used.
"""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

SAMPLES = -1  # in a shape: as many as there are stored samples


class Kept(NamedTuple):
    """What one tensor has to be: its shape, its number format, the bounds of its values, and whether it may be missing.

    Bounds are numbers, or a tensor of one for each value.
    """

    shape: tuple[int, ...]
    dtypes: tuple[torch.dtype, ...] = (torch.float32,)
    least: float | Tensor | None = None
    most: float | Tensor | None = None
    optional: bool = False


Layout = dict[str, Kept]


def floats(*shape: int) -> Kept:
    """Numbers in 32 bits."""
    return Kept(shape)


def whole(*shape: int, least: int = 0, most: int | None = None) -> Kept:
    """Whole numbers in 64 bits, none of them negative."""
    return Kept(shape, (torch.int64,), least, most)


def linear(name: str, inputs: int, outputs: int) -> Layout:
    """A linear layer."""
    return {f"{name}.weight": floats(outputs, inputs), f"{name}.bias": floats(outputs)}


def samples(classes: int, features: int) -> Layout:
    """Stored samples and their classes."""
    return {"samples.features": floats(SAMPLES, features), "samples.targets": whole(SAMPLES, most=classes - 1)}


def require_layout(tensors: Mapping[str, Tensor], layout: Layout) -> None:
    """ValueError names the first tensor that is missing, one too many, or not what it has to be."""
    if missing := [name for name, kept in layout.items() if name not in tensors and not kept.optional]:
        raise ValueError(f"it has no {missing[0]}")
    if strange := sorted(tensors.keys() - layout.keys()):
        raise ValueError(f"it holds {strange[0]}, which a model of this method and these settings does not keep")
    stored = {size for name, t in tensors.items() for size in _stored(t, layout[name])}
    for name, tensor in tensors.items():
        kept = layout[name]
        if tensor.dtype not in kept.dtypes:
            raise ValueError(f"{name} is {_format(tensor.dtype)}, and not {' or '.join(map(_format, kept.dtypes))}")
        wanted = [min(stored) if size == SAMPLES and stored else size for size in kept.shape]
        if list(tensor.shape) != wanted:
            raise ValueError(f"{name} has the shape {list(tensor.shape)}, and not {wanted}")
        for bound, is_beyond in ((kept.least, torch.lt), (kept.most, torch.gt)):
            if bound is not None:
                beyond = tensor[is_beyond(tensor, torch.as_tensor(bound, device=tensor.device))]
                if beyond.numel():
                    raise ValueError(f"{name} holds {beyond[0].item():g}, which is out of its bounds")


def _stored(tensor: Tensor, kept: Kept) -> list[int]:
    return [n for n, size in zip(tensor.shape, kept.shape, strict=False) if size == SAMPLES]


def _format(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
