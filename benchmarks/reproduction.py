"""Put what results/ says into docs/reproduction.md, README.md and docs/method.md, and make docs/tables from it.

    python benchmarks/reproduction.py

Between `<!-- NAME -->` and `<!-- end -->` stands what PLACES has under that name; all else is written by hand. Every
results/*.json is read; where two have the same row, the one that was started last counts. Files that end in -ablations
and -memory have sections of their own. What is in results/cpu was run again elsewhere, and is on docs/log/cpu.md alone.
"""

import importlib
import re
from functools import cache

import trials_table
from ledger import again, claims, comparison, details, summary, verdicts
from ledger.records import (
    ABLATIONS,
    ELSEWHERE,
    EQUAL_MEMORY,
    ROOT,
    current,
    names,
    read,
    read_plain,
    rows,
    rows_of,
    run_again,
    without_variants,
)

from engram.bench.tables import write_tables

PAGE = ROOT / "docs" / "reproduction.md"
PAGES = (PAGE, ROOT / "README.md", *(ROOT / "docs" / name for name in ("method.md", "peers.md", "log/cpu.md")))
TABLES = ROOT / "docs" / "tables"
DATASETS = summary.DATASETS
NOTE = (
    "Many of these runs shared the GPU with others: their seconds are uneven, and longer than "
    "[measured alone](../reproduction.md#what-one-class-more-costs)."
)
# A section, the module of benchmarks/ that makes its table and its picture, and how its results files' names end.
SECTIONS = {"ablations": ("ablations", ABLATIONS), "equal-memory": ("equal_memory", EQUAL_MEMORY)}


@cache
def ledger_rows():
    return rows()


@cache
def judged_claims():
    ablations = rows_of(current([read(name) for name in names(ABLATIONS)]))
    late = claims.late_by_early({dataset: read_plain(f"increments/{dataset}") for dataset in DATASETS})
    return claims.judge_claims(ledger_rows(), ablations, late)


def logistic():
    return {dataset: read_plain(f"logistic/{dataset}") for dataset in DATASETS}


def section_results(name):
    """The module of a section, its results files, those there are, and what it wants of the ledger; or no module."""
    module, ending = SECTIONS[name]
    there = names(ending)
    if not there:
        return None, {}
    module = importlib.import_module(module)
    files = [one for one in module.ROWS if one in there] + [one for one in module.ALSO if one in names()]
    return module, {one: read(one) for one in files}


def run_again_beside_the_ledger():
    """Rows of another machine that the ledger has, too."""
    return again.run_again(run_again().values(), [read(name) for name in (*names(), *names(EQUAL_MEMORY))])


def equal_memory_run_again():
    """The ledger's table of the data set that was run again, with what was run."""
    _, found = section_results("equal-memory")
    return again.filled_in(run_again(), {name: content for name, content in found.items() if name.startswith("cub200")})


def section(name):
    """What another script makes of its own results files, with its picture; or that there are none yet."""
    module, found = section_results(name)
    if not found:
        return "Not yet run."
    files = ", ".join(f"[results/{one}.json](../results/{one}.json)" for one in found)
    return f"{module.table(found)}\n\n![{name}](tables/{name}.png)\n\n{files}"


PLACES = {
    "verdict": lambda: verdicts.verdict_table(ledger_rows()),
    "claims": lambda: claims.claim_table(judged_claims()),
    "evidence": lambda: claims.evidence_table(judged_claims()),
    "simple": lambda: claims.simple_statistics(ledger_rows()),
    "ideals": lambda: comparison.ideals(ledger_rows()),
    "details": lambda: details.details({name: read(name) for name in names()}, ledger_rows()),
    "systems": summary.systems,
    "readme-table": lambda: summary.readme_table(ledger_rows(), logistic()),
    "orders": lambda: summary.orders_sentence(ledger_rows()),
    "all-data": lambda: summary.all_data(ledger_rows(), logistic()),
    "above": lambda: summary.above(ledger_rows()),
    "again": run_again_beside_the_ledger,
    "again/equal-memory": equal_memory_run_again,
    "again/files": lambda: again.files(run_again(), f"results/{ELSEWHERE}"),
    "reached": lambda: summary.reached(ledger_rows()),
}
for _dataset in DATASETS:
    PLACES |= {
        f"compare/{_dataset}": lambda d=_dataset: comparison.compare(ledger_rows(), d, logistic()[d]),
        f"differences/{_dataset}": lambda d=_dataset: comparison.differences(ledger_rows(), d),
        f"trials/{_dataset}": lambda d=_dataset: trials_table.table(d),
        f"increments/{_dataset}": lambda d=_dataset: comparison.increments(d, read_plain(f"increments/{d}")),
    }
PLACES |= {name: lambda name=name: section(name) for name in SECTIONS}


def fill(page):
    """Make every marked place of the page anew."""
    return re.sub(
        r"(<!-- (?!end)([\w/-]+) -->)(\n*).*?(<!-- end -->)",
        lambda found: f"{found[1]}{found[3]}{PLACES[found[2]]()}{found[3]}{found[4]}",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(fill(path.read_text()))
    write_tables(without_variants(), TABLES, NOTE)
    for name in SECTIONS:
        module, found = section_results(name)
        if found:
            module.picture(found, TABLES / f"{name}.png")
