"""Put the numbers of results/ into the tables of docs/reproduction.md, and make docs/tables from them.

    python benchmarks/reproduction.py

Between `<!-- NAME -->` and `<!-- end -->` stands what results/NAME.json says; everything else is written by hand.
docs/tables is what `engram tables` makes of the results files that TABLES names.
"""

import json
import re
from pathlib import Path

from engram.benchmark import paper
from engram.benchmark.ledger import write_tables
from engram.methods import METHODS

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
PARTS = {"psi_base": "Ψ_base", "psi_new": "Ψ_new", "psi_all": "Ψ_all"}
NEAR, NEAR_PEERS = 0.03, 0.05  # a published number is reproduced when ours is this close
TABLES = ("cifar100-vgg16", "cifar100-vgg16-mas-lof", "cub200-resnet50", "cifar100-peers", "cub200-peers")


def verdict(ours, published, near):
    gap = round(ours - published, 4)
    return "better" if gap > near else "reproduced" if gap >= -near else "**not reproduced**"


def spread(measured):
    return f"{measured['mean']:.3f} ± {measured['std']:.3f}"


def table(name):
    """One line for every published number a results file has a measurement for, and one for every other method."""
    content = json.loads((ROOT / "results" / f"{name}.json").read_text())
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


def filled(page):
    """The page with every table made anew."""
    return re.sub(
        r"(<!-- (?!end)([\w-]+) -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}{table(found[2])}\n{found[3]}",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
    write_tables([ROOT / "results" / f"{name}.json" for name in TABLES], ROOT / "docs" / "tables")
