"""Which records count: those in results/*.json that no later run of the same row has replaced."""

import json
from functools import cache
from pathlib import Path

from rows import TEN_ORDERS

from engram.bench.learners import METHODS
from engram.bench.published import NAMES, OWN
from engram.bench.results import features_title, group, load, method_of, variant_of

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results"
ELSEWHERE = "cpu"  # the folder of what was run again on another machine; the ledger is made without it
ABLATIONS, EQUAL_MEMORY = "-ablations", "-memory"  # how the names of files with a section of their own end


@cache
def read(name):
    """A results file of `engram bench`, of whatever version."""
    return load([RESULTS / f"{name}.json"])[0].content


@cache
def read_plain(name):
    """What another benchmark wrote."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def names(ending=""):
    """The results files, the one that was started first at the beginning; of the main tables, or of a section.

    Without those of ten class orders, which no table has yet.
    """
    found = [path.stem for path in RESULTS.glob("*.json") if path.stem not in TEN_ORDERS]
    if ending:
        found = [name for name in found if name.endswith(ending)]
    else:
        found = [name for name in found if not name.endswith((ABLATIONS, EQUAL_MEMORY))]
    return sorted(found, key=lambda name: (read(name)["run"].get("started") or "", name))


def run_again():
    """Results files of another machine, each under the name it has in the ledger, too, if it is there."""
    return {path.stem: read(f"{ELSEWHERE}/{path.stem}") for path in sorted((RESULTS / ELSEWHERE).glob("*.json"))}


def identity(record):
    """What makes it the row it is; a later run of the same one replaces it."""
    base = record["protocol"]["base"]
    return record["dataset"], features_title(record["backbone"]), method_of(record), variant_of(record), base


def current(contents):
    """Results, in the order they were started, without the records that a later one replaces."""
    last = {identity(record): id(record) for content in contents for record in content["records"]}
    kept = [[r for r in content["records"] if last[identity(r)] == id(r)] for content in contents]
    return [content | {"records": records} for content, records in zip(contents, kept, strict=True) if records]


def latest():
    """What the tables are made of."""
    return current([read(name) for name in names()])


def without_variants():
    """What docs/tables is made of, by data set: methods as they are; variants have a section of their own."""
    kept = [run | {"records": [r for r in run["records"] if not variant_of(r)]} for run in latest()]
    return sorted((run for run in kept if run["records"]), key=lambda run: run["records"][0]["dataset"])


def rows():
    """The same as rows, with the variants."""
    return rows_of(latest())


def rows_of(contents):
    """By data set, features, and in the order of the tables."""
    found = [row for members in group(load(contents)) for row in members.rows] if contents else []
    order = list(dict.fromkeys([*OWN, *NAMES, *METHODS]))

    def place(row):
        known = row.method if row.method in order else row.record["learner"]
        return row.record["dataset"], row.features, order.index(known), row.method, row.variant

    return sorted(found, key=place)
