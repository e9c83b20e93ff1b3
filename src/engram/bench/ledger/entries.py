"""The lines of the tables: what was run, what was only published, and what each costs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from engram.bench import published as paper
from engram.bench.results import Row
from engram.learner import About
from engram.methods import METHODS

NOTHING = "–"


@dataclass(frozen=True)
class Entry:
    """One line of a table: a row that was run, or one that was only published."""

    method: str
    title: str
    features: str
    row: Row | None

    @property
    def about(self) -> About:
        """What to know about the method, also of one that was only published."""
        if self.row is not None:
            return METHODS[self.row.record.get("learner", "prototypes")].about
        return METHODS["prototypes" if self.method in paper.OWN else self.method].about


def entries_of(dataset: str, rows: Sequence[Row]) -> list[Entry]:
    """What was run, in the order of the tables, and what was only published."""
    order = [*paper.OWN, *(name for name in METHODS if name != "prototypes")]
    several = {key for key, n in Counter((row.record["dataset"], row.label) for row in rows).items() if n > 1}
    found = []
    for row in rows:
        title, features = _title(row), _features(row)
        if (row.record["dataset"], row.label) in several:  # the same method on several features
            title += f" · {features.split(':')[0]}"
        found.append(Entry(row.record["method"], title, features, row))
    ran = {entry.method for entry in found}
    missing = [name for name in paper.NAMES if name not in ran and (not dataset or dataset in paper.PSI)]
    found += [Entry(name, paper.NAMES[name], NOTHING, None) for name in missing]
    return sorted(found, key=lambda e: order.index(e.method) if e.method in order else len(order))


def _title(row: Row) -> str:
    method = str(row.record["method"])
    own = METHODS[method].about.title if method in METHODS else paper.NAMES.get(method, method)
    return row.label.replace(method, own, 1)


def _features(row: Row) -> str:
    """The backbone and the layer, without how it was scaled and which weights it had."""
    return str(row.record["backbone"]).split("@")[0].split(",")[0]


def kept_bytes(row: Row) -> list[float]:
    """All that is kept after every task, the network included; the mean of the orders."""
    orders = [[float(sum(t["kept_bytes"].values())) for t in o["tasks"]] for o in row.record["orders"]]
    return [fmean(values) for values in zip(*orders, strict=False)]


def seconds_per_task(row: Row) -> list[float]:
    """The mean of the orders."""
    return [fmean(values) for values in zip(*row.courses("seconds"), strict=True)]
