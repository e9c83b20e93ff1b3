"""results.json: read it, check it, put what may be compared side by side, and judge it beside what was published."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from engram.bench import published
from engram.bench.learners import METHODS, find_method
from engram.bench.results_file import read_results
from engram.bench.schema import PSI, find_problem
from engram.bench.units import count
from engram.learners.base import About

Json = Mapping[str, Any]
Verdict = Literal["reproduced", "higher", "lower"]
Ideal = Literal["ours", "paper"]

_DATASETS = {"cifar100": "CIFAR-100", "cub200": "CUB-200-2011", "digits": "Handwritten digits", "folder": "Own images"}
# How far from the published Ψ ours may be: for the paper's own rows, and for those it quotes of other systems.
NEAR, NEAR_PEERS = 0.03, 0.05
# What Ψ_base and Ψ_all are divided by: every number is judged by both.
IDEALS: dict[Ideal, str] = {"ours": "our α_ideal", "paper": "the paper's"}
MARKS: dict[Verdict, str] = {"reproduced": "", "higher": "▲", "lower": "▼"}


def verdict(method: str, ours: float, theirs: float) -> Verdict:
    """Ours is *reproduced* where it is near the published number, on either side; else it is *higher* or *lower*."""
    gap = ours - theirs
    if abs(gap) <= margin(method) + 1e-9:
        return "reproduced"
    return "higher" if gap > 0 else "lower"


def margin(method: str) -> float:
    """How far from the published number is near."""
    return NEAR if method in published.OWN else NEAR_PEERS


def count_verdicts(verdicts: Iterable[Verdict]) -> str:
    """How many of the numbers got which verdict, in words."""
    found = Counter(verdicts)
    rest = "".join(f", {found[word]} {word}" for word in ("higher", "lower") if found[word])
    return f"{found['reproduced']} of {found.total()} reproduced{rest}"


def dataset_title(dataset: str) -> str:
    """The name people know it by."""
    return _DATASETS.get(dataset, dataset)


def features_title(backbone: str) -> str:
    """Backbone and layer, and whether pictures were mirrored, of a backbone's identity."""
    mirrored = ":mirror" if backbone.endswith(":mirror") else ""
    return backbone.split("@")[0].split(",")[0] + mirrored


TOLD = " (told the task)"  # stands wherever such a method does
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


def told_title(method: str) -> str:
    """The same, and what nobody else is told."""
    return method_title(method) + (TOLD if method in METHODS and METHODS[method].about.told_the_task else "")


def method_of(record: Json) -> str:
    """The row's method. FearNet whose sleeps train the head alone is ours, whatever files of before call it."""
    method, config = str(record["method"]), record.get("config") or {}
    return "fearnet-head" if method == "fearnet" and config.get("sleep_trains") == "head" else method


def variant_of(record: Json) -> str:
    """What makes the row another one than its method's, such as "without L_L1"; files of before left it to be seen."""
    bits = (record.get("config") or {}).get("kept_bits")
    return str(record.get("name") or (f"{bits} bits" if bits in (4, 8) else ""))


def label_of(record: Json) -> str:
    """What a row is called: its method, what makes it another one, and what nobody else is told."""
    told = find_method(record.get("learner", "prototypes")).about.told_the_task
    return ", ".join(filter(None, (method_of(record), variant_of(record)))) + (TOLD if told else "")


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
        """The row's method."""
        return method_of(self.record)

    @property
    def variant(self) -> str:
        """What makes it another row than its method's; empty for the method as it is."""
        return variant_of(self.record)

    @property
    def title(self) -> str:
        """What people call it."""
        return label_of(self.record).replace(self.method, method_title(self.method), 1)

    @property
    def about(self) -> About:
        """What to know about the method."""
        return find_method(self.record.get("learner", "prototypes")).about

    @property
    def features(self) -> str:
        """The backbone and the layer, without how it was scaled and which weights it had."""
        return features_title(self.record["backbone"])

    @property
    def published(self) -> tuple[float, float, float] | None:
        """The paper's Ψ_base, Ψ_new, Ψ_all of this data set and method; of a variant it has none."""
        return None if self.variant else published.PSI.get(self.record["dataset"], {}).get(self.method)

    @property
    def ideals(self) -> dict[Ideal, Json]:
        """The Ψ by either denominator: α_ideal as measured here, and the paper's constant where it has one."""
        theirs = self.record.get("paper_ideal")
        return {"ours": self.record, "paper": theirs} if theirs else {"ours": self.record}

    def verdicts(self, ideal: Ideal) -> list[Verdict]:
        """One for each published Ψ, by one of the denominators; none where nothing was published."""
        if self.published is None or ideal not in self.ideals:
            return []
        ours = (self.ideals[ideal][field]["mean"] for field in PSI)
        return [verdict(self.method, one, number) for one, number in zip(ours, self.published, strict=True)]

    @property
    def protocol(self) -> str:
        """What was done, in a sentence."""
        base, step, classes = (self.record["protocol"][name] for name in ("base", "step", "classes"))
        orders = len({order["seed"] for order in self.record["orders"]})
        inits = len(self.record["orders"]) // orders
        return (
            f"{base} classes at first, then {classes - base} more, {'one' if step == 1 else step} at a time, without "
            f"the earlier data; {count(orders, 'class order')}"
            + (f" with {inits} initialisations each." if inits > 1 else ".")
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


def judge(rows: Sequence[Row]) -> str:
    """How many of the published numbers were reproduced, by either α_ideal."""
    counts = (
        f"by {whose} {count_verdicts(verdict for row in rows for verdict in row.verdicts(ideal))}"
        for ideal, whose in IDEALS.items()
    )
    return "; ".join(counts).capitalize() + "."


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
        problem = find_problem(content)
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
        methods = list(dict.fromkeys(method_of(record) for _, record in members))
        members.sort(key=lambda member: methods.index(method_of(member[1])))  # one method of two runs, side by side
        labels = _distinct(
            [label_of(record) for _, record in members],
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
