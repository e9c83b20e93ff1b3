"""Put the numbers of results/ into the tables of docs/reproduction.md, and make docs/tables from them.

    python benchmarks/reproduction.py

Between `<!-- NAME -->` and `<!-- end -->` stands what results/NAME.json says; everything else is written by hand.
docs/tables is what `engram tables` makes of the results files that TABLES names; where two of them have the same
method on the same features, the later one counts.
"""

import json
import re
from pathlib import Path

from engram.bench import published as paper
from engram.bench.ledger import write_tables
from engram.methods import METHODS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
PARTS = {"psi_base": "Ψ_base", "psi_new": "Ψ_new", "psi_all": "Ψ_all"}
NEAR, NEAR_PEERS = 0.03, 0.05  # a published number is reproduced when ours is this close
TABLES = (
    "cifar100-vgg16",
    "cifar100-vgg16-mas-lof",
    "cifar100-vgg19",
    "cifar100-resnet50",
    "cifar100-peers",
    "cifar100-fearnet-geppnet",
    "cub200-resnet50",
    "cub200-peers",
    "cub200-fearnet-geppnet",
)
NOTE = (
    "Many of these runs shared the GPU with others: their seconds are uneven, and longer than "
    "[measured alone](../reproduction.md#what-one-class-more-costs)."
)


def read(name):
    return json.loads((ROOT / "results" / f"{name}.json").read_text())


def latest():
    """The results that TABLES names, without the records that a later one replaces."""
    runs, last = [read(name) for name in TABLES], {}
    for run in runs:
        last |= {configuration(record): record for record in run["records"]}
    kept = [[record for record in run["records"] if last[configuration(record)] is record] for run in runs]
    return [run | {"records": records} for run, records in zip(runs, kept, strict=True)]


def configuration(record):
    return record["dataset"], record["backbone"], record["method"]


def verdict(ours, published, near):
    gap = round(ours - published, 4)
    return "better" if gap > near else "reproduced" if gap >= -near else "**not reproduced**"


def spread(measured):
    return f"{measured['mean']:.3f} ± {measured['std']:.3f}"


def table(name):
    """One line for every published number a results file has a measurement for, and one for every other method."""
    content = read(name)
    if name.startswith("increments/"):
        return increments_table(name, content)
    run, first = content["run"], content["records"][0]
    lines = [
        f"`{run['command']}`  ",
        f"[results/{name}.json](../results/{name}.json): {run['device']}, torch {run['torch']}, revision "
        f"{run['git_revision'][:7]}, α_ideal measured {first['alpha_ideal']['accuracy']:.3f}, "
        f"paper's constant {paper.IDEAL[first['dataset']]}.",
        "",
        "| configuration | number | paper | ours | ours, paper's α_ideal | verdict |",
        "|---|---|---|---|---|---|",
    ]
    others = []
    for record in content["records"]:
        method, published = record["method"], paper.PSI[record["dataset"]].get(record["method"])
        if published is None:
            measured = [*(record[part] for part in PARTS), record["final_accuracy"]]
            others.append(f"| {METHODS[method].about.title} | {' | '.join(map(spread, measured))} |")
            continue
        for (part, symbol), number in zip(PARTS.items(), published, strict=True):
            ours, constant = record[part], record["paper_ideal"][part]
            near = NEAR if method in paper.OWN else NEAR_PEERS
            lines.append(
                f"| {paper.NAMES[method]} | {symbol} | {number:.3f} | {spread(ours)} | {spread(constant)} "
                f"| {verdict(ours['mean'], number, near)} |"
            )
    if others:
        lines += ["", f"| not in the paper | {' | '.join(PARTS.values())} | final accuracy |", "|---|---|---|---|---|"]
    return "\n".join(lines + others)


def increments_table(name, content):
    """What benchmarks/increments.py measured, one line per method."""
    methods = {}
    for line in content["rows"]:
        methods.setdefault(line["name"].split(": ")[0], []).append(line["value"])
    lines = [
        f"[results/{name}.json](../results/{name}.json): {content['device']}, torch {content['torch']}.",
        "",
        "| method | early class, ms | late class, ms | late / early | kept early, MB | kept late, MB |",
        "|---|---|---|---|---|---|",
    ]
    for method, (early, late, ratio, few, many) in methods.items():
        title = METHODS[method].about.title if method in METHODS else paper.NAMES[method]
        lines.append(f"| {title} | {early * 1e3:.3g} | {late * 1e3:.3g} | {ratio:.2f} | {few:.4g} | {many:.4g} |")
    return "\n".join(lines)


def filled(page):
    """The page with every table made anew."""
    return re.sub(
        r"(<!-- (?!end)([\w/-]+) -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}{table(found[2])}\n{found[3]}",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
    write_tables(latest(), ROOT / "docs" / "tables", NOTE)
