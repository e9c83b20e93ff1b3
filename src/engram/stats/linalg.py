"""Cholesky and forward substitution in blocks, in the precision of the matrix: all the linear algebra there is.

numpy's own compute in float64 and copy: 188 MB and .18 s for a matrix of 2,432, against 107 MB and .05 s in blocks.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
BLOCK = 64


def cholesky(matrix: Array) -> Array:
    """U with UᵀU = A, in the place of A's upper triangle, and U⁻¹ in the place of its diagonal blocks.

    What lies below these blocks is not looked at. LinAlgError if A is not positive definite; A is lost then.
    """
    for start in range(0, len(matrix), BLOCK):
        own, behind = slice(start, start + BLOCK), slice(start + BLOCK, None)
        matrix[own, start:] -= matrix[:start, own].T @ matrix[:start, start:]
        inverse = np.linalg.inv(np.linalg.cholesky(matrix[own, own].T))
        matrix[own, own] = inverse.T
        matrix[own, behind] = inverse.astype(matrix.dtype) @ matrix[own, behind]
    return matrix


def solve(factor: Array, rows: Array) -> Array:
    """U⁻ᵀ of every row, U as `cholesky` left it."""
    solved = np.empty_like(rows)
    for start in range(0, len(factor), BLOCK):
        own = slice(start, start + BLOCK)
        solved[:, own] = (rows[:, own] - solved[:, :start] @ factor[:start, own]) @ factor[own, own]
    return solved
