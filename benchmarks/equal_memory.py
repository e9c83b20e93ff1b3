"""How good every method is with 1, 5, 20 and 100 MB in all: network, samples, statistics, everything that is kept.

    python benchmarks/equal_memory.py --check
    python benchmarks/equal_memory.py results/*-memory.json --out equal-memory.png

A MB is 10^6 bytes; what counts is the most that a method keeps between any two tasks, so FearNet just before a sleep.
What lies in memory only while a task is learned does not count. Widths, bits, code sizes and numbers of samples are
chosen to fit, all else is the preset's. `benchmarks/reproduce.py` runs ROWS. A method that has nothing to choose has
one row, at the first budget it fits, which stands for the larger ones too.
"""

import argparse
import re
import sys
from pathlib import Path
from statistics import fmean

from kept import count_bytes
from rows import RETUNED, Row

from engram.bench.drawing import COLOURS, GREY, Figure, Panel, name_lines, save_png
from engram.bench.presets import load_preset
from engram.bench.results import dataset_title, load, method_title
from engram.bench.tables import markdown
from engram.bench.units import join_words

BUDGETS = (1, 5, 20, 100)
PAPER = ("mas", "mas-lof", "si")
STATISTICS = ("ncm", "slda", "fecam", "ranpac", "deepncm")


def settings(text, *budgets):
    """By budget, a text whose gaps are filled with its numbers; None where the method does not fit."""
    filled = {budget: text.format(*numbers) for budget, numbers in zip(BUDGETS, budgets, strict=True) if numbers}
    return {budget: tuple(changes.split("; ")) for budget, changes in filled.items()}


def from_budget(budget):
    """Nothing to set: the same at every budget from this one on."""
    return {budget: ()}


AUTOENCODER = "layers=[{}, {}]; kept_bits={}"
FEARNET = "sleep_trains=head; layers=[{}, {}]; bla_width={}; sleep_every={}"
OFTEN = "; dreams=1; sleep_epochs=20"  # a sleep with every class: much cheaper ones, or it would take hours
CHOSEN = {
    "cifar100": {
        **dict.fromkeys(PAPER, settings(AUTOENCODER, (72, 128, 4), (352, 256, 4), (1024, 1024, 4), (2048, 2048, 8))),
        # So few numbers of 50,000 samples come to need 32 bits on the way, whatever is asked for.
        "whitened": {1: ("width=612", "kept_bits=32"), 5: ()},
        "1nn": settings("samples={}", (121,), (609,), (2439,), (12195,)),
        "geppnet": settings("side={}; samples={}", (4, 100), (16, 330), (23, 1880), (23, 11600)),
        "icarl": settings("width={}; exemplars={}", (18, 100), (256, 330), (1024, 1360), (2048, 10000)),
        "fearnet": settings(FEARNET + OFTEN, (32, 30, 64, 1), (140, 64, 256, 1), None, None)
        | settings(FEARNET, None, None, (140, 132, 256, 3), (140, 132, 256, 10)),
        "ncm": from_budget(1),
        "slda": from_budget(20),
        "ranpac": settings("width={}", (105,), (460,), (1378,), (3999,)),
        "deepncm": settings("width={}", (114,), (578,), (2320,), (8192,)),
        "ewc": settings("width={}", (57,), (288,), (1160,), (4096,)),
        "lwf": settings("width={}", (114,), (578,), (2320,), (8192,)),
        "gem": settings("width={}; memories={}", (18, 100), (256, 330), (1024, 1360), (4096, 5000)),
        **dict.fromkeys(
            ("gan-replay", "icwgan"),
            settings("width={}; gan_width={}", (56, 28), (280, 144), None, None) | {20: ()},
        ),
        "hat": settings("width={}", (109,), (553,), (2218,), (8192,)),
        "finetune": settings("width={}", (114,), (578,), (2320,), (8192,)),
        "joint": settings("width={}; samples={}", (18, 100), (256, 330), (1024, 1360), (2048, 10000)),
    },
    "cub200": {
        **dict.fromkeys(PAPER, settings(AUTOENCODER, (68, 128, 4), (344, 256, 4), (1024, 1024, 4), (1024, 1024, 32))),
        "whitened": {1: ("width=815",), 5: ("width=2040",), 20: ()},
        "1nn": settings("samples={}", None, (609,), (2439,), (6000,)),
        "geppnet": settings("side={}; samples={}", None, (16, 320), (23, 1850), (23, 6000)),
        "icarl": settings("width={}; exemplars={}", None, (256, 320), (1024, 1310), (4096, 6000)),
        "fearnet": settings(FEARNET + OFTEN, (32, 22, 64, 1), (140, 54, 256, 1), None, None)
        | settings(FEARNET, None, None, (200, 120, 256, 10), (350, 300, 256, 10)),
        "ncm": from_budget(5),
        "slda": from_budget(100),
        "ranpac": settings("width={}", (97,), (433,), (1325,), (3920,)),
        "deepncm": settings("width={}", (109,), (553,), (2218,), (8192,)),
        "ewc": settings("width={}", (54,), (275,), (1105,), (4096,)),
        "lwf": settings("width={}", (109,), (553,), (2218,), (8192,)),
        "gem": settings("width={}; memories={}", None, (256, 320), (1024, 1310), (4096, 5000)),
        **dict.fromkeys(
            ("gan-replay", "icwgan"),
            settings("width={}; gan_width={}", (52, 26), (264, 136), None, None) | {20: ()},
        ),
        "hat": settings("width={}", (100,), (506,), (2030,), (8192,)),
        "finetune": settings("width={}", (109,), (553,), (2218,), (8192,)),
        "joint": settings("width={}; samples={}", None, (256, 320), (1024, 1310), (4096, 6000)),
    },
}
SLOW = ("gem", "joint", "fearnet", "gan-replay", "icwgan")  # minutes a run with CIFAR-100's 500 samples a class


