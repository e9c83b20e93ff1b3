"""What each part of the paper's method is worth: the MAS row with one thing changed, on three sets of features.

    python benchmarks/ablations.py results/cifar100-resnet50-ablations.json … --out ablations.png

`benchmarks/reproduce.py` runs ROWS; this draws the one picture and prints the table of what it found. All rows have the
class orders and initialisations of the row as published, so every dot is a difference within one class order.
"""

import argparse
import json
from pathlib import Path
from statistics import fmean

from rows import Row

from engram.bench.drawing import COLOURS, GREY, INK, Figure, Panel, save_png
from engram.bench.results import dataset_title, features_title
from engram.bench.tables import markdown

PUBLISHED = "as published"
FROZEN, UNHELD = "frozen encoder", "λ_reg = 0"
MEASURES = {"alpha_all": "α_all", "alpha_new": "Ψ_new"}  # both are means over the increments


def variants(center_epochs, scales):
    """Names of rows and what they change; `center_epochs` is the length of L_add in the preset with LOF."""
    excluded = ("outlier_exclusion=true", f"center_epochs={center_epochs}")
    return {
        PUBLISHED: (),
        FROZEN: ("increment_epochs=0",),
        UNHELD: ("lambda_reg=0",),
        "without L_MSE": ("lambda_mse=0",),
        "without L_cos": ("lambda_cos=0",),
        "without L_L1": ("lambda_l1=0",),
        "LOF alone": ("outlier_exclusion=true", "center_epochs=0"),
        "L_add alone": (*excluded, "lof_neighbours=0"),
        "LOF + L_add": excluded,
        "SI instead of MAS": ("consolidation=si",),
        "all pairs": ("pairs=all",),
        **{f"feature_rms {scale}": (f"feature_rms={scale}",) for scale in scales},
    }


def rows_of(features, changes, orders=None):
    """A row for each change; `orders` is the number of class orders by name, three for the others."""
    preset = f"{features.split('-')[0]}-mas"
    return [Row(preset, features, settings, name, (orders or {}).get(name, 3), 1) for name, settings in changes.items()]


def sizes_of(features, hidden, codes, bases):
    """Rows with a code of another size, and with another number of base classes."""
    preset = f"{features.split('-')[0]}-mas"
    rows = [Row(preset, features, (f"layers=[{hidden}, {code}]",), f"code of {code:,}", 3, 1) for code in codes]
    return rows + [Row(preset, features, (), f"{base} base classes", 3, 1, base) for base in bases]


CIFAR = variants(100, (0.03, 0.3, 1.0))
CUB = variants(10, (0.1, 0.3, 3.0))
THRICE = dict.fromkeys((PUBLISHED, FROZEN, UNHELD), 3)  # a row on VGG-16 takes minutes: the others get one order
ROWS = {
    "cifar100-resnet50-ablations": [
        *rows_of("cifar100-resnet50", CIFAR),
        *sizes_of("cifar100-resnet50", 2048, (256, 512, 1024, 4096), (10, 25, 75)),  # 2,048 and 50 are as published
    ],
    "cifar100-vgg16-ablations": rows_of("cifar100-vgg16", CIFAR, dict.fromkeys(CIFAR, 1) | THRICE),
    "cub200-resnet50-ablations": [
        *rows_of("cub200-resnet50", CUB),
        *sizes_of("cub200-resnet50", 1024, (256, 512, 2048, 4096), (20, 50, 150)),  # 1,024 and 100 are as published
    ],
}


def courses(record):
    """By class order, the mean of each measure over the increments."""
    return {
        order["seed"]: {field: fmean(task[field] for task in order["tasks"] if task["task"] > 0) for field in MEASURES}
        for order in record["orders"]
    }


def differences(content):
    """By the name of a row, for each measure, what its class orders differ by from the same orders as published."""
    records = {record["name"]: courses(record) for record in content["records"]}
    published = records.pop(PUBLISHED)
    return {
        name: {
            field: [found[field] - published[seed][field] for seed, found in orders.items() if seed in published]
            for field in MEASURES
        }
        for name, orders in records.items()
    }


def title_of(content):
    record = content["records"][0]
    return f"{dataset_title(record['dataset'])}, {features_title(record['backbone']).split(':')[0]}"


def table(results):
    """One line per row: the measures as published, then differences, mean and range over the class orders."""
    head = ["", *(f"{title_of(content)}: {symbol}" for content in results.values() for symbol in MEASURES.values())]
    found = [differences(content) for content in results.values()]
    first = [PUBLISHED]
    for content in results.values():
        published = courses(next(record for record in content["records"] if record["name"] == PUBLISHED))
        first += [f"{fmean(order[field] for order in published.values()):.3f}" for field in MEASURES]
    lines = [first]
    for name in dict.fromkeys(name for rows in found for name in rows):
        lines.append([name, *(_spread(rows.get(name, {}).get(field)) for rows in found for field in MEASURES)])
    note = (
        "Means over the increments; below the first line, the difference to it: the mean over class orders, and in "
        "brackets from the lowest to the highest where there are several. –: not run."
    )
    return markdown(head, lines) + "\n\n" + note


def _spread(values):
    if not values:
        return None
    low, mean, high = (f"{value:+.3f}".replace("-", "−") for value in (min(values), fmean(values), max(values)))
    return f"{mean} ({low} to {high})" if len(values) > 1 else mean


def picture(results, path):
    """One panel per data set: of every row the difference to the row as published, a dot per order and the mean."""
    height = 0.34 * max(len(content["records"]) for content in results.values()) + 0.6
    panels = []
    for content in results.values():
        found = differences(content)
        words = (f"{name} {' and '.join(f'{fmean(v):+.3f}' for v in by.values())}" for name, by in found.items())
        alt = f"Differences of {' and '.join(MEASURES.values())} to the row as published: {'; '.join(words)}."
        panels.append(Panel(title_of(content), alt, _drawer(found)))
    note = (
        f"Difference to the row as published; blue: {MEASURES['alpha_all']}, orange: {MEASURES['alpha_new']}, both "
        "means over the increments. Small dots: class orders; bars with a large mark: their mean."
    )
    save_png(Figure("ablations", panels, (5.2, height), note=note), Path(path), "MAS with one thing changed")


def _drawer(found):
    def draw(axis):
        axis.axvline(0, color=INK, lw=1)
        for y, by in enumerate(found.values()):
            for field, colour, marker, shift in zip(MEASURES, COLOURS, "os", (-0.17, 0.17), strict=False):
                values = by[field]
                axis.plot([0, fmean(values)], [y + shift] * 2, color=colour, lw=1.4, alpha=0.6)
                axis.plot(fmean(values), y + shift, marker, color=colour, ms=6.5, mec="white", mew=0.7, zorder=3)
                axis.plot(values, [y + shift] * len(values), ".", color=colour, ms=4.5, alpha=0.75, mew=0, zorder=4)
        axis.set_yticks(range(len(found)), list(found))
        axis.tick_params(axis="y", length=0)
        axis.set_ylim(len(found) - 0.4, -0.6)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:+g}".replace("-", "−") if value else "0")
        axis.grid(axis="y", color=GREY, alpha=0.12)

    return draw


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True, metavar="PNG")
    options = parser.parse_args()
    results = {path.stem: json.loads(path.read_text()) for path in options.results}
    picture(results, options.out)
    print(table(results))


if __name__ == "__main__":
    main()
