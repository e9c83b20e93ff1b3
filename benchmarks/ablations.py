"""What each part of the paper's method is worth: the MAS row with one thing changed, on three sets of features.

    python benchmarks/ablations.py results/cifar100-resnet50-ablations.json … --out ablations.png

`benchmarks/reproduce.py` runs ROWS; this draws the one picture and prints the table of what it found. All rows have the
class orders and initialisations of the row as published, so every dot is a difference within one class order.
"""

import argparse
import re
from pathlib import Path
from statistics import fmean

from rows import Row

from engram.bench.drawing import COLOURS, GREY, INK, Figure, Panel, save_png
from engram.bench.results import dataset_title, features_title, load
from engram.bench.tables import markdown

PUBLISHED = "as published"
MEASURES = {"alpha_all": "α_all", "alpha_new": "Ψ_new"}  # both are means over the increments


def variants(center_epochs, scale):
    """Names of rows and what they change; L_add's length is that of the preset with LOF, the scale that of all."""
    excluded = ("outlier_exclusion=true", f"center_epochs={center_epochs}")
    return {
        PUBLISHED: (),
        "frozen encoder": ("increment_epochs=0",),
        "λ_reg = 0": ("lambda_reg=0",),
        "without L_MSE": ("lambda_mse=0",),
        "without L_cos": ("lambda_cos=0",),
        "without L_L1": ("lambda_l1=0",),
        "LOF alone": ("outlier_exclusion=true", "center_epochs=0"),
        "L_add alone": (*excluded, "lof_neighbours=0"),
        "LOF + L_add": excluded,
        "SI instead of MAS": ("consolidation=si",),
        "all pairs": ("pairs=all",),
        **{f"feature_rms × {factor}": (f"feature_rms={scale * factor:g}",) for factor in (0.1, 0.3, 3)},
    }


def rows_of(features, changes):
    """A row for each change."""
    preset = f"{features.split('-')[0]}-mas"
    return [Row(preset, features, settings, name, 3, 1) for name, settings in changes.items()]


