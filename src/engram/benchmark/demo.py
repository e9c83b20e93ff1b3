"""The demonstration: handwritten digits, five classes first, then five more, one at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from engram.benchmark.metrics import Psi, psi
from engram.benchmark.offline import Recipe, offline_ideal
from engram.benchmark.protocol import Samples, TaskResult, class_order, run, split_tasks
from engram.data import digits
from engram.device import resolve_device
from engram.methods.prototypes import PrototypeConfig, PrototypeLearner

# 64 pixels are not 8192 features: a smaller network and faster steps than the paper's, the λ as in the paper. The rate
# of the increments is high enough to make plain fine-tuning forget; consolidation is all that tells the rows apart.
SETTINGS = PrototypeConfig(
    layers=(256, 256), feature_rms=2.0, base_epochs=50, base_rate=1e-3, increment_epochs=100, increment_rate=1e-2
)


def _variant(**changes: Any) -> PrototypeConfig:
    return PrototypeConfig(**{**vars(SETTINGS), **changes})


CONFIGURATIONS = {
    "mas": _variant(consolidation="mas"),
    "si": _variant(consolidation="si"),
    "mas-lof": _variant(consolidation="mas", outlier_exclusion=True),
    "si-lof": _variant(consolidation="si", outlier_exclusion=True),
    "finetune": _variant(consolidation=None),
}


@dataclass(frozen=True)
class Row:
    """One configuration's course and its Ψ."""

    method: str
    results: list[TaskResult]
    psi: Psi

    @property
    def seconds(self) -> float:
        """Time spent learning."""
        return sum(r.seconds for r in self.results)


@dataclass(frozen=True)
class Demonstration:
    """All rows and the offline accuracy they are measured against."""

    alpha_ideal: float
    rows: list[Row]

    def as_json(self) -> dict[str, object]:
        """What `engram demo --json` writes."""
        return {
            "dataset": "digits",
            "alpha_ideal": self.alpha_ideal,
            "rows": [
                {
                    "method": row.method,
                    "psi_base": row.psi.base,
                    "psi_new": row.psi.new,
                    "psi_all": row.psi.all,
                    "seconds": row.seconds,
                }
                for row in self.rows
            ],
        }


def demonstrate(
    *, seed: int = 0, device: str = "auto", progress: Callable[[str, float], None] | None = None
) -> Demonstration:
    """Run every configuration; `progress` is told what is going on and which fraction of it is done."""
    data = digits()
    assert data.test is not None
    where = resolve_device(device)
    train = Samples(torch.from_numpy(np.asarray(data.train.images)).to(where), np.asarray(data.train.labels))
    test = Samples(torch.from_numpy(np.asarray(data.test.images)).to(where), np.asarray(data.test.labels))
    tasks = split_tasks(class_order(data.classes, seed), base=5)
    rows = []
    for method, config in CONFIGURATIONS.items():
        results = []
        for result in run(PrototypeLearner(config, seed=seed, device=device), train, test, tasks):
            results.append(result)
            if progress:
                progress(method, len(results) / len(tasks))
        rows.append((method, results))
    if progress:
        progress("offline", 0.0)
    recipe = Recipe(hidden=256, dropout=0.2, epochs=60, batch_size=64)
    ideal = offline_ideal(train, test, recipes=[recipe], seed=seed).accuracy
    if progress:
        progress("offline", 1.0)
    return Demonstration(ideal, [Row(method, results, psi(results, ideal)) for method, results in rows])
