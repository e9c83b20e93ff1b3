"""results.json: read it, check it, put what may be compared side by side, and judge it beside what was published."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from engram.bench import published
from engram.bench.results_file import read_results
from engram.bench.units import count
from engram.learner import About
from engram.methods import METHODS

Json = Mapping[str, Any]
Verdict = Literal["reproduced", "higher", "lower"]

_DATASETS = {"cifar100": "CIFAR-100", "cub200": "CUB-200-2011", "digits": "Handwritten digits", "folder": "Own images"}
PSI = {"psi_base": "Ψ_base", "psi_new": "Ψ_new", "psi_all": "Ψ_all"}
# How far from the published Ψ ours may be: for the paper's own rows, and for those it quotes of other systems.
NEAR, NEAR_PEERS = 0.03, 0.05
MARKS: dict[Verdict, str] = {"reproduced": "", "higher": "▲", "lower": "▼"}

# What a report cannot do without. A type is one of its instances, a list holds any number of its one item; what a name
# with a question mark stands for may be left out, but not misread.
_NUMBER = (int, float)
_SPREAD = {"mean": _NUMBER, "values": [_NUMBER]}
_TASK = {"classes_seen": int, "alpha_base": _NUMBER, "alpha_new": _NUMBER, "alpha_all": _NUMBER, "seconds": _NUMBER}
_RECORD = {
    "dataset": str,
    "backbone": str,
    "method": str,
    "protocol": {"base": int, "step": int, "classes": int},
    "alpha_ideal": {"accuracy": _NUMBER},
    **dict.fromkeys(PSI, _SPREAD),
    "orders": [{"seed": int, "classes": list, "tasks": [_TASK]}],
    "paper_ideal?": {"alpha_ideal": _NUMBER, **dict.fromkeys(PSI, _SPREAD)},
    "average_incremental_accuracy?": _SPREAD,
    "final_accuracy?": _SPREAD,
    "forgetting?": _SPREAD,
    "confusion?": {"labels": list, "counts": [[_NUMBER]]},
    "memory?": {"as_the_paper_counts": dict, "all_the_next_increment_needs": dict},
}
_RESULTS = {"format": int, "run": dict, "records": [_RECORD]}


def verdict(method: str, ours: float, theirs: float) -> Verdict:
    """Ours is *reproduced* where it is near the published number, on either side; else it is *higher* or *lower*."""
    gap = ours - theirs
    if abs(gap) <= margin(method) + 1e-9:
        return "reproduced"
    return "higher" if gap > 0 else "lower"


def margin(method: str) -> float:
    """How far from the published number is near."""
    return NEAR if method in published.OWN else NEAR_PEERS


def dataset_title(dataset: str) -> str:
    """The name people know it by."""
    return _DATASETS.get(dataset, dataset)


def features_title(backbone: str) -> str:
    """Backbone and layer, and whether pictures were mirrored, of a backbone's identity."""
    mirrored = ":mirror" if backbone.endswith(":mirror") else ""
    return backbone.split("@")[0].split(",")[0] + mirrored


# Short names of rows that the paper does not have.
SHORT = {
    "whitened": "Whitened",
    "whitened-recency": "Whitened, recency",
    "whitened-encoder": "Whitened + paper's code",
    "fearnet-head": "FearNet, head-only sleeps (ours)",
}


def method_title(method: str) -> str:
    """The name people know it by."""
    known = published.NAMES | SHORT
    return known.get(method) or (METHODS[method].about.title if method in METHODS else method)


@dataclass(frozen=True)
class Run:
    """One results file."""

    label: str
    content: Json


@dataclass(frozen=True)
class Row:
    """One record of one run."""

    label: str
    run: Run
    record: Json

    @property
    def method(self) -> str:
        """The row's name."""
        return str(self.record["method"])

    @property
    def about(self) -> About:
        """What to know about the method."""
        return METHODS[self.record.get("learner", "prototypes")].about

    @property
    def features(self) -> str:
        """The backbone and the layer, without how it was scaled and which weights it had."""
        return features_title(self.record["backbone"])

    @property
    def published(self) -> tuple[float, float, float] | None:
        """The paper's Ψ_base, Ψ_new, Ψ_all of this data set and method."""
        return published.PSI.get(self.record["dataset"], {}).get(self.method)

    @property
    def verdicts(self) -> list[Verdict]:
        """One for each published Ψ, with α_ideal as measured here; none where nothing was published."""
        theirs = zip(PSI, self.published or (), strict=False)
        return [verdict(self.method, self.record[field]["mean"], number) for field, number in theirs]

    @property
    def protocol(self) -> str:
        """What was done, in a sentence."""
        base, step, classes = (self.record["protocol"][name] for name in ("base", "step", "classes"))
        return (
            f"{base} classes at first, then {classes - base} more, {'one' if step == 1 else step} at a time, without "
            f"the earlier data; {count(len(self.record['orders']), 'class order')}."
        )

    def memory(self, flavour: str) -> dict[int, float]:
        """Bytes by number of classes, in one of the ways of counting; empty where it was not measured."""
        found = (self.record.get("memory") or {}).get(flavour, {})
        return {n: float(found[str(n)]) for n in sorted(map(int, found))}

    @cached_property
    def classes_seen(self) -> list[int]:
        """The number of classes after every task that all orders have finished."""
        tasks = min((order["tasks"] for order in self.record["orders"]), key=len)
        return [task["classes_seen"] for task in tasks]

    def courses(self, field: str) -> list[list[float]]:
        """One value per task, for every order; of bytes by what they are kept for, the sum."""
        n = len(self.classes_seen)
        courses = [[task.get(field) or 0 for task in order["tasks"][:n]] for order in self.record["orders"]]
        return [[float(sum(v.values()) if isinstance(v, Mapping) else v) for v in course] for course in courses]


