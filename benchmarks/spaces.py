"""What may be tried of every method, and which settings are drawn: the same number for each, from ranges fixed here.

A setting that a method's paper states is not here, but for FeCAM's, which go with the number of samples, and GEM's
optimizer. Ranges are wide: what was the best by hand lies well inside. Of the
slow methods the epochs end at about twice those of the preset. The slowest methods come first, and so do their trials.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

TRIALS = 12  # of a method on a data set, the preset as it is among them


@dataclass(frozen=True)
class Between:
    """Any number, its logarithm uniform; rounded to three digits, or to a whole one where both ends are."""

    low: float
    high: float

    def at(self, share: float) -> float:
        value = self.low * (self.high / self.low) ** share
        return round(value) if isinstance(self.low, int) else float(f"{value:.2e}")


@dataclass(frozen=True)
class OneOf:
    """One of some values; for several settings at once, a tuple of them."""

    values: tuple[Any, ...]

    def at(self, share: float) -> Any:
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]


Axis = Between | OneOf
RATE = Between(1e-5, 1e-3)
DROPOUT = OneOf((0.0, 0.25, 0.5, 0.7))
BASE = {"base_rate": Between(2e-4, 5e-3), "dropout": DROPOUT}
BLA = {"bla_prior": OneOf((0.0, 0.25, 0.5, 0.75)), "bla_dreams": Between(10, 600)}
SCALE = {"feature_rms": Between(0.03, 3.0)}
CENTER = {"center_epochs": Between(2, 200), "center_rate": Between(1e-5, 1e-3), "lof_neighbours": Between(5, 40)}
DAMPING = {"si_damping": Between(1e-4, 1e-1)}
GAN_RATE = Between(3e-5, 1e-3)
# Names with a comma are set together: a rate that suits AMSGrad is far too small for SGD.
STEPS = (("amsgrad", 3e-5), ("amsgrad", 1e-4), ("amsgrad", 3e-4))
STEPS += (("sgd", 1e-3), ("sgd", 3e-3), ("sgd", 1e-2), ("sgd", 3e-2), ("sgd", 1e-1))


def by(cifar100: Axis, cub200: Axis) -> dict[str, Axis]:
    """Where the data sets differ; others are treated as CUB-200 is."""
    return {"cifar100": cifar100, "cub200": cub200}


SPACES: dict[str, dict[str, Axis | dict[str, Axis]]] = {
    "icwgan": {
        "increment_epochs": by(cifar100=OneOf((1, 2, 3, 4)), cub200=Between(3, 20)),
        "increment_rate": RATE,
        "lambda_old": Between(0.1, 30.0),
        "candidates": OneOf((2, 4, 8)),
        "gan_rate": GAN_RATE,
        "gan_increment_epochs": by(cifar100=OneOf((1, 2, 3, 4, 6)), cub200=Between(5, 40)),
    },
    "gem": {
        "increment_epochs": by(cifar100=Between(5, 40), cub200=Between(3, 20)),
        "optimizer,increment_rate": OneOf(STEPS),
    },
    "joint": {"base_epochs": by(cifar100=Between(8, 40), cub200=Between(10, 60)), **BASE},
    "fearnet": {
        "lambda_input": Between(10.0, 3000.0),
        "base_epochs": Between(30, 200),
        "sleep_rate": Between(3e-4, 5e-3),
        "dreams": OneOf((1, 2, 4)),
        **BLA,
    },
    "fearnet-head": {
        "lambda_input": Between(10.0, 1000.0),
        "base_epochs": by(cifar100=Between(30, 200), cub200=Between(40, 300)),
        "sleep_rate": Between(3e-4, 5e-3),
        "dreams": by(cifar100=OneOf((2, 4, 8)), cub200=OneOf((2, 5, 10, 20))),
        **BLA,
    },
    "gan-replay": {
        "increment_epochs": Between(3, 20),
        "increment_rate": RATE,
        "gan_rate": GAN_RATE,
        "gan_increment_epochs": Between(5, 40),
    },
    "mas": SCALE,
    "si": SCALE | DAMPING,
    "mas-lof": SCALE | CENTER,
    "si-lof": SCALE | CENTER | DAMPING,
    "geppnet": {
        "sharpness": Between(0.5, 12.0),
        "increment_rate": Between(0.03, 10.0),
        "map_rate": Between(0.03, 0.9),
        "base_rate": Between(1e-3, 0.1),
        "unsure": OneOf((0.25, 0.5, 0.75)),
    },
    "fecam": {
        "shrink_diagonal": Between(0.1, 1000.0),
        "shrink_rest": Between(0.1, 1000.0),
        "power": OneOf((0.3, 0.5, 0.7, 1.0)),
    },
    "ranpac": {"held_out": Between(0.05, 0.5)},  # the width is its paper's, and it searches for its ridge by itself
    "icarl": {"increment_epochs": Between(3, 60), "increment_rate": Between(2e-5, 2e-3)},
    "hat": {"increment_epochs": Between(5, 40), "increment_rate": RATE, **BASE},
    "ewc": {"increment_epochs": Between(2, 40), "increment_rate": RATE, "lambda_ewc": Between(1.0, 1e5)},
    "lwf": {"increment_epochs": Between(2, 30), "increment_rate": RATE, "lambda_old": Between(0.1, 30.0)},
    "finetune": {"increment_epochs": Between(2, 40), "increment_rate": RATE},
    "deepncm": {"base_epochs": Between(10, 60), "mean_decay": OneOf((0.5, 0.8, 0.9, 0.95, 0.99)), **BASE},
    "slda": {"shrinkage": Between(1e-4, 0.9)},
    "ncm": {},  # nothing to set
    "1nn": {},
    "whitened": {},  # as it is everywhere
}


# Further than the ends of ranges at which the rule's choice lay, where further is possible.
WIDER: dict[str, dict[str, dict[str, Axis]]] = {
    "cifar100": {
        "icwgan": {
            "increment_epochs": OneOf((1, 2, 3)),
            "increment_rate": Between(5e-5, 6e-4),
            "lambda_old": Between(2.0, 20.0),
            "candidates": OneOf((2, 4, 8)),
            "gan_rate": Between(2e-6, 6e-5),
            "gan_increment_epochs": OneOf((1, 2)),
        },
        "fearnet": {
            "lambda_input": Between(50.0, 1000.0),
            "base_epochs": Between(150, 500),
            "sleep_rate": Between(3e-4, 2e-3),
            "dreams": OneOf((1, 2)),
            **BLA,
        },
        "gem": {
            "increment_epochs": Between(20, 80),
            "optimizer,increment_rate": OneOf((("sgd", 1e-4), ("sgd", 3e-4), ("sgd", 6e-4), ("sgd", 1e-3))),
        },
        "gan-replay": {
            "increment_epochs": Between(5, 40),
            "increment_rate": Between(2e-6, 3e-5),
            "gan_rate": Between(1e-4, 3e-3),
            "gan_increment_epochs": OneOf((1, 2, 3, 4, 5)),
        },
        "lwf": {
            "increment_epochs": OneOf((1, 2, 3)),
            "increment_rate": Between(2e-5, 3e-4),
            "lambda_old": Between(1e-3, 1.0),
        },
        "deepncm": {
            "base_epochs": Between(15, 60),
            "mean_decay": OneOf((0.98, 0.99, 0.995, 0.998)),
            "base_rate": Between(5e-5, 5e-4),
            "dropout": OneOf((0.0, 0.25, 0.5)),
        },
    },
    "cub200": {
        "icwgan": {
            "increment_epochs": Between(15, 60),
            "increment_rate": RATE,
            "lambda_old": Between(0.1, 30.0),
            "candidates": OneOf((1, 2, 4)),
            "gan_rate": GAN_RATE,
            "gan_increment_epochs": Between(5, 40),
        },
        "fearnet": {
            "lambda_input": Between(50.0, 1000.0),
            "base_epochs": Between(150, 500),
            "sleep_rate": Between(3e-4, 2e-3),
            "dreams": OneOf((4, 8, 16)),
            **BLA,
        },
        "fearnet-head": {
            "lambda_input": Between(10.0, 100.0),
            "base_epochs": Between(80, 300),
            "sleep_rate": Between(2e-5, 5e-4),
            "dreams": OneOf((5, 10, 20)),
            **BLA,
        },
        "geppnet": {
            "sharpness": Between(0.5, 4.0),
            "increment_rate": Between(0.1, 3.0),
            "map_rate": Between(0.1, 0.9),
            "base_rate": Between(1e-3, 1e-2),
            "unsure": OneOf((0.75, 0.85, 0.95)),
        },
        "deepncm": {
            "base_epochs": Between(40, 200),
            "mean_decay": OneOf((0.98, 0.99, 0.995, 0.998)),
            "base_rate": Between(1e-4, 1e-3),
            "dropout": OneOf((0.5, 0.7, 0.8, 0.9)),
        },
        "slda": {"shrinkage": Between(0.3, 0.99)},
    },
}


def draw(dataset: str, method: str, trials: int = TRIALS) -> list[dict[str, Any]]:
    """The settings of every trial: first none, the preset as it is, then a Latin hypercube."""
    axes = axes_of(dataset, method)
    return [{}, *hypercube(axes, trials - 1 if axes else 0, f"{dataset} {method}")]


def draw_wider(dataset: str, method: str, trials: int = TRIALS) -> list[dict[str, Any]]:
    """As many again, without the preset: from WIDER, or, where no choice lay at an end, from the same ranges."""
    axes = WIDER.get(dataset, {}).get(method) or axes_of(dataset, method)
    return hypercube(axes, trials if axes else 0, f"{dataset} {method} wider")


def axes_of(dataset: str, method: str) -> dict[str, Axis]:
    """The ranges of a method on a data set."""
    return {
        names: axis.get(dataset, axis["cub200"]) if isinstance(axis, Mapping) else axis
        for names, axis in SPACES[method].items()
    }


def hypercube(axes: Mapping[str, Axis], count: int, seed: str) -> list[dict[str, Any]]:
    """Every setting's range is cut into as many pieces as there are draws, and one value is drawn from each."""
    drawn: list[dict[str, Any]] = [{} for _ in range(count)]
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    for names, axis in axes.items():
        shares = (rng.permutation(count) + rng.random(count)) / count
        for settings, share in zip(drawn, shares, strict=True):
            value = axis.at(float(share))
            settings |= dict(zip(names.split(","), value, strict=True)) if "," in names else {names: value}
    return drawn
