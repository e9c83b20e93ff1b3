"""Tensors kept in 8 bits with one scale per row, for what is not needed to the last digit.

Weights are spread evenly around zero and get evenly spaced levels. Importance is never negative and spans orders of
magnitude: its levels grow with the square, so that small values are told apart too. Rounding is random in proportion,
hence right on average: many small additions to Ω, each less than a level, still add up.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

CODES, SCALE = ".codes", ".scale"


def pack(tensor: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """The codes of a matrix and the scale of each row: int8 if it has a negative entry, else uint8."""
    signed = bool((tensor < 0).any())
    scale = tensor.abs().amax(dim=1, keepdim=True)
    unit = tensor / scale.clamp(min=torch.finfo(tensor.dtype).tiny)
    lower = (unit * 127 if signed else unit.sqrt() * 255).floor()
    below, above = _level(lower, signed), _level(lower + 1, signed)
    chance = (unit - below) / (above - below)
    drawn = torch.rand(tensor.shape, generator=generator, device=generator.device).to(tensor.device)
    codes = lower + (drawn < chance)
    return codes.clamp(max=127 if signed else 255).to(torch.int8 if signed else torch.uint8), scale


def unpack(codes: Tensor, scale: Tensor) -> Tensor:
    """The matrix that codes and scales stand for."""
    return _level(codes.to(scale.dtype), codes.dtype == torch.int8) * scale


def pack_all(tensors: Mapping[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
    """Every matrix as `NAME.codes` and `NAME.scale`; vectors are few and stay as they are."""
    packed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.ndim == 2:
            packed[name + CODES], packed[name + SCALE] = pack(tensor, generator)
        else:
            packed[name] = tensor
    return packed


def unpack_all(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `pack_all`; what was never packed passes."""
    tensors = {name: tensor for name, tensor in packed.items() if not name.endswith((CODES, SCALE))}
    for name in (name.removesuffix(CODES) for name in packed if name.endswith(CODES)):
        tensors[name] = unpack(packed[name + CODES], packed[name + SCALE])
    return tensors


def _level(codes: Tensor, signed: bool) -> Tensor:
    return codes / 127 if signed else (codes / 255).square()
