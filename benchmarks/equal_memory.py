"""How good every method is with 1, 5, 20 and 100 MB in all: network, samples, statistics, everything that is kept.

    python benchmarks/equal_memory.py --check
    python benchmarks/equal_memory.py results/*.json --out equal-memory.png

A MB is 10^6 bytes; what counts is the most that a method keeps between any two tasks, so FearNet just before a sleep.
What lies in memory only while a task is learned does not count. Widths, bits, code sizes and numbers of samples are
chosen to fill a budget, all else is the preset's; statistics that have no such setting are given random projections of
the features, as whitened prototypes make them. `benchmarks/reproduce.py` runs ROWS.

More room can make a method worse. So at a budget stands the best of all that fits in it: what was chosen for this one
or a smaller one, or the method as the ledger has it.
"""

import argparse
import re
import sys
from pathlib import Path
from statistics import fmean

from kept import count_bytes
from rows import LEDGER, RETUNED, Row

from engram.bench.drawing import COLOURS, GREY, Figure, Panel, name_lines, save_png
from engram.bench.presets import load_preset
from engram.bench.results import dataset_title, load, told_title
from engram.bench.tables import markdown
from engram.bench.units import join_words

BUDGETS = (1, 5, 20, 100)
PAPER = ("mas", "mas-lof", "si", "si-lof")
STATISTICS = ("ncm", "slda", "fecam", "ranpac", "deepncm")


def settings(text, *budgets):
    """By budget, a text whose gaps are filled with its numbers; None where the method does not fit."""
    filled = {budget: text.format(*numbers) for budget, numbers in zip(BUDGETS, budgets, strict=True) if numbers}
    return {budget: tuple(changes.split("; ")) for budget, changes in filled.items()}


def projections(*budgets):
    """By budget, a number of projections."""
    return {budget: number for budget, number in zip(BUDGETS, budgets, strict=True) if number}


AUTOENCODER = "layers=[{}, {}]; kept_bits={}"
FEARNET = "layers=[{}, {}]; bla_width={}; sleep_every={}"
OFTEN = "; dreams=1; sleep_epochs=20"  # a sleep with every class: much cheaper ones, or it would take hours
CHOSEN = {
    "cifar100": {
        **dict.fromkeys(PAPER, settings(AUTOENCODER, (72, 128, 4), (352, 256, 4), (1024, 1024, 4), (2048, 2048, 8))),
        # So few numbers of 50,000 samples come to need 32 bits on the way, whatever is asked for.
        "whitened": {1: ("width=612", "kept_bits=32")},
        "1nn": settings("samples={}", (121,), (609,), (2439,), (12195,)),
        "geppnet": settings("side={}; samples={}", (4, 100), (16, 330), (23, 1880), (23, 11600)),
        "icarl": settings("width={}; exemplars={}", (18, 100), (256, 330), (1024, 1360), (2048, 10000)),
        **dict.fromkeys(
            ("fearnet", "fearnet-head"),
            settings(FEARNET + OFTEN, (32, 30, 64, 1), (140, 64, 256, 1), None, None)
            | settings(FEARNET, None, None, (140, 132, 256, 3), None),
        ),
        "slda": projections(409, 1022, None, None),
        "fecam": projections(48, 110, 222, 498),
        "ranpac": settings("width={}", (105,), (460,), (1378,), (3999,)),
        "deepncm": settings("width={}", (114,), (578,), (2320,), (8192,)),
        "ewc": settings("width={}", (57,), (288,), (1160,), (4096,)),
        "lwf": settings("width={}", (114,), (578,), (2320,), (8192,)),
        "gem": settings("width={}; memories={}", (18, 100), (256, 330), (1024, 1360), (4096, 5000)),
        **dict.fromkeys(
            ("gan-replay", "icwgan"),
            settings("width={}; gan_width={}", (56, 28), (280, 144), None, None),
        ),
        "hat": settings("width={}", (109,), (553,), (2218,), (8192,)),
        "finetune": settings("width={}", (114,), (578,), (2320,), (8192,)),
        "joint": settings("width={}; samples={}", (18, 100), (256, 330), (1024, 1360), (2048, 10000)),
    },
    "cub200": {
        **dict.fromkeys(PAPER, settings(AUTOENCODER, (68, 128, 4), (344, 256, 4), (1024, 1024, 4), (1024, 1024, 32))),
        "whitened": {1: ("width=815",), 5: ("width=2040",)},
        "1nn": settings("samples={}", None, (609,), (2439,), (6000,)),
        "geppnet": settings("side={}; samples={}", None, (16, 320), (23, 1850), (23, 6000)),
        "icarl": settings("width={}; exemplars={}", None, (256, 320), (1024, 1310), (4096, 6000)),
        **dict.fromkeys(
            ("fearnet", "fearnet-head"),
            settings(FEARNET + OFTEN, (32, 22, 64, 1), (140, 54, 256, 1), None, None)
            | settings(FEARNET, None, None, (200, 120, 256, 10), None),
        ),
        "ncm": projections(1248, None, None, None),
        "slda": projections(337, 935, 2044, None),
        "fecam": projections(34, 78, 157, 352),
        "ranpac": settings("width={}", (97,), (433,), (1325,), (3920,)),
        "deepncm": settings("width={}", (109,), (553,), (2218,), (8192,)),
        "ewc": settings("width={}", (54,), (275,), (1105,), (4096,)),
        "lwf": settings("width={}", (109,), (553,), (2218,), (8192,)),
        "gem": settings("width={}; memories={}", None, (256, 320), (1024, 1310), (4096, 5000)),
        **dict.fromkeys(
            ("gan-replay", "icwgan"),
            settings("width={}; gan_width={}", (52, 26), (264, 136), None, None),
        ),
        "hat": settings("width={}", (100,), (506,), (2030,), (8192,)),
        "finetune": settings("width={}", (109,), (553,), (2218,), (8192,)),
        "joint": settings("width={}; samples={}", None, (256, 320), (1024, 1310), (4096, 6000)),
    },
}
SLOW = ("gem", "joint", "fearnet", "fearnet-head", "gan-replay", "icwgan")  # minutes with 500 samples of a class
# Run after the others, and in files of their own; so are those that got other settings once all had been run.
RETUNED_HERE = RETUNED | {"cub200": ("deepncm", "icarl", "ewc", "hat", "ranpac", "gem", "gan-replay", "icwgan")}
LATER = {"whitened": "whitened", "si-lof": "si-lof"} | dict.fromkeys(("fearnet", "fearnet-head"), "fearnet")
LATER |= dict.fromkeys(("ncm", "slda", "fecam"), "statistics")


