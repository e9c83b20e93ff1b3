"""How classes are drawn: a colour of each, their places on a map, and their nearest neighbours."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn.functional import normalize

from engram.nn.distance import similarity

Array = np.ndarray[Any, Any]

_NEIGHBOURS = 3


@dataclass(frozen=True)
class Place:
    """One class: its position on the map, and the nearest classes with their similarity."""

    x: float
    y: float
    neighbours: list[tuple[int, float]]


@dataclass(frozen=True)
class ClassMap:
    """A place for each class; `shown` is the share of the distances between classes that the map keeps (0 to 1)."""

    places: list[Place]
    shown: float


def hue_of(name: str) -> float:
    """The colour of a class, in degrees: it follows from its name, and so stays whatever else is learned."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=2).digest()) % 360


def map_classes(vectors: Array, names: Sequence[str], before: dict[str, tuple[float, float]] | None = None) -> ClassMap:
    """Place the classes by one vector each, (classes, dimensions), turned to lie as they did in an earlier map."""
    if not len(vectors):
        return ClassMap([], 1.0)
    units = normalize(torch.from_numpy(vectors).double(), dim=1)
    cosines = similarity(units, units).clamp(-1, 1).numpy()
    points, shown = classical_mds(np.sqrt(2 - 2 * cosines))  # on the unit sphere, ‖u - v‖² = 2 - 2 u·v
    if shared := [i for i, name in enumerate(names) if name in (before or {})]:
        points = align(points, shared, np.array([(before or {})[names[i]] for i in shared]))
    nearest = np.argsort(-(cosines - 3 * np.eye(len(vectors))), axis=1, kind="stable")[:, :_NEIGHBOURS]
    places = []
    for i, (x, y) in enumerate(points):
        neighbours = [(int(j), round(float(cosines[i, j]), 4)) for j in nearest[i] if j != i]
        places.append(Place(round(float(x), 4), round(float(y), 4), neighbours))
    return ClassMap(places, shown)


def align(points: Array, rows: Sequence[int], targets: Array) -> Array:
    """Turn and mirror points about their centre so that these rows come as close as they can to where they were.

    Orthogonal Procrustes: the R that minimises ‖A R - B‖ is U Vᵀ of the singular value decomposition of AᵀB.
    """
    kept = points[list(rows)]
    left, _, right = np.linalg.svd((kept - kept.mean(axis=0)).T @ (targets - targets.mean(axis=0)))
    aligned: Array = points @ (left @ right)
    return aligned


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
    for axis in points.T:  # an eigenvector's sign is free: its largest entry is made positive
        axis *= np.sign(axis[np.abs(axis).argmax()]) or 1
    total = float(values.sum())
    return points, float(values[first].sum()) / total if total > 0 else 1.0
