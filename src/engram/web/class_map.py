"""What is shown of class means: a figure of each, how near they are to one another, and their places on a map."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_STRANDS = 48  # numbers in a figure
_NEIGHBOURS = 3


@dataclass(frozen=True)
class Look:
    """One class: the strands of its figure (what sets it apart from the middle of all, -1 to 1), its place, the hue of
    that (its direction from the middle, in degrees), and the classes nearest to it.
    """

    strands: list[float]
    hue: float
    x: float
    y: float
    neighbours: list[tuple[int, float]]


def look_at(means: Array) -> tuple[list[Look], float]:
    """Every class as it is shown, and how much of the distances between them the map shows (0 to 1)."""
    if not len(means):
        return [], 1.0
    norms = np.linalg.norm(means, axis=1, keepdims=True)
    units = means / np.where(norms > 0, norms, 1)
    cosines = np.clip(units @ units.T, -1, 1)
    places, shown = classical_mds(np.sqrt(2 - 2 * cosines))  # between points on the unit sphere: ‖u - v‖² = 2 - 2 u·v
    nearest = np.argsort(-(cosines - 3 * np.eye(len(means))), axis=1, kind="stable")[:, :_NEIGHBOURS]
    middle = units.mean(axis=0) if len(units) > 1 else 0
    looks = []
    for i, unit in enumerate(units):
        neighbours = [(int(j), round(float(cosines[i, j]), 4)) for j in nearest[i] if j != i]
        x, y = places[i]
        hue = round(math.degrees(math.atan2(y, x)) % 360, 1)
        looks.append(Look(strands(unit - middle), hue, round(x, 4), round(y, 4), neighbours))
    return looks, shown


def classical_mds(distances: Array) -> tuple[Array, float]:
    """Places in the plane whose distances are as near to these as a projection gets; and the share they show.

    With B = -½ J D² J, J = I - 11ᵀ/n, the coordinates are eigenvectors of B times the roots of their eigenvalues.
    """
    n = len(distances)
    centring = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centring @ (distances**2) @ centring)
    values = np.maximum(values, 0)
    first = np.argsort(-values, kind="stable")[:2]
    places = np.zeros((n, 2))
    places[:, : len(first)] = vectors[:, first] * np.sqrt(values[first])
    # Which way round is free: the entry that is largest decides, so that a map does not flip by itself.
    for axis in places.T:
        axis *= np.sign(axis[np.abs(axis).argmax()]) or 1
    total = float(values.sum())
    return places, float(values[first].sum()) / total if total > 0 else 1.0


def strands(vector: Array) -> list[float]:
    """A vector as few numbers: sums over neighbouring dimensions, the largest of them 1."""
    sums = np.array([part.sum() for part in np.array_split(vector, min(_STRANDS, len(vector)))])
    return [round(float(value), 3) for value in sums / (np.abs(sums).max() or 1)]
