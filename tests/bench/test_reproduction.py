"""The ledger, README.md and docs/method.md say what the results files say."""

import sys
from pathlib import Path

import pytest

from engram.bench import tables
from engram.bench.learners import METHODS
from engram.bench.results import verdict

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

reproduction = pytest.importorskip("reproduction")
records = pytest.importorskip("ledger.records")
rows = pytest.importorskip("rows")


@pytest.mark.parametrize("path", reproduction.PAGES, ids=lambda path: path.name)
def test_the_pages_are_what_the_results_files_say(path):
    page = path.read_text()
    assert "<!-- end -->" in page
    assert reproduction.fill(page) == page, "run: python benchmarks/reproduction.py"


def test_every_results_file_is_on_the_page():
    page, results = reproduction.PAGE.read_text(), ROOT / "results"
    files = [path for folder in ("", "increments", "logistic") for path in (results / folder).glob("*.json")]
    names = [path.relative_to(results).as_posix() for path in files if path.stem not in rows.TEN_ORDERS]
    assert [name for name in names if f"(../results/{name})" not in page] == []


@pytest.mark.parametrize("name", reproduction.SECTIONS)
def test_the_script_of_a_section_prints_the_table_of_the_page(name, monkeypatch, capsys):
    module, found = reproduction.section_results(name)
    monkeypatch.setattr(module, "picture", lambda results, out: None)  # drawing takes long
    files = [str(ROOT / "results" / f"{one}.json") for one in found]
    monkeypatch.setattr(sys, "argv", [name, *files, "--out", "none.png"])
    module.main()
    assert capsys.readouterr().out.strip() in reproduction.PAGE.read_text()


def test_the_verdict_is_the_first_thing_on_the_page():
    before, _ = reproduction.PAGE.read_text().split("<!-- verdict -->")
    prose = before.split("\n", 1)[1].strip()
    assert prose.count(". ") + prose.endswith(".") == 2  # sentences
    assert "|" not in prose


def test_the_tables_are_what_the_results_files_say(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "save_png", lambda *_: None)  # the text is compared; drawing takes long
    committed = (ROOT / "docs" / "tables" / "tables.md").read_text()
    made = tables.write_tables(records.without_variants(), tmp_path, reproduction.NOTE)
    assert made == committed, "run: python benchmarks/reproduction.py"


def test_the_tables_have_every_row_once():
    shown = [records.identity(record) for run in records.latest() for record in run["records"]]
    everything = {
        records.identity(record) for name in reproduction.names() for record in reproduction.read(name)["records"]
    }
    assert len(shown) == len(everything)
    assert set(shown) == everything


def test_readme_counts_the_systems_there_are():
    """Fifteen others, say, are all methods but ours and the two bounds."""
    summary = reproduction.summary
    words = summary.systems().split()
    ours = {name for name in METHODS if name in summary.OURS}
    assert summary.NUMBERS.index(words[0]) + 2 + len(ours) == len(METHODS)
    assert words[1:] == ["systems", "and", "two", "bounds"]
    assert summary.systems() in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", ["README.md", "docs/reproduction.md", "docs/tables/tables.md"])
def test_hat_is_never_named_without_what_it_is_told(page):
    text = (ROOT / page).read_text()
    assert "told the task" in text
    assert "| HAT |" not in text


@pytest.mark.parametrize(
    ("method", "ours", "word"),
    [
        ("mas", 0.671, "higher"),
        ("mas", 0.67, "reproduced"),
        ("mas", 0.61, "reproduced"),
        ("mas", 0.609, "lower"),
        ("icarl", 0.691, "higher"),
        ("icarl", 0.69, "reproduced"),
        ("icarl", 0.59, "reproduced"),
        ("icarl", 0.589, "lower"),
    ],
)
def test_a_verdict_looks_at_both_sides(method, ours, word):
    assert verdict(method, ours, 0.64) == word


def test_psi_in_the_results_follow_from_the_accuracies_there():
    """Re-derived from the accuracies after every task, which are in the same file."""
    for path in (ROOT / "results").glob("*.json"):
        for record in records.read(path.stem)["records"]:
            ideal = record["alpha_ideal"]["accuracy"]
            for part, divisor in (("base", ideal), ("new", 1.0), ("all", ideal)):
                for order, value in zip(record["orders"], record[f"psi_{part}"]["values"], strict=True):
                    later = [task[f"alpha_{part}"] for task in order["tasks"][1:]]
                    assert value == pytest.approx(sum(later) / len(later) / divisor, abs=1e-5)
