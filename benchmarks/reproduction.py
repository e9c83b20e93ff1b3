"""Put the numbers of results/ into the tables of docs/reproduction.md, and make docs/tables from them.

    python benchmarks/reproduction.py

Between `<!-- NAME -->` and `<!-- end -->` stands what results/NAME.json says; everything else is written by hand.
docs/tables is what `engram tables` makes of the results files that TABLES names; where two of them have the same
method on the same features, the later one counts.
"""

import json
import re
from collections import Counter
from pathlib import Path
from statistics import fmean

from engram.bench import published
from engram.bench.results import PSI, features_title, method_title, verdict
from engram.bench.tables import markdown, write_tables
from engram.bench.units import spread

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reproduction.md"
TABLES = (
    "cifar100-vgg16",
    "cifar100-vgg16-mas",
    "cifar100-vgg19",
    "cifar100-resnet50",
    "cifar100-resnet50-mas",
    "cifar100-peers",
    "cifar100-fearnet-geppnet",
    "cub200-resnet50",
    "cub200-resnet50-mas",
    "cub200-peers",
    "cub200-fearnet-geppnet",
    "cifar100-whitened",
    "cifar100-whitened-recency",
    "cifar100-whitened-joined",
    "cifar100-vgg16-whitened",
    "cub200-whitened",
    "cub200-whitened-recency",
    "cub200-whitened-joined",
)
PARTS = ("base", "new", "all")
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


def table(name):
    """One line for every published number a results file has a measurement for, and one for every other method."""
    if name.startswith("compare/"):
        return comparison(name.removeprefix("compare/"))
    content = read(name)
    if name.startswith("increments/"):
        return increments_table(name, content)
    run, first = content["run"], content["records"][0]
    lines, others = [], []
    for record in content["records"]:
        method = record["method"]
        theirs = published.PSI[record["dataset"]].get(method)
        if theirs is None:
            measured = [*(record[field] for field in PSI), record["final_accuracy"]]
            others.append([method_title(method), *map(spread, measured)])
            continue
        for (field, symbol), number in zip(PSI.items(), theirs, strict=True):
            line = [method_title(method), symbol, f"{number:.3f}"]
            for ours in (record[field], record["paper_ideal"][field]):
                line += [spread(ours), verdict(method, ours["mean"], number)]
            lines.append(line)
    parts = [
        f"`{run['command']}`  \n"
        f"[results/{name}.json](../results/{name}.json): {run['device']}, torch {run['torch']}, revision "
        f"{run['git_revision'][:7]}, α_ideal measured {first['alpha_ideal']['accuracy']:.3f}, "
        f"paper's constant {published.IDEAL[first['dataset']]}.",
    ]
    if lines:
        head = ["configuration", "number", "paper", "ours", "verdict", "ours, paper's α_ideal", "verdict"]
        by_us, by_them = (counted(line[column] for line in lines) for column in (4, 6))
        parts += [f"By our α_ideal {by_us}; by the paper's {by_them}.", markdown(head, lines)]
    if others:
        parts.append(markdown(["not in the paper", *PSI.values(), "final accuracy"], others))
    return "\n\n".join(parts)


def counted(verdicts):
    """How many of the numbers got which verdict, in words."""
    found = Counter(verdicts)
    rest = "".join(f", {found[word]} {word}" for word in ("higher", "lower") if found[word])
    return f"{found['reproduced']} of {found.total()} reproduced{rest}"


def comparison(dataset):
    """Every method's accuracies, averaged over the increments and the class orders, the best first."""
    found = {}
    for run in latest():
        for record in run["records"]:
            if record["dataset"] == dataset:
                features = features_title(record["backbone"])
                after = [order["tasks"][1:] for order in record["orders"]]
                means = [fmean(fmean(t[f"alpha_{part}"] for t in tasks) for tasks in after) for part in PARTS]
                psi = [record[field]["mean"] for field in PSI]
                kept = sum(after[0][-1]["kept_bytes"].values())
                numbers = [*means, record["final_accuracy"]["mean"], *psi]
                found[features, record["method"]] = [
                    *(f"{n:.3f}" for n in numbers),
                    f"{kept / 1e6:.1f}",
                    str(len(after)),
                ]
    lines = [[features, method_title(method), *rest] for (features, method), rest in found.items()]
    for line in lines:
        line[1] += " (told the task)" if line[1] == method_title("hat") else ""
    lines.sort(key=lambda line: (line[0], -float(line[4])))
    one = read(f"logistic/{dataset}")
    features = features_title(one["backbone"])
    title = "logistic regression, all data at once"
    at = next(i for i, line in enumerate(lines) if line[0] == features)
    lines.insert(at, [features, title, "", "", "", f"{one['accuracy']:.3f}", "", "", "", "", ""])
    head = ["features", "method", "base", "new", "all", "final", *PSI.values(), "kept, MB", "orders"]
    return markdown(head, lines)


def increments_table(name, content):
    """What benchmarks/increments.py measured, one line per method."""
    methods = {}
    for line in content["rows"]:
        methods.setdefault(line["name"].split(": ")[0], []).append(line["value"])
    about = f"[results/{name}.json](../results/{name}.json): {content['device']}, torch {content['torch']}."
    head = ["method", "early class, ms", "late class, ms", "late / early", "kept early, MB", "kept late, MB"]
    lines = []
    for method, (early, late, ratio, few, many) in methods.items():
        seconds = [f"{early * 1e3:.3g}", f"{late * 1e3:.3g}", f"{ratio:.2f}"]
        lines.append([method_title(method), *seconds, f"{few:.4g}", f"{many:.4g}"])
    return f"{about}\n\n{markdown(head, lines)}"


def fill(page):
    """Make every table of the page anew."""
    return re.sub(
        r"(<!-- (?!end)([\w/-]+) -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}{table(found[2])}\n{found[3]}",
        page,
        flags=re.DOTALL,
    )


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text()))
    write_tables(latest(), ROOT / "docs" / "tables", NOTE)
