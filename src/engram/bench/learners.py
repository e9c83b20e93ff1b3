"""The one place through which experiments come by methods: by name, in the order of the tables."""

from typing import Any

import torch

from engram.learners import registry
from engram.learners.base import Learner
from engram.paper.adapter import Adapter

PAPER = ("prototypes", "mas", "si", "mas-lof", "si-lof")
# Our own, the paper's, the systems of its tables, statistics of frozen features, the systems it discusses, the bounds.
_ORDER = (
    *("whitened", "imagenet"),
    *PAPER,
    *("1nn", "geppnet", "icarl", "fearnet"),
    *("ncm", "slda", "fecam", "ranpac"),
    *("ewc", "lwf", "gem", "gan-replay", "icwgan", "hat", "deepncm"),
    *("finetune", "joint"),
)


def find_method(name: str) -> type[Learner]:
    """The learner of that name; of the paper's methods the one that can be taught without going through files."""
    return registry.find_teacher(name) if name in PAPER else registry.find(name)


_ROWS = ("whitened-encoder", "whitened-recency")  # of the tables, and no methods of their own
_KNOWN = [name for name in registry.names() if name not in _ROWS]
METHODS = {name: find_method(name) for name in (*_ORDER, *(n for n in _KNOWN if n not in _ORDER)) if name in _KNOWN}


def on_device(learner: Learner, device: str) -> Learner:
    """The learner where it is to compute; those in numpy compute on the CPU."""
    return learner.on(device) if isinstance(learner, Adapter) else learner


def device_of(learner: Learner) -> torch.device:
    """Where it computes."""
    return learner.torch_learner.device if isinstance(learner, Adapter) else torch.device("cpu")


def passes(kind: type[Learner], settings: Any, first: bool) -> int:
    """How often a task's data is gone through, so that the time left can be told."""
    return kind.kind.passes(settings, first) if issubclass(kind, Adapter) else 1


def bytes_kept(learner: Learner) -> dict[str, int]:
    """The bytes of every array in the state, which for that need not leave a GPU."""
    return learner.bytes_kept() if isinstance(learner, Adapter) else learner.state().memory()


def answers_with(learner: Learner, name: str) -> bool:
    """Whether an array of that name is a part of the network that answers."""
    only = learner.torch_learner.only_for_learning if isinstance(learner, Adapter) else ()
    return name.startswith("network.") and not name.startswith(only)


def sample_growth(learner: Learner, classes: int) -> float:
    """The number of stored samples with that many classes, divided by the number stored now."""
    if isinstance(learner, Adapter):
        return learner.torch_learner.sample_growth(classes)
    growth, most = classes / max(1, len(learner.labels)), getattr(learner.settings, "samples", None)
    stored = learner.state().arrays["samples.targets"]
    return growth if most is None else min(growth, max(most, classes) / len(stored))
