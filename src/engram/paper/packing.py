"""Tensors kept in 8 or 4 bits with one scale per row, for what is not needed to the last digit.

Weights are spread evenly around zero and get evenly spaced levels. Importance is never negative and spans orders of
magnitude: its levels grow with the square, so that small values are told apart too. Rounding is random in proportion,
hence right on average: many small additions to Ω, each less than a level, still add up.
"""

from collections.abc import Mapping
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
CODES, NIBBLES, SCALE = ".codes", ".nibbles", ".scale"


def pack(tensor: Tensor, generator: torch.Generator, bits: int = 8) -> tuple[Tensor, Tensor]:
    """The codes of a matrix and the scale of each row: int8 if it has a negative entry, else uint8 below 2^bits."""
    signed = bool((tensor < 0).any())
    largest = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
    scale = tensor.abs().amax(dim=1, keepdim=True)
    unit = tensor / scale.clamp(min=torch.finfo(tensor.dtype).tiny)
    lower = (unit * largest if signed else unit.sqrt() * largest).floor()
    below, above = _level(lower, largest, signed), _level(lower + 1, largest, signed)
    chance = (unit - below) / (above - below)
    drawn = torch.rand(tensor.shape, generator=generator, device=generator.device).to(tensor.device)
    codes = lower + (drawn < chance)
    return codes.clamp(max=largest).to(torch.int8 if signed else torch.uint8), scale


def unpack(codes: Tensor, scale: Tensor, bits: int = 8) -> Tensor:
    """The matrix that codes and scales stand for."""
    signed = codes.dtype == torch.int8
    largest = 2 ** (bits - 1) - 1 if signed else 2**bits - 1
    return _level(codes.to(scale.dtype), largest, signed) * scale


def pack_all(tensors: Mapping[str, Tensor], generator: torch.Generator, bits: int = 8) -> dict[str, Tensor]:
    """Every matrix as `NAME.codes` and `NAME.scale`; vectors are few and stay as they are.

    With 32 bits everything stays as it is. With 4 bits two neighbours of a row share a byte of `NAME.nibbles`; that
    needs rows of even length and no negative entry, and a matrix without keeps 8.
    """
    packed: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.ndim != 2 or bits == 32:
            packed[name] = tensor
        elif bits == 4 and tensor.shape[1] % 2 == 0 and not (tensor < 0).any():
            codes, packed[name + SCALE] = pack(tensor, generator, bits)
            packed[name + NIBBLES] = codes[:, ::2] * 16 + codes[:, 1::2]
        else:
            packed[name + CODES], packed[name + SCALE] = pack(tensor, generator)
    return packed


def unpack_all(packed: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inverse of `pack_all`; what was never packed passes."""
    tensors: dict[str, Tensor] = {}
    for name, tensor in packed.items():
        if name.endswith(CODES):
            whole = name.removesuffix(CODES)
            tensors[whole] = unpack(tensor, packed[whole + SCALE])
        elif name.endswith(NIBBLES):
            whole = name.removesuffix(NIBBLES)
            codes = torch.stack([tensor // 16, tensor % 16], dim=2).flatten(1)
            tensors[whole] = unpack(codes, packed[whole + SCALE], bits=4)
        elif not name.endswith(SCALE):
            tensors[name] = tensor
    return tensors


def below(prefix: str, tensors: Mapping[str, T]) -> dict[str, T]:
    """Those whose names begin so, without that beginning."""
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _level(codes: Tensor, largest: int, signed: bool) -> Tensor:
    return codes / largest if signed else (codes / largest).square()
