"""Methods that are small and quick: the checks train them many times."""

from engram.learner import Learner, State
from engram.methods import METHODS

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


def quick(name: str) -> dict[str, object]:
    """Settings of a method, or of one that has the same settings."""
    settings = METHODS[name].config_type
    alike = [other for other in QUICK if other == name or issubclass(settings, METHODS[other].config_type)]
    return QUICK[name if name in QUICK else alike[0]] if alike else {}


def make(name: str, device: str = "cpu", **changes: object) -> Learner:
    kind = METHODS[name]
    return kind(kind.configure({**quick(name), **changes}), seed=3, device=device)


def slimmed(learner: Learner) -> State:
    """As files of version 0.1 may have it: without what only learning needs."""
    state, left_out = learner.state(), getattr(learner, "only_for_learning", ())
    tensors = {name: tensor for name, tensor in state.tensors.items() if not name.startswith(left_out)}
    return State(tensors, state.meta | {"slim": True})