def orders_of(dataset, method):
    """Three class orders; one of what is slow."""
    return 1 if dataset == "cifar100" and method in SLOW else 3


def file_of(dataset, method):
    """Where the rows of a method are."""
    later = LATER | {one: one for one in RETUNED_HERE[dataset]}
    return f"{dataset}-{later[method]}-memory" if method in later else f"{dataset}-memory"


def rows_of(dataset, method):
    """One for each budget that CHOSEN has settings for, or a number of projections."""
    preset, features, orders = f"{dataset}-{method}", f"{dataset}-resnet50", orders_of(dataset, method)
    found = []
    for budget, chosen in CHOSEN[dataset][method].items():
        name = f"{method}, {budget} MB"
        changes, projected = ((), chosen) if isinstance(chosen, int) else (chosen, None)
        found.append(Row(preset, features, changes, name, orders, 1, projections=projected))
    return found


ROWS = {}
for dataset, methods in CHOSEN.items():
    for method in methods:
        ROWS.setdefault(file_of(dataset, method), []).extend(rows_of(dataset, method))
SHOWN = list(dict.fromkeys(method for methods in CHOSEN.values() for method in methods))
ALSO = [file for file, rows in LEDGER.items() if rows[0].features.endswith("-resnet50")]  # whose rows may fit, too

# Where a method does not fit: the settings with which it keeps least, and how many bytes these are.
LEAST = {
    "cifar100": {},
    "cub200": {
        "1nn": (("samples=1",), 1_640_000),
        "geppnet": (("side=1", "samples=1"), 1_649_796),
        "icarl": (("width=1", "exemplars=1"), 1_666_180),
        "gem": (("width=1", "memories=1"), 1_667_780),
        "joint": (("width=1", "samples=1"), 1_666_180),
    },
}


# --- counting --------------------------------------------------------------------------------------------------------


def peak_bytes(record):
    """The most that was kept after any task of any class order."""
    return max(sum(task["kept_bytes"].values()) for order in record["orders"] for task in order["tasks"])


