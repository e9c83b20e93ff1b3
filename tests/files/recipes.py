"""What every model file of `older/` was taught."""

import tempfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from toys import paint

Labels = Sequence[Any]
PAINTED = tempfile.TemporaryDirectory(prefix="painted-")


@dataclass(frozen=True)
class Recipe:
    """How a file was taught: so many samples (`n`) of `d` numbers of each class of each lesson."""

    method: str = "whitened"
    settings: Mapping[str, Any] = field(default_factory=dict)
    lessons: tuple[Labels, ...] = ("abc", "bd")
    n: int = 9
    d: int = 32
    seed: int = 0
    signed: bool = False  # with features below zero
    head: Labels = ()  # classes that nobody taught
    summed: bool = False  # taught elsewhere, and absorbed: statistics alone
    of: tuple[str, ...] = ()  # the files that are merged, or the second of them subtracted from the first
    then: tuple[tuple[Any, ...], ...] = ()  # changes afterwards
    keeps: str = ""  # what else is in the file
    again: bool = True  # whether whoever opens it has to be able to teach it, too

    def lesson(self, number: int, labels: Labels, n: int = 0) -> tuple[NDArray[np.float32], list[Any]]:
        """Samples of a lesson: a few directions in which all vary, and each number by itself."""
        random, common = np.random.RandomState([self.seed, number]), np.random.RandomState(7).randn(4, self.d)
        y = [label for label in labels for _ in range(n or self.n)]
        centres = [np.random.RandomState(zlib.crc32(str(label).encode())).exponential(size=self.d) for label in y]
        X = np.array(centres) + random.randn(len(y), 4) @ common * 0.4 + random.randn(len(y), self.d) * 0.6
        mixed = random.permutation(len(y))
        return (X if self.signed else X.clip(0)).astype(np.float32)[mixed], [y[i] for i in mixed]

    def taught(self) -> list[tuple[NDArray[np.float32], list[Any]]]:
        return [self.lesson(number, labels) for number, labels in enumerate(self.lessons)]

    def further(self) -> tuple[NDArray[np.float32], list[Any]]:
        """More of a class that is known, and a new one."""
        known = self.lessons[0][-1] if self.lessons else "b"
        return self.lesson(100, [known, 977 if isinstance(known, int) else "new"], 7)

    def questions(self) -> NDArray[np.float32]:
        asked = self.lesson(200, [*(self.lessons[0][:3] if self.lessons else "abd"), "nobody's"], 2)[0]
        return asked[:3] if self.n == 2 else asked


@dataclass(frozen=True)
class Photos(Recipe):
    """A file of pictures, as the store learns them: painted, `n` of each colour."""

    plan: Mapping[str, Any] = field(default_factory=dict)
    again: bool = False

    def lesson(self, number: int, labels: Labels, n: int = 0) -> tuple[Any, list[Any]]:
        folder = Path(tempfile.mkdtemp(dir=PAINTED.name))
        paths = sorted(paint(folder, *labels, n=n or self.n, seed=number, spread=20).rglob("*.png"))
        return paths, [path.parent.name for path in paths]

    def further(self) -> tuple[Any, list[Any]]:
        return self.lesson(100, ["red", "cyan"], 3)

    def questions(self) -> Any:
        return self.lesson(200, ["red", "green", "blue", "white"], 1)[0]


