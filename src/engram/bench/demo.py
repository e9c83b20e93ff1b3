"""The demonstration: handwritten digits, five classes first, then five more, one at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from engram.bench.drawing import GREY, Figure, Panel, name_lines, style
from engram.bench.inputs import load_features
from engram.bench.metrics import Psi, psi
from engram.bench.offline import Recipe, offline_ideal
from engram.bench.presets import load_preset
from engram.bench.protocol import TaskResult, class_order, run, split_tasks

ROWS = ("mas", "si", "mas-lof", "si-lof", "unconsolidated")


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
    data = load_features("digits", device=device)
    train, test = data.train, data.test
    tasks = split_tasks(class_order(train.y.tolist(), seed), base=5)
    tell = progress or (lambda what, fraction: None)
    rows = []
    for method in ROWS:
        preset = load_preset(f"digits-{method}")
        learner = preset.learner(preset.config, seed=seed, device=device)
        results = []
        for result in run(learner, train, test, tasks):
            results.append(result)
            tell(method, len(results) / len(tasks))
        rows.append((method, results))
    tell("offline", 0.0)
    recipe = Recipe(hidden=256, dropout=0.2, epochs=60, batch_size=64)
    ideal = offline_ideal(train, test, recipes=[recipe], seed=seed).accuracy
    tell("offline", 1.0)
    return Demonstration(ideal, [Row(method, results, psi(results, ideal)) for method, results in rows])


def draw(demonstration: Demonstration) -> Figure:
    """Accuracy over the classes seen: on all of them, and on the five base classes alone."""

    def lines(axis: Any, field: str) -> None:
        axis.set_ylim(0, 1.05)
        axis.axhline(demonstration.alpha_ideal, color=GREY, linestyle=":")
        ends = []
        for i, row in enumerate(demonstration.rows):
            plain = row.method == "unconsolidated"
            colour, dash = (GREY, "--") if plain else style(i)
            seen, values = [r.classes_seen for r in row.results], [getattr(r, field) for r in row.results]
            axis.plot(seen, values, dash, color=colour, marker="o", markersize=4)
            ends.append((seen[-1], values[-1], "without consolidation" if plain else row.method, colour))
        axis.set(xlabel="digits learned, one at a time after the first five", ylabel="test accuracy")
        name_lines(axis, ends)

    panels = []
    for field, title in (("alpha_all", "All digits seen so far"), ("alpha_base", "The five digits learned first")):
        words = ", ".join(f"{row.method} {getattr(row.results[-1], field):.3f}" for row in demonstration.rows)
        panels.append(Panel(title, f"{title}; after the last: {words}.", partial(lines, field=field)))
    note = "Dotted: an offline network, all ten digits at once."
    return Figure("demo", panels, size=(5.4, 3.6), columns=2, note=note)