def check():
    """Print what every row keeps; an error if one keeps more than its budget, or LEAST is not what is needed."""
    sizes = {"cifar100": (100, 500), "cub200": (200, 30)}
    wrong = []
    for row in (row for rows in ROWS.values() for row in rows):
        dataset = row.preset.split("-")[0]
        width, budget = row.projections or 2048, budget_of(row.name)
        found = count_bytes(row.preset, row.settings, width, *sizes[dataset])
        chosen = " ".join(row.settings) or f"{row.projections} projections"
        print(f"{dataset}  {row.name:22} {found / 1e6:8.3f} MB  {chosen}", flush=True)
        wrong += [f"{dataset} {row.name}"] * (found > budget * 1e6)
    for dataset, methods in LEAST.items():
        for method, (changes, least) in methods.items():
            found = count_bytes(f"{dataset}-{method}", changes, 2048, *sizes[dataset])
            print(f"{dataset}  {method:14} at least {found / 1e6:8.3f} MB ({found:,})", flush=True)
            wrong += [f"{dataset} {method}, at least"] * (found != least)
    return wrong


def budget_of(name):
    """The MB of a row's name."""
    return int(re.search(r"(\d+) MB$", name)[1])


# --- showing ---------------------------------------------------------------------------------------------------------


def title_of(method):
    return {"fearnet-head": "FearNet (our sleeps)"}.get(method) or told_title(method)


def by_dataset(results):
    """By data set and method what was measured, whatever the order of the files; variants such as recency have no row.

    ValueError if a row kept more than it was to be given.
    """
    records = [record for content in results.values() for record in content["records"]]
    found = {}
    for dataset, method in ((dataset, method) for dataset in CHOSEN for method in SHOWN):
        own = [measured(record) for record in records if (record["dataset"], record["method"]) == (dataset, method)]
        if own:
            found.setdefault(dataset, {})[method] = sorted(own, reverse=True)
    return found


def measured(record):
    """α_all, mean over the increments and after the last, means over orders; bytes at the peak; class orders."""
    name, peak = record.get("name", ""), peak_bytes(record)
    if name and peak > budget_of(name) * 1e6:
        raise ValueError(f"{record['dataset']}: {name} kept {peak:,} bytes")
    courses = [[task["alpha_all"] for task in order["tasks"] if task["task"] > 0] for order in record["orders"]]
    mean, final = fmean(map(fmean, courses)), fmean(course[-1] for course in courses)
    return mean, final, peak, len({order["seed"] for order in record["orders"]})


def best(found, budget):
    """Of what a method can be within a budget the best on the way; None where nothing fits."""
    return next((one for one in found if one[2] <= budget * 1e6), None)


def amount(size):
    """Three digits, so that 5.02 MB are seen not to fit in 5."""
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"


def table(results):
    """A table for every data set: α_all, mean over the increments and final, at each budget; the best come first."""
    every = by_dataset(results)
    parts = []
    for dataset, methods in every.items():
        top = {method: at[0] for method, found in methods.items() if (at := best(found, BUDGETS[-1]))}
        lines = [
            cells(dataset, method, methods.get(method, [])) for method in sorted(SHOWN, key=lambda m: -top.get(m, 0))
        ]
        head = [f"{dataset_title(dataset)}, ResNet-50", *(f"{budget} MB" for budget in BUDGETS)]
        parts.append(markdown(head, lines))
    note = (
        "α_all, the mean over the increments / after the last. Of all settings that fit, the best on the way, for each "
        f"method alike: those chosen for this budget or a smaller one, on three class orders{fewer(every)}, and the "
        "method's row of the ledger, on five. Everything kept between two tasks counts, at its peak. HAT is told the "
        "task of every test sample. Joint training keeps as many samples of every class as there is room for, and "
        "trains anew on these. FearNet sleeps with every class at 1 and 5 MB. Nearest class mean, SLDA and FeCAM have "
        "random projections of the features where these do not fit."
    )
    return "\n\n".join([*parts, note])


