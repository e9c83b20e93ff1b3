"""What was run again on another machine stands beside the row with the same settings, course by course."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

again = pytest.importorskip("ledger.again")
records = pytest.importorskip("ledger.records")
reproduction = pytest.importorskip("reproduction")

POOLED, JOINED = "resnet50:pooled@224:sha256-0", "resnet50:joined@224:sha256-0"


def record(method: str, courses: dict[tuple[int, int], list[float]], ideal: float = 0.7, **more: Any) -> dict[str, Any]:
    """Made-up results with one accuracy after every task of every (class order, initialisation)."""
    found = {
        "dataset": "cub200",
        "backbone": POOLED,
        "method": method,
        "preset": f"cub200-{method}",
        "config": {"width": 5},
        "protocol": {"base": 100},
        "alpha_ideal": {"accuracy": ideal, "values": [ideal - 0.01, ideal + 0.01]},
        "orders": [
            {"seed": seed, "init": init, "tasks": [task(*each) for each in enumerate(alphas)]}
            for (seed, init), alphas in courses.items()
        ],
    }
    return found | more


def task(number: int, accuracy: float) -> dict[str, Any]:
    return {"task": number, "alpha_all": accuracy, "kept_bytes": {"network": 9}}


def file(*found: dict[str, Any]) -> dict[str, Any]:
    return {"run": {}, "records": list(found)}


def lines(there: list[dict[str, Any]], here: list[dict[str, Any]]) -> list[list[str]]:
    table = again.run_again([file(*here)], [file(*there)])
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_courses_that_both_have_are_compared_and_the_base_is_left_out():
    there = record("ncm", {(0, 0): [0.1, 0.8, 0.6], (0, 1): [0.1, 0.2, 0.2], (1, 0): [0.1, 0.6, 0.4]})
    here = record("ncm", {(1, 0): [0.9, 0.5, 0.3], (0, 0): [0.9, 0.8, 0.66], (2, 0): [0.9, 0.0, 0.0]}, ideal=0.72)
    row, ideal = lines([there], [here])
    # On the way .7 and .5 there, .73 and .4 here; after the last .6 and .4 there, .66 and .3 here.
    assert row == ["Nearest class mean", "2", "0.6000", "0.5650", "0.5000", "0.4800", "0.1000"]
    assert ideal == ["α_ideal, CUB-200-2011", "2", "", "", "0.7000", "0.7200", "0.0200"]


@pytest.mark.parametrize(
    "more",
    [
        {"backbone": JOINED},
        {"dataset": "cifar100"},
        {"config": {"width": 6}},
        {"protocol": {"base": 50}},
        {"preset": "cub200-ncm+projections=9"},
    ],
    ids=lambda more: next(iter(more)),
)
def test_rows_of_other_settings_are_not_compared(more):
    course = {(0, 0): [0.5, 0.5]}
    assert len(lines([record("ncm", course)], [record("ncm", course)])) == 2
    assert lines([record("ncm", course, **more)], [record("ncm", course)]) == []


def test_a_row_has_its_budget_in_its_name():
    course = {(0, 0): [0.5, 0.5]}
    (row, _) = lines([record("si-lof", course)], [record("si-lof", course, name="si-lof, 20 MB")])
    assert row[0] == "SI+LOF, 20 MB"


def test_what_was_run_again_replaces_the_ledger_in_the_table_and_is_named():
    course = {(0, 0): [0.5, 0.5]}
    ledger = {"cub200-ncm": file(record("ncm", course)), "cub200-slda": file(record("slda", course))}
    text = again.filled_in({"cub200-ncm": file(record("ncm", {(0, 0): [0.6, 0.6]}))}, ledger)
    assert "| Nearest class mean | 0.600 / 0.600 |" in text
    assert "| SLDA | 0.500 / 0.500 |" in text
    assert text.endswith("From this run: Nearest class mean.")


def test_the_ledger_does_not_count_what_was_run_again():
    files = records.run_again()
    assert files
    devices = {records.read(name)["run"]["device"] for name in (*records.names(), *records.names("-memory"))}
    assert {content["run"]["device"] for content in files.values()}.isdisjoint(devices)