@dataclass(frozen=True)
class Group:
    """The rows that may be compared: same data, same features."""

    dataset: str
    backbone: str
    rows: list[Row]

    @property
    def title(self) -> str:
        """Data set and backbone as people call them, with the first digits of the weights' hash."""
        backbone = re.sub(r":sha256-([0-9a-f]{8})[0-9a-f]*", r" (\1)", self.backbone)
        return f"{dataset_title(self.dataset)} on {backbone}"


def published_only(rows: Sequence[Row]) -> dict[str, tuple[float, float, float]]:
    """The published Ψ of the methods that these rows, of one data set, do not have."""
    ran = {row.method for row in rows}
    return {name: psi for name, psi in published.PSI.get(rows[0].record["dataset"], {}).items() if name not in ran}


def load(sources: Sequence[Path | str | Json]) -> list[Run]:
    """The runs; a folder stands for the `results.json` in it."""
    if not sources:
        raise ValueError("a report needs at least one results file")
    runs = []
    for number, source in enumerate(sources, 1):
        if isinstance(source, Mapping):
            name, label, content = f"results {number}", f"run {number}", source
        else:
            path = Path(source)
            path = path / "results.json" if path.is_dir() else path
            name, content = str(path), _read(path)
            label = path.resolve().parent.name if path.name == "results.json" else path.stem
        problem = next(_problems(content, _RESULTS, ""), None)
        if problem is None and content["format"] != 1:
            problem = f"format {content['format']} is not known to this version of engram"
        if problem is not None:
            raise ValueError(f"{name} is not a results file of `engram bench`: {problem}")
        runs.append((label, content))
    labels = _distinct([label for label, _ in runs], ())
    return [Run(label, content) for label, (_, content) in zip(labels, runs, strict=True)]


def group(runs: Sequence[Run]) -> list[Group]:
    """The records of all runs by data set and backbone, in the order of their first appearance."""
    found: dict[tuple[str, str], list[tuple[Run, Json]]] = {}
    for run in runs:
        for record in run.content["records"]:
            found.setdefault((record["dataset"], record["backbone"]), []).append((run, record))
    groups = []
    for (dataset, backbone), members in found.items():
        methods = list(dict.fromkeys(record["method"] for _, record in members))
        members.sort(key=lambda member: methods.index(member[1]["method"]))  # the same method of two runs, side by side
        labels = _distinct(
            [record["method"] for _, record in members],
            ([run.label for run, _ in members], [record.get("preset") or "" for _, record in members]),
        )
        rows = [Row(label, run, record) for label, (run, record) in zip(labels, members, strict=True)]
        groups.append(Group(dataset, backbone, rows))
    return groups


def _read(path: Path) -> Any:
    try:
        return read_results(path)
    except FileNotFoundError:
        raise ValueError(f"{path} does not exist; `engram bench --out DIR` writes it") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not a results file of `engram bench`: not JSON ({error})") from None


def _problems(value: Any, shape: Any, where: str) -> Iterator[str]:
    if isinstance(shape, dict):
        if not isinstance(value, Mapping):
            yield f"{where or 'the file'} is not an object"
            return
        for key, inner in shape.items():
            key, optional = key.removesuffix("?"), key.endswith("?")
            name = f"{where}.{key}" if where else key
            if optional and value.get(key) is None:
                continue
            if key not in value:
                yield f"{name} is missing"
            else:
                yield from _problems(value[key], inner, name)
    elif isinstance(shape, list):
        if not isinstance(value, list):
            yield f"{where} is not a list"
        elif not value:
            yield f"{where} is empty"
        else:
            for i, item in enumerate(value):
                yield from _problems(item, shape[0], f"{where}[{i}]")
    elif not isinstance(value, shape):
        yield f"{where} is {json.dumps(value, default=str)[:40]}"


def _distinct(labels: Sequence[str], qualifiers: Iterable[Sequence[str]]) -> list[str]:
    """Labels that appear twice get what tells them apart: a qualifier where it does, else a number."""
    labels = list(labels)
    for qualifier in qualifiers:
        twice = {label for label, n in Counter(labels).items() if n > 1}
        for label in twice:
            at = [i for i, other in enumerate(labels) if other == label]
            if len({qualifier[i] for i in at}) > 1:
                for i in at:
                    labels[i] = f"{label} · {qualifier[i]}" if qualifier[i] else label
    counts, seen = Counter(labels), Counter[str]()
    for i, label in enumerate(labels):
        seen[label] += 1
        if counts[label] > 1:
            labels[i] = f"{label} #{seen[label]}"
    return labels
