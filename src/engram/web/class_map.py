"""How classes are drawn: a figure and a colour of each, their places on a map, and their nearest neighbours."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import normalize

from engram.nn.distance import similarity

Array = np.ndarray[Any, Any]

_STRANDS = 48  # numbers in a figure
_NEIGHBOURS = 3


@dataclass(frozen=True)
class Place:
    """One class: the strands of its figure (how it differs from the mean of all classes, -1 to 1), its position on
    the map, its hue (the direction from the map's centre, in degrees), and the nearest classes with their similarity.
    """

    strands: list[float]
    hue: float
    x: float
    y: float
    neighbours: list[tuple[int, float]]


@dataclass(frozen=True)
class ClassMap:
    """A place for each class; `shown` is the share of the distances between classes that the map keeps (0 to 1)."""

    places: list[Place]
    shown: float


def map_classes(vectors: Array) -> ClassMap:
    """Place the classes by one vector each, (classes, dimensions)."""
    if not len(vectors):
        return ClassMap([], 1.0)
    units = normalize(torch.from_numpy(vectors).double(), dim=1)
    cosines = similarity(units, units).clamp(-1, 1).numpy()
    points, shown = classical_mds(np.sqrt(2 - 2 * cosines))  # on the unit sphere, ‖u - v‖² = 2 - 2 u·v
    nearest = np.argsort(-(cosines - 3 * np.eye(len(vectors))), axis=1, kind="stable")[:, :_NEIGHBOURS]
    mean = units.mean(dim=0) if len(units) > 1 else 0
    places = []
    for i, (offset, (x, y)) in enumerate(zip((units - mean).numpy(), points, strict=True)):
        neighbours = [(int(j), round(float(cosines[i, j]), 4)) for j in nearest[i] if j != i]
        hue = round(math.degrees(math.atan2(y, x)) % 360, 1)
        places.append(Place(strands(offset), hue, round(x, 4), round(y, 4), neighbours))
    return ClassMap(places, shown)


def classical_mds(distances: Array) -> tuple[Array, float]:
    """Points in the plane whose distances are as close to these as a projection gets, and the share it keeps.

    With B = -½ J D² J, J = I - 11ᵀ/n, the coordinates are eigenvectors of B times the roots of their eigenvalues.
    """
    n = len(distances)
    centring = np.eye(n) - 1 / n
    values, vectors = np.linalg.eigh(-0.5 * centring @ (distances**2) @ centring)
    values = np.maximum(values, 0)
    first = np.argsort(-values, kind="stable")[:2]
    points = np.zeros((n, 2))
    points[:, : len(first)] = vectors[:, first] * np.sqrt(values[first])
    for axis in points.T:  # an eigenvector's sign is free: its largest entry is made positive, so that no map flips
        axis *= np.sign(axis[np.abs(axis).argmax()]) or 1
    total = float(values.sum())
    return points, float(values[first].sum()) / total if total > 0 else 1.0


def strands(vector: Array) -> list[float]:
    """A vector as few numbers: sums over neighbouring dimensions, scaled so that the largest is ±1."""
    sums = np.array([part.sum() for part in np.array_split(vector, min(_STRANDS, len(vector)))])
    return [round(float(value), 3) for value in sums / (np.abs(sums).max() or 1)]
