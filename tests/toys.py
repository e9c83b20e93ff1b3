"""Small, quick stand-ins: pictures of plain colours, and an encoder that takes no time."""

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from engram.encoders import registry
from engram.encoders.base import Features, Pixels, Preprocess
from engram.encoders.graph import Graph
from engram.encoders.onnx import OnnxEncoder
from engram.learners.codes import Codes
from engram.learners.registry import MissingMethodError, find, find_teacher
from engram.store import Plan

COLOURS = {
    "red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200), "yellow": (200, 200, 30),
    "violet": (200, 30, 200), "cyan": (30, 200, 200), "white": (220, 220, 220), "black": (20, 20, 20),
    "orange": (220, 120, 20), "brown": (110, 60, 20),
}  # fmt: skip
QUICK: dict[str, Any] = {"layers": (16, 12), "base_epochs": 20, "base_rate": 5e-3, "increment_epochs": 3}
TRAINED: dict[str, Any] = {"method": "prototypes", "settings": QUICK}  # a method that trains a network


class Network:
    """Per-cell averages of normalised pixels through one linear layer, as a graph: it can be exported, too."""

    name, size, dim, mirror, preprocess = "averages", 16, 8, False, Preprocess(size=16)
    bias = (2.0575912, -0.0354219, 0.0627188, -0.7663063, 1.0992506, 2.7565384, 0.1752833, -0.9315211)

    def __init__(self, seed: int) -> None:
        self.seed, self.identity = seed, f"averages@16:sha256-{seed + 0xBEE5ACEC7C71D245:x}"  # in files/older, too

    def add_to(self, graph: Graph, pictures: str) -> str:
        """From uint8 (n, 16, 16, 3) to features (n, 8)."""
        mean, std = (np.float32(one) for one in (self.preprocess.mean, self.preprocess.std))
        pixels = graph.add("Div", graph.add("Cast", pictures, to=1), graph.constant(np.float32(255)))
        scaled = graph.add("Div", graph.add("Sub", pixels, graph.constant(mean)), graph.constant(std))
        planes = graph.add("Transpose", scaled, perm=[0, 3, 1, 2])
        cells = graph.add("AveragePool", planes, kernel_shape=[8, 8], strides=[8, 8])
        weight, bias = graph.constant(drawn(self.seed).reshape(8, 12)), graph.constant(np.float32(self.bias))
        return graph.add("Gemm", graph.add("Flatten", cells, axis=1), weight, bias, transB=1)


def drawn(seed: int) -> np.ndarray:
    """96 numbers of a normal distribution, as torch draws them: files in files/older were taught with them."""
    uniform = (np.frombuffer(np.random.RandomState(seed).bytes(4 * 96), np.uint32) & 0xFFFFFF) / 2**24
    one, two = uniform.astype(np.float32).reshape(6, 2, 8).transpose(1, 0, 2)
    length, turn = np.sqrt(-2 * np.log(1 - one)), np.float32(2 * np.pi) * two
    return np.stack([length * np.cos(turn), length * np.sin(turn)], axis=1)


class Averages(OnnxEncoder):
    """An encoder that takes no time, and counts what it has `seen`; another `seed` makes another."""

    def __init__(self, name: str = "averages", device: str = "cpu", seed: int = 0, **options: object) -> None:
        super().__init__(lambda: Network(seed), name, device)  # type: ignore[arg-type,return-value]
        self.seen = 0

    def encode(self, pictures: Pixels) -> Features:
        self.seen += len(pictures)
        return super().encode(pictures)


averages = Averages
registry.register("averages", averages)


def paint(folder: Path, *colours: str, n: int = 8, seed: int = 0, spread: float = 0.0) -> Path:
    """One folder of noisy pictures per colour, all different; with a `spread`, so is the colour itself."""
    for colour in colours:
        (folder / colour).mkdir(parents=True, exist_ok=True)
        for i in range(n):
            rng = np.random.default_rng([seed, i, *COLOURS[colour]])
            noise = rng.integers(-25, 25, (20, 28, 3))
            shade = np.array(COLOURS[colour]) + rng.normal(0, spread, 3)
            pixels = np.clip(shade + noise, 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / colour / f"{seed}-{i}.png")
    return folder


def quick_plan(**changes: object) -> Plan:
    """To learn from such pictures in no time."""
    return Plan(**{"backbone": "averages", **changes})  # type: ignore[arg-type]


def missing(method: str, *, teaching: bool = False) -> str | None:
    """Why a method cannot be asked, or taught, with what is installed here."""
    try:
        if issubclass(find(method), Codes) and teaching:
            find_teacher(method)
    except MissingMethodError as error:
        return str(error)
    return None
