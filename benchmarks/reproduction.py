"""Put the numbers of results/ into the tables of docs/reproduction.md.

    python benchmarks/reproduction.py

Between `<!-- NAME -->` and `<!-- end -->` stands what results/NAME.json says; everything else is written by hand.
"""

import json
import re
from pathlib import Path

from engram.benchmark import paper

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
PARTS = {"psi_base": "Ψ_base", "psi_new": "Ψ_new", "psi_all": "Ψ_all"}
NEAR = 0.03  # a published number is reproduced when ours is this close


def verdict(ours, published):
    gap = round(ours - published, 4)
    return "better" if gap > NEAR else "reproduced" if gap >= -NEAR else "**not reproduced**"


def spread(measured):
    return f"{measured['mean']:.3f} ± {measured['std']:.3f}"


def table(name):
    """One line for every published number a results file has a measurement for."""
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
    for record in content["records"]:
        published = paper.PSI[record["dataset"]].get(record["method"])
        if published is None:
            continue
        for (part, symbol), number in zip(PARTS.items(), published, strict=True):
            ours, constant = record[part], record["paper_ideal"][part]
            lines.append(
                f"| {paper.NAMES[record['method']]} | {symbol} | {number:.3f} | {spread(ours)} | {spread(constant)} "
                f"| {verdict(ours['mean'], number)} |"
            )
    return "\n".join(lines)


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