def cells(dataset, method, found):
    """The line of a method."""
    line, first = [title_of(method)], {}
    least = LEAST[dataset].get(method, ((), 0))[1]
    for budget in BUDGETS:
        at = best(found, budget)
        if at is None:
            line.append(f"— (needs {amount(least)})" if least > budget * 1e6 else "not run")
        else:
            line.append("{:.3f} / {:.3f}".format(*at) if at not in first else f"as at {first[at]} MB")
            first.setdefault(at, budget)
    return line


def fewer(every):
    """Of which methods the table has one class order alone, if there are any."""
    told = ""
    for dataset, methods in every.items():
        shown = {method: {best(found, budget) for budget in BUDGETS} - {None} for method, found in methods.items()}
        one = [title_of(method) for method, found in shown.items() if any(orders == 1 for *_, orders in found)]
        told += f", on {dataset_title(dataset)} one of {join_words(one)}" if one else ""
    return told


def look(method):
    """Colour, marker, dashes and width of a method's line."""
    if method == "whitened":
        return COLOURS[1], "D", "-", 2.8
    if method in PAPER:
        return COLOURS[0], "o", ("-", "--", ":", "-.")[PAPER.index(method)], 2.4
    if method == "hat":
        return GREY, "x", ":", 1.2
    if method in STATISTICS:
        return COLOURS[3], "^", "-", 1.2
    keeps = load_preset(f"cub200-{method}").learner.about.keeps_samples
    return (COLOURS[2], "s", "-", 1.2) if keeps else (GREY, "o", "-", 1.2)


def picture(results, path):
    """Two panels for every data set, the mean over the increments and the end; a line per method over the budgets."""
    panels = []
    for dataset, methods in by_dataset(results).items():
        title, largest = dataset_title(dataset), BUDGETS[-1]
        for which, what in enumerate(("mean over the increments", "after the last")):
            words = [f"{title_of(m)} {at[which]:.3f}" for m, found in methods.items() if (at := best(found, largest))]
            alt = f"α_all, {what}, over the MB a method may keep; with {largest}: {'; '.join(words)}."
            panels.append(Panel(f"{title}: α_all, {what}", alt, _drawer(methods, which)))
    note = (
        "Orange: whitened prototypes. Blue: the paper's method. Green squares: keep old samples. Pink triangles: "
        "statistics alone. Grey: networks alone; HAT is told the task of every test sample, and so no rival. A line "
        "begins where a method fits, and goes on, without marks, where more room makes it no better."
    )
    figure = Figure("equal-memory", panels, (6.4, 5.4), columns=2, note=note)
    save_png(figure, Path(path), "With as much memory as the others")


def _drawer(methods, which):
    courses = {method: {budget: best(found, budget) for budget in BUDGETS} for method, found in methods.items()}

    def draw(axis):
        values = [at[which] for course in courses.values() for at in course.values() if at]
        axis.set_xscale("log")
        axis.set_xlim(BUDGETS[0] * 0.85, BUDGETS[-1] * 1.1)
        axis.set_ylim(max(0, min(values) - 0.03), min(1, max(values) + 0.03))
        ends = []
        for method in sorted(courses, key=lambda name: look(name)[3]):  # the thick ones on top
            colour, marker, dashes, width = look(method)
            course = {budget: at for budget, at in courses[method].items() if at}
            if not course:
                continue
            axis.plot(list(course), [at[which] for at in course.values()], dashes, color=colour, lw=width)
            marks = {at: budget for budget, at in reversed(course.items())}  # where it is first reached
            axis.plot(list(marks.values()), [at[which] for at in marks], marker, color=colour, ms=3 + width)
            ends.append((BUDGETS[-1], course[BUDGETS[-1]][which], title_of(method), colour))
        axis.set_xticks(BUDGETS, [f"{budget} MB" for budget in BUDGETS])
        axis.minorticks_off()
        axis.set(xlabel="kept in all, at most", ylabel="test accuracy")
        name_lines(axis, ends)

    return draw


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", type=Path)
    parser.add_argument("--check", action="store_true", help="count what every row keeps, with made-up features")
    parser.add_argument("--out", type=Path, default=Path("equal-memory.png"), metavar="PNG")
    options = parser.parse_args()
    if options.check and (wrong := check()):
        sys.exit(f"not as said: {', '.join(wrong)}")
    if options.results:
        results = {path.stem: load([path])[0].content for path in options.results if path.stem in (*ROWS, *ALSO)}
        picture(results, options.out)
        print(table(results))


if __name__ == "__main__":
    main()
