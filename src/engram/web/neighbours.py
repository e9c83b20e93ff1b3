"""Which classes look alike: the nearest of each, by the cosine of their vectors."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Near = list[tuple[int, float]]  # the row of another class, and its similarity

_SHOWN = 3


def nearest_classes(vectors: Array) -> list[Near]:
    """The classes most similar to each, best first, by one vector each, (classes, dimensions)."""
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :_SHOWN]
    return [[(int(j), round(float(cosines[i, j]), 4)) for j in row if j != i] for i, row in enumerate(nearest)]
