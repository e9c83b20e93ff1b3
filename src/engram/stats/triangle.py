"""A symmetric matrix in half the room, and numbers in fewer bits without a bias."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

MANTISSA = 13  # bits of a float32's mantissa that a float16 does without
ERROR = 2**-10 / 6**0.5 / 1.4  # of such a rounding, relative to the number, root mean square
DTYPES: dict[int, np.dtype[Any]] = {16: np.dtype(np.float16), 32: np.dtype(np.float32), 64: np.dtype(np.float64)}


@dataclass(frozen=True)
class Triangle:
    """A symmetric matrix (d, d): its upper triangle as a rectangle (⌈d/2⌉, d + 1), times a unit.

    Row i of the rectangle holds row i of the triangle, which has d - i numbers, behind row d - 1 - i, which has i + 1.
    """

    packed: Array
    unit: float = 1.0
    is_rounded: bool = False  # as a model file has it

    @classmethod
    def of(cls, matrix: Array) -> "Triangle":
        """Pack a matrix; what lies below its diagonal is not looked at."""
        d = len(matrix)
        half = -(-d // 2)
        packed = np.zeros((half, d + 1), matrix.dtype)
        packed[:, 1:] = np.triu(matrix[:half])
        packed[:, :d] += np.tril(matrix[d - half :][::-1, ::-1])
        return cls(packed)

    @property
    def width(self) -> int:
        """d."""
        return int(self.packed.shape[1]) - 1

    @property
    def trace(self) -> float:
        """The sum of the diagonal."""
        half, d = len(self.packed), self.width
        top = self.packed[np.arange(half), np.arange(half) + 1]
        rest = np.arange(half, d)
        below = self.packed[d - 1 - rest, d - 1 - rest]
        return float(top.sum(dtype=np.float64) + below.sum(dtype=np.float64)) * self.unit

    def upper(self, dtype: Any, scale: float = 1.0) -> Array:
        """A matrix (d, d) whose upper triangle is this one's, times `scale`; what lies below it means nothing."""
        half, d = len(self.packed), self.width
        matrix = np.empty((d, d), dtype)
        matrix[d - half :] = self.packed[::-1, d - 1 :: -1]
        matrix[:half] = self.packed[:, 1:]
        matrix *= np.asarray(self.unit * scale, dtype)
        return matrix

    def unpack(self, dtype: Any, scale: float = 1.0) -> Array:
        """The upper triangle (d, d) times `scale`, zeros below it."""
        return np.triu(self.upper(dtype, scale))

    def _absolute(self, scale: float = 1.0) -> Array:
        exact = self.packed.astype(np.promote_types(self.packed.dtype, np.float32))
        exact *= np.asarray(self.unit * scale, exact.dtype)
        return exact

    def __add__(self, other: "Triangle") -> "Triangle":
        return Triangle(self._absolute() + other._absolute())

    def __sub__(self, other: "Triangle") -> "Triangle":
        return Triangle(self._absolute() - other._absolute())

    def scaled(self, factor: float) -> "Triangle":
        """Times a number."""
        return replace(self, unit=self.unit * factor)

    def rounded(self, bits: int, tasks: int, samples: int, random: np.random.Generator) -> "Triangle":
        """In so many bits, in units of its mean diagonal; in 32 where 16 would reach half of what ε adds to Σ.

        A random symmetric matrix whose entries have the size e has the norm 2·√d·e. Here e is the error of a rounding,
        and the errors of all tasks add up as a random walk does. ε adds d/N of the mean diagonal.
        """
        if self.is_rounded and self.packed.itemsize * 8 in (bits, max(bits, 32)):
            return self
        d, unit = self.width, self.trace / self.width
        unit = unit if unit > np.finfo(np.float32).tiny else 0.0
        packed = self._absolute(1 / unit if unit > 0 else 1.0)
        if bits == 16:
            size = (2 * np.square(packed, dtype=np.float64).sum()) ** 0.5 / d  # of an entry: half stand for all
            bits = 32 if 2 * d**0.5 * size * ERROR * (tasks + 1) ** 0.5 > 0.5 * d / samples else 16
        return Triangle(round_to(packed, bits, random), unit, is_rounded=True)


def round_to(values: Array, bits: int, random: np.random.Generator) -> Array:
    """Numbers in 16, 32 or 64 bits; to 16 they are rounded up or down at random, so that on average nothing is lost.

    Rounded to the nearest, what a few samples add to the statistics of very many would vanish, task after task. What 16
    bits hold exactly stays as it is.
    """
    dtype = DTYPES[bits]
    if values.dtype == dtype:
        return values
    if not (np.abs(values) <= np.finfo(dtype).max).all():
        raise ValueError("these features are too far from those learned before to be kept; scale them alike")
    if bits != 16:
        return values.astype(dtype)
    pattern = np.ascontiguousarray(values, np.float32).view(np.int32)
    noise = random.integers(2**MANTISSA, size=pattern.shape, dtype=np.int32)
    rounded: Array = ((pattern + noise) & -(2**MANTISSA)).view(np.float32).astype(np.float16)
    return rounded
