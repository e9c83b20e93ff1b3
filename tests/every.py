"""Methods that are small and quick: the checks train them many times."""

import numpy as np
import torch

from engram.learners import registry, trying
from engram.learners.base import Learner
from engram.paper.adapter import Adapter
from engram.paper.tensors import TensorLearner

NUMPY = ("whitened", "imagenet", "ncm", "slda", "1nn")
METHODS = [name for name in registry.names() if name != "imagenet"]  # which takes an encoder's head
RESEARCH = [name for name in METHODS if name not in NUMPY]

SOFTMAX: dict[str, object] = {
    "width": 32,
    "dropout": 0.2,
    "batch_size": 16,
    "base_epochs": 12,
    "base_rate": 1e-2,
    "increment_epochs": 6,
    "increment_rate": 1e-2,
}
QUICK: dict[str, dict[str, object]] = {
    "prototypes": {
        "layers": (16, 16),
        "base_epochs": 30,
        "base_rate": 5e-3,
        "increment_epochs": 2,
        "feature_rms": 1.0,
    },
    "whitened-encoder": {"encoder": {"layers": (16, 16), "base_epochs": 30, "base_rate": 5e-3, "feature_rms": 1.0}},
    "whitened-recency": {"recency": 0.01},
    "ranpac": {"width": 40},
    "geppnet": {"side": 5, "map_epochs": 4, "base_epochs": 15, "increment_epochs": 6, "batch_size": 16, "radius": 1.5},
    "fearnet": {
        "layers": (16, 6),
        "base_epochs": 20,
        "sleep_every": 3,
        "sleep_epochs": 15,
        "bla_epochs": 8,
        "sleep_rate": 2e-3,
        "lambda_input": 1.0,
        "batch_size": 16,
    },
    "icarl": {**SOFTMAX, "exemplars": 30},
    "gem": {**SOFTMAX, "memories": 30},
    "ewc": SOFTMAX,
    "lwf": {**SOFTMAX, "lambda_old": 5.0, "increment_rate": 4e-3},
    "hat": {**SOFTMAX, "hardness": 50.0},
    "deepncm": {**SOFTMAX, "increment_epochs": 0},
    "gan-replay": {
        **SOFTMAX,
        "replayed": 60,
        "noise": 8,
        "gan_width": 32,
        "gan_base_epochs": 60,
        "gan_increment_epochs": 20,
        "gan_rate": 1e-2,
    },
    "icwgan": {
        **SOFTMAX,
        "replayed": 60,
        "candidates": 2,
        "noise": 8,
        "gan_width": 32,
        "gan_base_epochs": 60,
        "gan_increment_epochs": 20,
        "gan_rate": 1e-2,
    },
    "finetune": SOFTMAX,
    "joint": SOFTMAX,
}


def kind_of(name: str) -> type[Learner]:
    """The class that can be taught: of the paper's method the one in torch."""
    return registry.find(name) if name in NUMPY else registry.find_teacher(name)


def quick(name: str) -> dict[str, object]:
    """Settings of a method, or of one that has the same settings."""
    settings = kind_of(name).settings_type
    alike = [other for other in QUICK if other == name or issubclass(settings, kind_of(other).settings_type)]
    return QUICK[name if name in QUICK else alike[0]] if alike else {}


def make(name: str, device: str = "cpu", **changes: object) -> Learner:
    """A small one that knows nothing."""
    made = kind_of(name).new({**quick(name), **changes}, seed=3)
    return made.on(device) if isinstance(made, Adapter) else made


def make_torch(name: str, device: str = "cpu", **changes: object) -> TensorLearner:
    """What `make` wraps, of the methods in torch."""
    made = make(name, device, **changes)
    assert isinstance(made, Adapter)
    return made.torch_learner


def blobs(labels: list[str], n: int = 24, width: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """`n` samples of each label around a centre of its own."""
    x, y = trying.blobs(labels, n, width, seed)
    return x.astype(np.float64), np.asarray(y)


def teach(learner: TensorLearner, *tasks: list[str]) -> TensorLearner:
    """A learner in torch, taught task by task."""
    for task in tasks:
        learner.learn(*blobs(task))
    return learner


def assert_same(one: TensorLearner, two: TensorLearner) -> None:
    """Equal bit for bit."""
    assert (one.labels, one.tasks_learned) == (two.labels, two.tasks_learned)
    assert one.tensors.keys() == two.tensors.keys()
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor, two.tensors[name]), name


def as_value(learner: TensorLearner) -> Learner:
    """The learner in its adapter."""
    return kind_of(learner.method).around(learner)  # type: ignore[attr-defined,no-any-return]