def orders_of(dataset, method):
    """Three class orders; one of what is slow."""
    return 1 if dataset == "cifar100" and method in SLOW else 3


def file_of(dataset, method):
    """Where the rows of a method are; some have files of their own, as in rows.py."""
    return f"{dataset}-{method}-memory" if method in ("whitened", *RETUNED[dataset]) else f"{dataset}-memory"


def rows_of(dataset, method):
    """One for each budget that CHOSEN has settings for."""
    preset, features, orders = f"{dataset}-{method}", f"{dataset}-resnet50", orders_of(dataset, method)
    chosen = CHOSEN[dataset][method]
    return [Row(preset, features, changes, f"{method}, {budget} MB", orders, 1) for budget, changes in chosen.items()]


ORDER = [(dataset, method) for dataset, methods in CHOSEN.items() for method in methods]
ROWS = {file_of(*one): [] for one in ORDER}
for one in ORDER:
    ROWS[file_of(*one)] += rows_of(*one)

# Where a method does not fit: the settings with which it keeps least, and how many bytes these are.
LEAST = {
    "cifar100": {"slda": ((), 18_416_816), "fecam": ((), 1_679_360_800)},
    "cub200": {
        "1nn": (("samples=1",), 1_640_000),
        "geppnet": (("side=1", "samples=1"), 1_649_796),
        "icarl": (("width=1", "exemplars=1"), 1_666_180),
        "ncm": ((), 1_640_000),
        "slda": ((), 20_056_416),
        "gem": (("width=1", "memories=1"), 1_667_780),
        "joint": (("width=1", "samples=1"), 1_666_180),
        "fecam": ((), 3_358_721_600),
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
        found, budget = count_bytes(row.preset, row.settings, 2048, *sizes[dataset]), budget_of(row.name)
        print(f"{dataset}  {row.name:22} {found / 1e6:8.3f} MB  {' '.join(row.settings)}", flush=True)
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
    return {"fearnet": "FearNet (our sleeps)", "hat": "HAT (told the task)"}.get(method) or method_title(method)


def by_dataset(results):
    """The records of all files by data set, in the order of CHOSEN, whatever that of the files."""
    records = [record for content in results.values() for record in content["records"]]
    found = {}
    for record in sorted(records, key=lambda record: ORDER.index((record["dataset"], record["method"]))):
        found.setdefault(record["dataset"], []).append(record)
    return found


def measured(records):
    """By method and budget: α_all, mean over the increments and after the last, means over orders; bytes at the peak.

    ValueError if a row kept more than it was to be given.
    """
    found = {}
    for record in records:
        budget, peak = budget_of(record["name"]), peak_bytes(record)
        if peak > budget * 1e6:
            raise ValueError(f"{record['dataset']}: {record['name']} kept {peak:,} bytes")
        courses = [[task["alpha_all"] for task in order["tasks"] if task["task"] > 0] for order in record["orders"]]
        mean, final = fmean(map(fmean, courses)), fmean(course[-1] for course in courses)
        found.setdefault(record["method"], {})[budget] = mean, final, peak
    return found


def amount(size):
    """Three digits, so that 5.02 MB are seen not to fit in 5."""
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"


def given(found, budget):
    """The largest budget, up to this one, that a method has a row at; None where there is none."""
    return max((other for other in found if other <= budget), default=None)


def table(results):
    """A table for every data set: α_all, mean over the increments and final, at each budget; the best come first."""
    parts = []
    for dataset, records in by_dataset(results).items():
        methods, least = measured(records), LEAST[dataset]
        lines = []
        best = {name: max(value[0] for value in found.values()) for name, found in methods.items()}
        for method in sorted(dict.fromkeys([*best, *least]), key=lambda name: -best.get(name, 0)):
            found, line = methods.get(method, {}), [title_of(method)]
            for budget in BUDGETS:
                at = given(found, budget)
                if at is None:
                    line.append(f"— (needs {amount(least[method][1])})" if method in least else "not run")
                else:
                    line.append("{:.3f} / {:.3f}".format(*found[at]) if at == budget else f"as at {at} MB")
            lines.append(line)
        head = [f"{dataset_title(dataset)}, ResNet-50", *(f"{budget} MB" for budget in BUDGETS)]
        parts.append(markdown(head, lines))
    note = (
        f"α_all, the mean over the increments / after the last; means over three class orders{fewer(results)}. "
        "Everything kept between two tasks counts, at its peak. HAT is told the task of every test sample. Joint "
        "training keeps as many samples of every class as there is room for, and trains anew on these. FearNet sleeps "
        "with every class at 1 and 5 MB."
    )
    return "\n\n".join([*parts, note])


def fewer(results):
    """Of which methods there is one class order alone, if there are any."""
    found = {}
    for dataset, records in by_dataset(results).items():
        for record in records:
            if len(record["orders"]) == 1:
                found.setdefault(dataset_title(dataset), {})[title_of(record["method"])] = None
    return "".join(f", on {title} one of {join_words(list(methods))}" for title, methods in found.items())


def look(method):
    """Colour, marker, dashes and width of a method's line."""
    if method == "whitened":
        return COLOURS[1], "D", "-", 2.8
    if method in PAPER:
        return COLOURS[0], "o", ("-", "--", ":")[PAPER.index(method)], 2.4
    if method == "hat":
        return GREY, "x", ":", 1.2
    if method in STATISTICS:
        return COLOURS[3], "^", "-", 1.2
    keeps = load_preset(f"cub200-{method}").learner.about.keeps_samples
    return (COLOURS[2], "s", "-", 1.2) if keeps else (GREY, "o", "-", 1.2)


def picture(results, path):
    """Two panels for every data set, the mean over the increments and the end; a line per method over the budgets."""
    panels = []
    for dataset, records in by_dataset(results).items():
        title, methods = dataset_title(dataset), measured(records)
        for which, what in enumerate(("mean over the increments", "after the last")):
            words = (f"{title_of(m)} {max(v[which] for v in found.values()):.3f}" for m, found in methods.items())
            alt = f"α_all, {what}, over the MB a method may keep; the best of each: {'; '.join(words)}."
            panels.append(Panel(f"{title}: α_all, {what}", alt, _drawer(methods, which)))
    note = (
        "Orange: whitened prototypes. Blue: the paper's method. Green squares: keep old samples. Pink triangles: "
        "statistics alone. Grey: networks alone; HAT is told the task of every test sample, and so no rival. A line "
        "begins where a method fits, and goes on, without marks, where it has no use for more."
    )
    figure = Figure("equal-memory", panels, (6.4, 5.4), columns=2, note=note)
    save_png(figure, Path(path), "With as much memory as the others")


def _drawer(methods, which):
    def draw(axis):
        values = [found[which] for by in methods.values() for found in by.values()]
        axis.set_xscale("log")
        axis.set_xlim(BUDGETS[0] * 0.85, BUDGETS[-1] * 1.1)
        axis.set_ylim(max(0, min(values) - 0.03), min(1, max(values) + 0.03))
        ends = []
        for method in sorted(methods, key=lambda name: look(name)[3]):  # the thick ones on top
            colour, marker, dashes, width = look(method)
            by = methods[method]
            shown = [budget for budget in BUDGETS if given(by, budget)]
            course = [by[given(by, budget)][which] for budget in shown]
            axis.plot(shown, course, dashes, color=colour, lw=width)
            axis.plot(list(by), [found[which] for found in by.values()], marker, color=colour, ms=3 + width)
            ends.append((shown[-1], course[-1], title_of(method), colour))
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
        results = {path.stem: load([path])[0].content for path in options.results}
        picture(results, options.out)
        print(table(results))


if __name__ == "__main__":
    main()
