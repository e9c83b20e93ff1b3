"""Coarser names for classes: wren, Troglodytidae, bird. Where no class is likely enough, a coarser name may be."""

import csv
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engram.names import SURE


def read_taxonomy(file: str | Path) -> dict[str, str]:
    """The parent of each name, from a CSV or TSV file of lines `class,parent,grandparent,…`, as long as one likes.

    A first line that begins with "class" is its header. ValueError if it is no such file, if a name has two parents, or
    if one is above itself.
    """
    file = Path(file).expanduser()
    parents: dict[str, str] = {}
    try:
        with file.open(encoding="utf-8-sig", newline="") as text:
            reader = csv.reader(text, delimiter="\t" if file.suffix.lower() == ".tsv" else ",")
            for number, row in enumerate(reader, 1):
                names = [name.strip() for name in row if name.strip()]
                if number == 1 and names[:1] == ["class"]:
                    continue
                for name, parent in itertools.pairwise(names):
                    if parents.setdefault(name, parent) != parent:
                        raise ValueError(
                            f"{file}, line {reader.line_num}: the parent of {name} is {parent} here, "
                            f"but was {parents[name]} before"
                        )
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"cannot read {file}: {getattr(error, 'strerror', None) or error}") from error
    for name in parents:
        if name in ancestors(name, parents):
            raise ValueError(f"{file}: {name} is above itself")
    return parents


def ancestors(name: str, parents: Mapping[str, str]) -> list[str]:
    """The names above a name, the nearest first."""
    found: list[str] = []
    while name in parents and parents[name] not in found:
        name = parents[name]
        found.append(name)
    return found


class Namer:
    """Names samples by the probabilities of their classes: by a class if one is likely enough, else by what is above.

    The probability of a name is the sum over the classes below it. Of the names that reach `sure`, the one with the
    fewest classes is the answer, and of these the likeliest; None where no name reaches it.
    """

    def __init__(self, classes: Sequence[str], parents: Mapping[str, str], sure: float = SURE) -> None:
        if not 0 < sure <= 1:
            raise ValueError(f"to be sure is a probability above 0 and at most 1, not {sure:g}")
        chains = [[name, *ancestors(name, parents)] for name in classes]
        if classes and all(len(chain) == 1 for chain in chains):
            raise ValueError("the taxonomy has a parent for none of these classes")
        longest = max(map(len, chains), default=0)
        # Classes first, then what is next above: of two names for the same classes, the finer is meant.
        self.names = list(dict.fromkeys(chain[at] for at in range(longest) for chain in chains if at < len(chain)))
        self.below = np.array([[name in chain for chain in chains] for name in self.names], dtype=np.float64)
        self.sure = sure

    def __call__(self, probabilities: np.ndarray[Any, Any]) -> list[tuple[str, float] | None]:
        """The name of each sample and how likely it is, from the probabilities (n, classes)."""
        likely = probabilities @ self.below.T
        sizes = self.below.sum(axis=1)
        best = np.where(likely >= self.sure, sizes - likely / 2, np.inf)
        rows = best.argmin(axis=1)
        return [
            (self.names[row], float(min(1.0, likely[i, row]))) if np.isfinite(best[i, row]) else None
            for i, row in enumerate(rows.tolist())
        ]
