"""The demonstration: handwritten digits, five classes first, then five more, one at a time."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from engram.bench.drawing import Figure
from engram.bench.figures import accuracy
from engram.bench.inputs import load_features
from engram.bench.metrics import psi
from engram.bench.offline import Recipe, offline_ideal
from engram.bench.presets import load_preset
from engram.bench.protocol import TaskResult, class_order, run, split_tasks
from engram.bench.results import Row, Run

METHODS = ("whitened", "mas", "si", "mas-lof", "si-lof", "unconsolidated")


@dataclass(frozen=True)
class Demonstration:
    """What every configuration reached after every task, and the offline accuracy to measure it by."""

    alpha_ideal: float
    courses: dict[str, list[TaskResult]]

    def as_json(self) -> dict[str, Any]:
        """What `engram demo --json` writes."""
        rows = []
        for method, course in self.courses.items():
            measured = {f"psi_{part}": value for part, value in asdict(psi(course, self.alpha_ideal)).items()}
            rows.append({"method": method, **measured, "seconds": sum(result.seconds for result in course)})
        return {"dataset": "digits", "alpha_ideal": self.alpha_ideal, "rows": rows}

    def draw(self) -> Figure:
        """Accuracy over the digits seen, as in the report of a benchmark."""
        ideal, rows = {"accuracy": self.alpha_ideal}, []
        for method, course in self.courses.items():
            name = "without consolidation" if method == "unconsolidated" else method
            orders = [{"tasks": [asdict(result) for result in course]}]
            rows.append(Row(name, Run("demo", {}), {"alpha_ideal": ideal, "orders": orders}))
        return accuracy(rows)


def demonstrate(
    *, seed: int = 0, device: str = "auto", progress: Callable[[int, int], None] | None = None
) -> Demonstration:
    """Run every configuration; `progress` is told how many tasks are done, and of how many."""
    data = load_features("digits", device=device)
    tasks = split_tasks(class_order(data.train.y.tolist(), seed), base=5)
    total = len(METHODS) * len(tasks) + 1
    courses: dict[str, list[TaskResult]] = {}
    for number, method in enumerate(METHODS):
        preset = load_preset(f"digits-{method}")
        courses[method] = []
        for _, result in run(preset.new(seed, device), data.train, data.test, tasks):
            courses[method].append(result)
            if progress:
                progress(number * len(tasks) + len(courses[method]), total)
    recipe = Recipe(hidden=256, dropout=0.2, epochs=60, batch_size=64)
    ideal = offline_ideal(data.train, data.test, recipes=[recipe], seeds=[seed]).accuracy
    if progress:
        progress(total, total)
    return Demonstration(ideal, courses)