def sizes_of(features, hidden, codes, classes):
    """Rows with a code of another size, and with another share of the classes in the base."""
    preset = f"{features.split('-')[0]}-mas"
    rows = [Row(preset, features, (f"layers=[{hidden}, {code}]",), f"code of {code:,}", 3, 1) for code in codes]
    shares = {f"{share} % of the classes first": classes * share // 100 for share in (10, 25, 75)}
    return rows + [Row(preset, features, (), name, 3, 1, base) for name, base in shares.items()]


CIFAR, CUB = variants(100, 0.1), variants(10, 1.0)
ROWS = {
    "cifar100-resnet50-ablations": [
        *rows_of("cifar100-resnet50", CIFAR),
        *sizes_of("cifar100-resnet50", 2048, (256, 512, 1024, 4096), classes=100),  # 2,048 and half are as published
    ],
    "cifar100-vgg16-ablations": rows_of("cifar100-vgg16", CIFAR),
    # run later than the others, so in a file of its own; differences are to the row as published of the one above
    "cifar100-vgg16-sizes-ablations": sizes_of("cifar100-vgg16", 2048, (256, 512, 1024, 4096), classes=100),
    "cub200-resnet50-ablations": [
        *rows_of("cub200-resnet50", CUB),
        *sizes_of("cub200-resnet50", 1024, (256, 512, 2048, 4096), classes=200),  # 1,024 and half are as published
    ],
}
ALSO = ()  # of the ledger's files


def courses(record):
    """By class order, the increments one by one."""
    return {order["seed"]: [task for task in order["tasks"] if task["task"] > 0] for order in record["orders"]}


def differences(records):
    """By the name of a row, for each measure, what its class orders differ by from the same orders as published.

    A base of another size has more increments or fewer: only the last ones, which both have, know as many classes.
    """
    by_name = {record["name"]: courses(record) for record in records}
    published = by_name.pop(PUBLISHED)
    return {
        name: {
            field: [_gap(tasks, published[seed], field) for seed, tasks in orders.items() if seed in published]
            for field in MEASURES
        }
        for name, orders in by_name.items()
    }


def _gap(tasks, others, field):
    both = min(len(tasks), len(others))
    return fmean(task[field] for task in tasks[-both:]) - fmean(task[field] for task in others[-both:])


def all_names(found):
    """The rows of all results, in the order of ROWS; sizes of a code by size."""
    names = dict.fromkeys(name for rows in found for name in rows)
    sizes = sorted((name for name in names if name.startswith("code")), key=lambda name: int(re.sub(r"\D", "", name)))
    last = [name for name in names if "first" in name]
    return [*(name for name in names if name not in {*sizes, *last}), *sizes, *last]


def by_features(results):
    """The records of all files by their features' title, so that rows of two files on one set of features compare."""
    found = {}
    for content in results.values():
        first = content["records"][0]
        title = f"{dataset_title(first['dataset'])}, {features_title(first['backbone']).split(':')[0]}"
        found.setdefault(title, []).extend(content["records"])
    return found


def table(results):
    """One line per row: the measures as published, then differences, mean and range over the class orders."""
    every = by_features(results)
    head = ["", *(f"{title}: {symbol}" for title in every for symbol in MEASURES.values())]
    found = [differences(records) for records in every.values()]
    first = [PUBLISHED]
    for records in every.values():
        published = courses(next(record for record in records if record["name"] == PUBLISHED))
        first += [f"{fmean(fmean(t[field] for t in tasks) for tasks in published.values()):.3f}" for field in MEASURES]
    lines = [first]
    for name in all_names(found):
        lines.append([name, *(_spread(rows.get(name, {}).get(field)) for rows in found for field in MEASURES)])
    note = (
        "Means over the increments; below the first line, the difference to it, over the increments that both have: "
        "the mean over class orders, and in brackets from the lowest to the highest where there are several. –: not "
        "run, or as published."
    )
    return markdown(head, lines) + "\n\n" + note


def _spread(values):
    if not values:
        return None
    low, mean, high = (f"{value:+.3f}".replace("-", "−") for value in (min(values), fmean(values), max(values)))
    return f"{mean} ({low} to {high})" if len(values) > 1 else mean


def picture(results, path):
    """One panel per features: of every row the difference to the row as published, a dot per order and the mean."""
    every = {title: differences(records) for title, records in by_features(results).items()}
    names = all_names(every.values())
    panels = []
    for title, found in every.items():
        words = (f"{name} {' and '.join(f'{fmean(v):+.3f}' for v in by.values())}" for name, by in found.items())
        alt = f"Differences of {' and '.join(MEASURES.values())} to the row as published: {'; '.join(words)}."
        panels.append(Panel(title, alt, _drawer(found, names)))
    note = (
        f"Difference to the row as published; blue: {MEASURES['alpha_all']}, orange: {MEASURES['alpha_new']}, means "
        "over the increments that both have. Small dots: class orders; bars with a large mark: their mean."
    )
    figure = Figure("ablations", panels, (5.2, 0.34 * len(names) + 0.6), note=note)
    save_png(figure, Path(path), "MAS with one thing changed")


def _drawer(found, names):
    def draw(axis):
        axis.axvline(0, color=INK, lw=1)
        for y, by in ((names.index(name), by) for name, by in found.items()):
            for field, colour, marker, shift in zip(MEASURES, COLOURS, "os", (-0.17, 0.17), strict=False):
                values = by[field]
                axis.plot([0, fmean(values)], [y + shift] * 2, color=colour, lw=1.4, alpha=0.6)
                axis.plot(fmean(values), y + shift, marker, color=colour, ms=6.5, mec="white", mew=0.7, zorder=3)
                axis.plot(values, [y + shift] * len(values), ".", color=colour, ms=4.5, alpha=0.75, mew=0, zorder=4)
        axis.set_yticks(range(len(names)), names)
        axis.tick_params(axis="y", length=0)
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.xaxis.set_major_formatter(lambda value, _: f"{value:+g}".replace("-", "−") if value else "0")
        axis.grid(axis="y", color=GREY, alpha=0.12)

    return draw


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True, metavar="PNG")
    options = parser.parse_args()
    results = {path.stem: load([path])[0].content for path in options.results}
    picture(results, options.out)
    print(table(results))


if __name__ == "__main__":
    main()
