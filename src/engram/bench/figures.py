"""What is drawn of results: Ψ beside the paper's, accuracy over the classes seen, confusions, memory, costs."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.bench import published
from engram.bench.drawing import COLOURS, GREY, INK, Figure, Panel, name_lines, short, style
from engram.bench.results import Row, published_only
from engram.bench.schema import PSI
from engram.bench.units import seconds, size

FLAVOURS = {
    "as_the_paper_counts": "As the paper counts",
    "all_the_next_increment_needs": "All the next increment needs",
}
COSTS: dict[str, tuple[str, Callable[[float], str]]] = {
    "kept_bytes": ("Kept, all in all", size),
    "seconds": ("Seconds per increment", seconds),
    "peak_memory_bytes": ("Peak memory while learning", size),
}
# A mistake is drawn in full colour from this share of a class on: few are ever larger.
_FULL = 0.25


def psi(rows: Sequence[Row]) -> Figure:
    """One line per method: a dot for what was measured, a ring for what was published."""
    others = published_only(rows)
    rings = [row.published for row in rows] + list(others.values())
    names = [row.label for row in rows] + [published.NAMES[method] for method in others]
    largest = max(row.record[field]["mean"] + (row.record[field].get("std") or 0) for row in rows for field in PSI)

    def draw(axis: Any, which: int, field: str) -> None:
        for y, ring in enumerate(rings):
            if ring:
                axis.plot(ring[which], y, "o", color=GREY, mfc="none", ms=8, mew=1.5)
        for y, row in enumerate(rows):
            measured = row.record[field]
            look = {"fmt": "s" if row.about.keeps_samples else "o", "color": _colour(row), "ms": 5.5}
            axis.errorbar(measured["mean"], y, xerr=measured.get("std") or 0, lw=1.2, capsize=2, **look)
        _name_rows(axis, names)
        axis.set_xlim(0, max(1.15, largest + 0.05))

    panels = []
    for which, (field, symbol) in enumerate(PSI.items()):
        words = (
            f"{row.label} {row.record[field]['mean']:.3f}"
            + (f", published {row.published[which]:.3f}" if row.published else "")
            for row in rows
        )
        panels.append(Panel(symbol, f"{symbol}: {'; '.join(words)}.", partial(draw, which=which, field=field)))
    note = "Blue: the paper's method, orange: others; squares keep old samples. Bars: standard deviation over orders."
    note += " Grey rings: published." if any(rings) else ""
    return Figure("psi", panels, size=(4.6, _height(names)), note=note)


def memory(rows: Sequence[Row]) -> Figure:
    """One line per method, from the bytes at the fewest classes to those at the most, in the two ways of counting."""
    rows = [row for row in rows if all(row.memory(flavour) for flavour in FLAVOURS)]
    if not rows:
        return Figure("memory", [])
    others = list(published_only(rows))
    methods = [row.method for row in rows] + others
    names = [row.label for row in rows] + [published.NAMES[method] for method in others]
    compared = rows[0].record["dataset"] in published.PSI

    def draw(axis: Any, flavour: str) -> None:
        for y, method in enumerate(methods if compared else ()):
            # Of its own method the paper counts the means alone: there is nothing to compare all else with.
            if flavour == "as_the_paper_counts" or method not in published.OWN:
                theirs = list(published.MEMORY.get(method, {}).values())
                axis.plot(theirs, [y] * len(theirs), "o-", color=GREY, mfc="none", ms=8, mew=1.5, lw=1)
        for y, row in enumerate(rows):
            kept = [amount for amount in row.memory(flavour).values() if amount]
            look = {"marker": "s" if row.about.keeps_samples else "o", "color": _colour(row), "ms": 5.5}
            axis.plot(kept, [y] * len(kept), lw=2, **look)
            if not kept:
                axis.annotate("nothing", (0.01, y), xycoords=("axes fraction", "data"), va="center", fontsize=8)
        axis.set_xscale("log")
        axis.minorticks_off()
        axis.xaxis.get_major_locator().set_params(numticks=6)
        axis.xaxis.set_major_formatter(lambda amount, _: size(amount))
        _name_rows(axis, names)

    panels = []
    for flavour, title in FLAVOURS.items():
        found = ((row.label, row.memory(flavour).items()) for row in rows)
        words = (f"{label} {', '.join(f'{size(b)} at {n:,} classes' for n, b in kept)}" for label, kept in found)
        alt = f"Bytes kept, logarithmic scale. {title}: {'; '.join(words)}."
        panels.append(Panel(title, alt, partial(draw, flavour=flavour)))
    counts = " to ".join(f"{n:,}" for n in rows[0].memory("as_the_paper_counts"))
    note = f"Lines from {counts} classes; squares keep old samples." + (" Grey rings: published." if compared else "")
    return Figure("memory", panels, size=(5.0, _height(names)), columns=2, note=note)


def accuracy(rows: Sequence[Row]) -> Figure:
    """α_all, α_base and α_new over the classes seen: the mean of the orders, from the lowest to the highest shaded."""
    # One class in one order is a coin with few sides: neighbours are averaged where there are enough of them.
    window = 5 if min(len(row.classes_seen) for row in rows) > 20 else 1
    ideals = sorted({round(row.record["alpha_ideal"]["accuracy"], 4) for row in rows})
    both = [v for row in rows for f in ("alpha_all", "alpha_base") for c in row.courses(f) for v in c] + ideals
    limits = max(0.0, math.floor(min(both) * 10) / 10), min(1.02, math.ceil(max(both) * 10) / 10 + 0.02)

    def draw(axis: Any, field: str) -> None:
        new = field == "alpha_new"
        axis.set_ylim(*((0, 1.02) if new else limits))
        ends = []
        for i, row in enumerate(rows):
            colour, dash = style(i)
            first, reach = (1, window) if new else (0, 1)  # the base task adds no single class
            seen = row.classes_seen[first:]
            courses = np.array([_smooth(course[first:], reach) for course in row.courses(field)])
            mean = courses.mean(axis=0)
            axis.plot(seen, mean, dash, color=colour, lw=2, marker="o" if len(seen) <= 15 else None, ms=4)
            if len(courses) > 1:
                axis.fill_between(seen, courses.min(axis=0), courses.max(axis=0), color=colour, alpha=0.14, lw=0)
            ends.append((seen[-1], mean[-1], row.label, colour))
        for ideal in () if new else ideals:
            axis.axhline(ideal, color=GREY, linestyle=":", lw=1.5)
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set(xlabel="classes seen", ylabel="test accuracy")
        name_lines(axis, ends)

    panels = []
    for field, title in (
        ("alpha_all", "All classes seen so far"),
        ("alpha_base", "The base classes"),
        ("alpha_new", "The class just learned" + (f" (mean of {window} tasks)" if window > 1 else "")),
    ):
        words = ", ".join(f"{r.label} {np.mean([c[-1] for c in r.courses(field)]):.3f}" for r in rows)
        alt = f"Lines of test accuracy over classes seen. {title}; after the last task: {words}."
        panels.append(Panel(title, alt, partial(draw, field=field)))
    note = "Dotted: an offline network, all classes at once."
    if any(len(row.record["orders"]) > 1 for row in rows):
        note += " Shaded: from the lowest class order to the highest."
    return Figure("accuracy", panels, size=(4.8, max(3.3, 0.21 * len(rows) + 0.6)), note=note)


def curves(rows: Sequence[Row]) -> Figure:
    """α_all over the classes seen, one method to a panel, the best at the end first, all of them in grey behind it."""
    means = {id(row): np.mean(row.courses("alpha_all"), axis=0) for row in rows}
    usual = Counter(row.features for row in rows).most_common(1)[0][0]

    def draw(axis: Any, row: Row, words: str) -> None:
        for other in rows:
            axis.plot(other.classes_seen, means[id(other)], color=GREY, lw=0.7, alpha=0.35)
        courses, colour = np.array(row.courses("alpha_all")), _colour(row)
        axis.fill_between(row.classes_seen, courses.min(axis=0), courses.max(axis=0), color=colour, alpha=0.2, lw=0)
        axis.plot(row.classes_seen, means[id(row)], color=colour, lw=2.2)
        axis.axhline(row.record["alpha_ideal"]["accuracy"], color=INK, linestyle=":", lw=1)
        low = means[id(row)][-1] < 0.2  # then the line comes through the lower corner
        place = {"x": 0.97, "y": 0.42, "ha": "right"} if low else {"x": 0.03, "y": 0.05, "ha": "left"}
        ground = {"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1}
        axis.text(s=words, transform=axis.transAxes, color=colour, fontweight="bold", bbox=ground, **place)
        axis.set_ylim(0, 1)
        axis.xaxis.get_major_locator().set_params(integer=True, nbins=4)
        axis.set_xlabel("classes seen", fontsize=9)

    panels = []
    for row in sorted(rows, key=lambda row: -means[id(row)][-1]):
        words = f"{means[id(row)][-1]:.3f}" + (f" on {row.features}" if row.features != usual else "")
        alt = f"Test accuracy of {row.label} over classes seen; at the end {words}."
        panels.append(Panel(short(row.label, 34), alt, partial(draw, row=row, words=words)))
    note = (
        "The number is the accuracy after the last class. Blue: the paper's method, orange: others, grey: all of them; "
        "shaded: from the lowest run to the highest; dotted: an offline network, all classes at once (α_ideal)."
    )
    return Figure("curves", panels, size=(3.3, 2.1), columns=4, note=note)


def costs(rows: Sequence[Row], fields: Sequence[str]) -> Figure:
    """Bytes or seconds of every increment, every line named at its end: the median of the orders, without hiccups."""

    def draw(axis: Any, field: str) -> None:
        ends = []
        for i, row in enumerate(rows):
            seen, values = row.classes_seen[1:], np.median(row.courses(field), axis=0)[1:]
            if len(values) and values.all():
                colour, dash = style(i)
                axis.plot(seen, values, dash, color=colour, lw=1.6)
                ends.append((seen[-1], values[-1], row.label, colour))
        axis.set_yscale("log")
        low, high = axis.get_ylim()
        if high < 30 * low:
            axis.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
        axis.minorticks_off()
        axis.yaxis.set_major_formatter(lambda value, _: COSTS[field][1](value))
        axis.set_xlabel("classes seen")
        axis.xaxis.get_major_locator().set_params(integer=True)
        name_lines(axis, ends)

    panels = []
    for field in fields:
        title, show = COSTS[field]
        last = {row.label: float(np.median([course[-1] for course in row.courses(field)])) for row in rows}
        if any(last.values()):
            words = "; ".join(f"{label} {show(value)}" for label, value in last.items() if value)
            panels.append(Panel(title, f"{title}, of the last task: {words}.", partial(draw, field=field)))
    return Figure("costs", panels, size=(6.0, max(3.2, 0.25 * len(rows) + 0.8)), columns=2)


def confusion(rows: Sequence[Row]) -> Figure:
    """The final model of the first order, classes in the order they were learned; base and new meet at the lines."""
    panels = []
    for row in rows:
        if row.record.get("confusion"):
            labels, rates = confusion_rates(row)
            base = row.record["protocol"]["base"]
            new, old = block_share(rates, base, "new"), block_share(rates, base, "base")
            words = (
                f"{np.diag(rates).mean():.0%} right. Of the base classes {new:.0%} are taken for added ones, of the "
                f"added {old:.0%} for base classes."
            )
            alt = f"Confusion matrix of {row.label}, classes in order of learning: {words}"
            draw = partial(_draw_confusion, labels=labels, rates=rates, base=base)
            panels.append(Panel(row.label, alt, draw, below=words))
    note = (
        "The fuller the colour, the larger the share of a class's test data: blue for right, full at 100%; orange for "
        f"taken for another class, full at {_FULL:.0%}."
    )
    return Figure("confusion", panels, size=(4.1, 4.1), columns=4 if len(panels) == 4 else 3, note=note)


def confusion_rates(row: Row) -> tuple[list[str], NDArray[np.float64]]:
    """Labels in the order of learning, and per true class the share of its test data given to every class."""
    labels = [str(label) for label in row.record["confusion"]["labels"]]
    learned = {str(label): i for i, label in enumerate(row.record["orders"][0]["classes"])}
    order = sorted(range(len(labels)), key=lambda i: learned.get(labels[i], len(learned)))
    counts = np.asarray(row.record["confusion"]["counts"], dtype=np.float64)[np.ix_(order, order)]
    return [labels[i] for i in order], counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def block_share(rates: NDArray[np.float64], base: int, taken_for: str) -> float:
    """How much of the other block is taken for a class of the base, or the new, block."""
    block = rates[:base, base:] if taken_for == "new" else rates[base:, :base]
    return float(block.sum(axis=1).mean()) if block.size else 0.0


def _draw_confusion(axis: Any, labels: Sequence[str], rates: NDArray[np.float64], base: int) -> None:
    from matplotlib.colors import to_rgb

    n = len(labels)
    right = np.eye(n, dtype=bool)
    image = np.empty((n, n, 4))
    image[..., :3] = np.where(right[..., None], to_rgb(COLOURS[0]), to_rgb(COLOURS[1]))
    image[..., 3] = np.sqrt(np.where(right, rates, np.minimum(rates / _FULL, 1)))
    axis.imshow(image, interpolation="none")
    axis.grid(visible=False)
    axis.spines[["top", "right"]].set_visible(True)
    if 0 < base < n:
        axis.axhline(base - 0.5, color=INK, lw=0.8)
        axis.axvline(base - 0.5, color=INK, lw=0.8)
    if n <= 20:
        names = [short(label, 14) for label in labels]
        axis.set_xticks(range(n), names, rotation=90, fontsize=8)
        axis.set_yticks(range(n), names, fontsize=8)
    else:
        middles, blocks = [(base - 1) / 2, (base + n - 1) / 2], [f"{base} learned first", f"{n - base} added"]
        axis.set_xticks(middles, blocks)
        axis.set_yticks(middles, blocks, rotation=90, va="center")
        axis.tick_params(length=0)
    axis.set(xlabel="answer", ylabel="truth")


def _colour(row: Row) -> str:
    return COLOURS[0 if row.method in published.OWN else 1]


def _height(names: Sequence[str]) -> float:
    return max(2.0, 0.28 * len(names) + 0.4)


def _name_rows(axis: Any, names: Sequence[str]) -> None:
    axis.set_yticks(range(len(names)), [short(name, 34) for name in names])
    axis.tick_params(axis="y", length=0)
    axis.set_ylim(len(names) - 0.4, -0.6)


def _smooth(course: Sequence[float], window: int) -> list[float]:
    reach = window // 2
    return [float(np.mean(course[max(0, i - reach) : i + reach + 1])) for i in range(len(course))]