def _recipes() -> dict[str, Recipe]:
    bits: dict[str, dict[str, Any]] = {f"whitened-{bits}": {"settings": {"kept_bits": bits}} for bits in (16, 32, 64)}
    quick = {"layers": [16, 12], "base_epochs": 8, "base_rate": 5e-3, "increment_epochs": 3, "feature_rms": 1.0}
    sums = [*bits, "slda", "ncm", "1nn", "ranpac", "imagenet"]
    own: dict[str, dict[str, Any]] = {
        **bits,
        "ranpac": {"settings": {"width": 64}},
        "imagenet": {"head": ("lion", "tiger", "bear", "a"), "then": (("rename", "bear", "panda"), ("forget", "lion"))},
    }
    recipes = {}
    for name in sums:
        about: dict[str, Any] = {"method": name.split("-")[0], **own.get(name, {})}
        alike = {key: value for key, value in about.items() if key in ("method", "settings")}
        recipes[name] = Recipe(**about)
        recipes[f"{name}-other"] = Recipe(**about | {"lessons": ("be",), "n": 5, "then": ()})
        recipes[f"{name}-merged"] = Recipe(**alike, lessons=(), of=(name, f"{name}-other"), again=name != "ranpac")
        if name in (*bits, "slda", "ncm"):
            recipes[f"{name}-subtracted"] = Recipe(**alike, lessons=(), of=(f"{name}-merged", f"{name}-other"))
    return recipes | {
        "fecam": Recipe("fecam"),
        "1nn-few": Recipe("1nn", {"samples": 12}),
        "slda-signed": Recipe("slda", signed=True),
        "whitened-signed": Recipe(signed=True),
        "whitened-no-root": Recipe(settings={"transform": "none"}, signed=True),
        "whitened-projected": Recipe(settings={"width": 64}, d=96, seed=3),
        "whitened-projected-64": Recipe(settings={"width": 64, "kept_bits": 64}, d=96, seed=3),
        "whitened-probes": Recipe(settings={"kept_bits": 16}, d=260, n=5),  # the trace of the inverse is estimated
        "whitened-thousands": Recipe(lessons=(tuple(range(2100)),), n=2, d=6),  # some stand for the spread of all
        "whitened-many-samples": Recipe(n=400, d=12),
        "whitened-one-class": Recipe(lessons=("a",)),
        "whitened-one-sample": Recipe(lessons=("abc",), n=1),
        "whitened-numbers": Recipe(lessons=((3, 1, 20), (2,), (1, 7))),
        "whitened-lessons": Recipe(lessons=("ab", "c", "a", "de", "bf"), n=6),
        "whitened-changed": Recipe(then=(("forget", "b"), ("rename", "a", "é z"))),
        "whitened-recency": Recipe(settings={"recency": 0.05}, again=False),
        "whitened-encoder": Recipe(settings={"encoder": quick}, again=False),
        "whitened-keeps-lessons": Recipe(keeps="lessons", again=False),
        "whitened-keeps-examples": Recipe(keeps="examples"),
        "whitened-temperature": Recipe(keeps="temperature"),
        "whitened-names": Recipe(keeps="names"),
        "whitened-statistics": Recipe(summed=True),
        "slda-statistics": Recipe("slda", summed=True),
        "imagenet-untaught": Recipe("imagenet", head=("lion", "tiger", "bear"), lessons=()),
        "imagenet-headless": Recipe("imagenet"),
        **{f"{name}-slim": Recipe(name, keeps="slim", again=False) for name in ("whitened", "slda")},
        "ranpac-slim": Recipe("ranpac", {"width": 64}, keeps="slim", again=False),
        **{name: Recipe(name, quick, again=False) for name in ("mas", "si", "mas-lof", "si-lof")},
        "mas-4-bits": Recipe("mas", {**quick, "kept_bits": 4}, again=False),
        "si-8-bits": Recipe("si", {**quick, "kept_bits": 8}, again=False),
        **{f"photos-{name}": Photos(n=4, lessons=(["red", "green", "blue"], ["white"]), plan=plan) for name, plan in {
            "joined": {"settings": {"width": 64}},
            "mirror": {"backbone": "efficientnet_lite0:joined:mirror", "settings": {"width": 64}},
            "ncm": {"method": "ncm", "holdout": 0.25},
            "statistics": {"settings": {"width": 64}},
            "kept": {"backbone": "averages", "keep_examples": True, "keep_lessons": True, "holdout": 0.25},
            "slda": {"backbone": "averages", "method": "slda", "holdout": 0.25, "keep_examples": True},
        }.items()},
        "mas-lof-slim": Recipe("mas-lof", quick, keeps="slim", again=False),
    }  # fmt: skip


RECIPES = _recipes()
