"""Small, quick stand-ins: pictures of plain colours, and a backbone that takes no time."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from engram.backbones import Backbone, Preprocess, register
from engram.store import Plan

COLOURS = {
    "red": (200, 30, 30), "green": (30, 200, 30), "blue": (30, 30, 200), "yellow": (200, 200, 30),
    "violet": (200, 30, 200), "cyan": (30, 200, 200), "white": (220, 220, 220), "black": (20, 20, 20),
    "orange": (220, 120, 20), "brown": (110, 60, 20),
}  # fmt: skip
QUICK: dict[str, Any] = {"layers": (16, 12), "base_epochs": 20, "base_rate": 5e-3, "increment_epochs": 3}
TRAINED: dict[str, Any] = {"method": "prototypes", "settings": QUICK}  # a method that trains a network


@register("averages")
def averages(weights: None = None) -> Backbone:
    """Per-cell averages through one linear layer."""
    network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(12, 8))
    with torch.no_grad():
        generator = torch.Generator().manual_seed(0)
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return Backbone(network, name="averages@16", dim=8, preprocess=Preprocess(size=16))


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
