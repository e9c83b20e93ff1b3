"""A symmetric matrix in half the room, and numbers in fewer bits without a bias."""

import torch
from torch import Tensor

MANTISSA = 13  # bits of a float32's mantissa that a float16 does without
ERROR = 2**-10 / 6**0.5 / 1.4  # of such a rounding, relative to the number, root mean square
DTYPES = {16: torch.float16, 32: torch.float32, 64: torch.float64}


def pack(matrix: Tensor) -> Tensor:
    """The upper triangle of a symmetric matrix (d, d) as a rectangle (⌈d/2⌉, d + 1).

    Row i of the rectangle holds row i of the triangle, which has d - i numbers, behind row d - 1 - i, which has i + 1.
    """
    d = len(matrix)
    half = -(-d // 2)
    packed = matrix.new_empty(half, d + 1)
    packed[:, 0] = 0
    packed[:, 1:] = matrix[:half].triu()
    packed[:, :d] += matrix[d - half :].flip(0, 1).tril()
    return packed


def unpack_triangle(packed: Tensor, dtype: torch.dtype) -> Tensor:
    """The upper triangle (d, d) of the matrix that `pack` was given, zeros below it."""
    half, d = packed.shape[0], packed.shape[1] - 1
    triangle = packed.new_zeros(d, d, dtype=dtype)
    triangle[d - half :] = packed[:, :d].tril().flip(0, 1)
    triangle[:half] = packed[:, 1:].triu()
    return triangle


def round_to(values: Tensor, bits: int, generator: torch.Generator) -> Tensor:
    """Numbers in 16, 32 or 64 bits; to 16 they are rounded up or down at random, so that on average nothing is lost.

    Rounded to the nearest, what a few samples add to the statistics of very many would vanish, task after task.
    """
    if not values.abs().le(torch.finfo(DTYPES[bits]).max).all():
        raise ValueError("these features are too far from those learned before to be kept; scale them alike")
    if bits != 16:
        return values.to(DTYPES[bits])
    pattern = values.float().contiguous().view(torch.int32)
    noise = torch.randint(2**MANTISSA, pattern.shape, generator=generator, dtype=torch.int32, device=values.device)
    return pattern.add(noise).bitwise_and_(-(2**MANTISSA)).view(torch.float32).half()


def add(
    kept: Tensor | None,
    unit: Tensor | None,
    matrix: Tensor,
    bits: int,
    random: torch.Generator,
    tasks: int = 0,
    samples: int = 1,
) -> list[Tensor]:
    """A sum of scatters, packed and rounded, and its mean diagonal, which is the unit it is kept in."""
    packed = pack(matrix)
    if kept is not None and unit is not None:
        packed += kept.to(matrix.dtype) * unit.to(matrix.dtype)
    unit = unpack_triangle(packed, matrix.dtype).diagonal().mean().double()
    packed /= torch.where(unit > 0, unit, 1.0).to(matrix.dtype)
    return [round_to(packed, bits_needed(packed, bits, tasks, samples), random), unit]


def bits_needed(packed: Tensor, bits: int, tasks: int, samples: int) -> int:
    """32 bits in place of 16 where rounding would reach half of what ε adds to Σ, d/N of the mean diagonal.

    A random symmetric matrix whose entries have the size e has the norm 2·√d·e. Here e is the error of a rounding, and
    the errors of all tasks add up as a random walk does.
    """
    d = packed.shape[1] - 1
    size = float((2 * packed.double().square().sum()).sqrt()) / d  # of an entry: the triangle stands for all
    noise = 2 * d**0.5 * size * ERROR * (tasks + 1) ** 0.5
    return 32 if bits == 16 and noise > 0.5 * d / samples else bits
