"""Small and quick peers: the checks train them many times."""

from engram.learner import Learner
from engram.methods import METHODS
from engram.methods.prototypes import Prototypes

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
    "finetune": SOFTMAX,
    "joint": SOFTMAX,
}
QUICK |= {name: {"layers": (16, 8), "base_epochs": 8} for name in METHODS if issubclass(METHODS[name], Prototypes)}
PEERS = [name for name, kind in METHODS.items() if not issubclass(kind, Prototypes)]


def make(name: str, device: str = "cpu", **changes: object) -> Learner:
    kind = METHODS[name]
    return kind(kind.configure({**QUICK.get(name, {}), **changes}), seed=3, device=device)
