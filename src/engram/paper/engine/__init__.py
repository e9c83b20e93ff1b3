"""How a training step is taken: `plain`, as one would write it from the paper, and `fast`, the same numbers sooner."""

import torch

from engram.paper.engine.fast import FAST, Trainer
from engram.paper.engine.interface import Engine, Loss, Network, Optimizer, Penalty, Schedule
from engram.paper.engine.parallel import average, in_parts
from engram.paper.engine.plain import PLAIN

__all__ = [
    "FAST",
    "PLAIN",
    "Engine",
    "Loss",
    "Network",
    "Optimizer",
    "Penalty",
    "Schedule",
    "Trainer",
    "average",
    "engine_for",
    "in_parts",
]


def engine_for(device: torch.device) -> Engine:
    """The fastest engine there is for a device."""
    return FAST if device.type in ("cpu", "cuda") else PLAIN
