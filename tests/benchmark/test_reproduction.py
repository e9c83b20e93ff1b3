"""The ledger says what the results files say."""

import json
import sys
from pathlib import Path

import pytest

from engram.benchmark.ledger import write_tables

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

reproduction = pytest.importorskip("reproduction")


def test_the_ledger_is_what_the_results_files_say():
    page = reproduction.PAGE.read_text()
    assert reproduction.filled(page) == page, "run: python benchmarks/reproduction.py"
    assert {path.stem for path in (ROOT / "results").glob("*.json")} <= set(page.replace("-->", " ").split())


def test_the_tables_are_what_the_results_files_say(tmp_path):
    results = [ROOT / "results" / f"{name}.json" for name in reproduction.TABLES]
    committed = (ROOT / "docs" / "tables" / "tables.md").read_text()
    assert write_tables(results, tmp_path) == committed, "run: python benchmarks/reproduction.py"


@pytest.mark.parametrize(
    ("ours", "word"), [(0.671, "better"), (0.67, "reproduced"), (0.61, "reproduced"), (0.609, "**not reproduced**")]
)
def test_verdicts(ours, word):
    assert reproduction.verdict(ours, 0.64, 0.03) == word


def test_psi_in_the_results_follow_from_the_accuracies_there():
    """Re-derived from the accuracies after every task, which are in the same file."""
    for path in (ROOT / "results").glob("*.json"):
        for record in json.loads(path.read_text())["records"]:
            ideal = record["alpha_ideal"]["accuracy"]
            for part, divisor in (("base", ideal), ("new", 1.0), ("all", ideal)):
                for order, value in zip(record["orders"], record[f"psi_{part}"]["values"], strict=True):
                    later = [task[f"alpha_{part}"] for task in order["tasks"][1:]]
                    assert value == pytest.approx(sum(later) / len(later) / divisor, abs=1e-5)
