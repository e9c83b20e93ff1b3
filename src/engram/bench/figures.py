"""What was remembered: accuracy over the classes seen, Ψ beside the paper's, confusions."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.bench import published as paper
from engram.bench.drawing import FAINT, INK, Key, Panel, Picture, row_keys, short, style
from engram.bench.plots import COLOURS, GREY
from engram.bench.results import PSI, Group, Row

SYMBOLS = {"psi_base": "Ψ_base", "psi_new": "Ψ_new", "psi_all": "Ψ_all"}
_OFFLINE = Key("offline, all classes at once", GREY, ":")
_SHADED = Key("lowest to highest order", GREY, block=True)
# A mistake is drawn in full colour from this share of a class on: few are ever larger.
_FULL = 0.25


def accuracy(group: Group) -> Picture:
    """α_all, α_base and α_new over the classes seen: the mean of the orders, from the lowest to the highest shaded."""
    # One class in one order is a coin with few sides: neighbours are averaged where there are enough of them.
    window = 5 if min(len(row.classes_seen) for row in group.rows) > 20 else 1
    smoothed = f" (mean of {window} tasks)" if window > 1 else ""
    ideals = sorted({round(row.record["alpha_ideal"]["accuracy"], 4) for row in group.rows})
    both = [v for row in group.rows for f in ("alpha_all", "alpha_base") for c in row.courses(f) for v in c] + ideals
    limits = max(0.0, math.floor(min(both) * 10) / 10), min(1.02, math.ceil(max(both) * 10) / 10 + 0.02)

    def draw(axis: Any, field: str) -> None:
        for i, row in enumerate(group.rows):
            colour, dash = style(i)
            first, reach = (1, window) if field == "alpha_new" else (0, 1)  # the base task adds no single class
            seen = row.classes_seen[first:]
            courses = np.array([_smooth(course[first:], reach) for course in row.courses(field)])
            marker = "o" if len(seen) <= 15 else None
            axis.plot(seen, courses.mean(axis=0), dash, color=colour, lw=2, marker=marker, ms=4)
            if len(courses) > 1:
                axis.fill_between(seen, courses.min(axis=0), courses.max(axis=0), color=colour, alpha=0.14, lw=0)
        if field != "alpha_new":
            for ideal in ideals:
                axis.axhline(ideal, color=GREY, linestyle=":", lw=1.5)
            axis.set_ylim(*limits)
        else:
            axis.set_ylim(0, 1.02)
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_xlabel("classes seen")
        axis.set_ylabel("test accuracy")

    panels = []
    for field, title in (
        ("alpha_all", "All classes seen so far"),
        ("alpha_base", "The base classes"),
        ("alpha_new", f"The class just learned{smoothed}"),
    ):
        ends = ", ".join(f"{r.label} {np.mean([c[-1] for c in r.courses(field)]):.3f}" for r in group.rows)
        alt = f"Lines of test accuracy over classes seen. {title}; after the last task: {ends}."
        panels.append(Panel(title, alt, partial(draw, field=field)))
    shaded = [_SHADED] if any(len(row.record["orders"]) > 1 for row in group.rows) else []
    return Picture("accuracy", panels, keys=[*row_keys(group.rows), _OFFLINE, *shaded])


def psi(group: Group) -> Picture:
    """One bar per row, the paper's number below it, and the systems the paper compares with at the end."""
    ran = {row.record["method"] for row in group.rows}
    peers = {name: values for name, values in paper.PSI.get(group.dataset, {}).items() if name not in ran}
    published = any(row.published for row in group.rows)
    bars = sum(2 if row.published else 1 for row in group.rows) + len(peers)

    def draw(axis: Any, which: int) -> None:
        y, ticks, names = 0.0, [], []
        top = 1.0
        for i, row in enumerate(group.rows):
            spread = row.record[PSI[which]]
            error = spread.get("std") if len(spread["values"]) > 1 else None
            axis.barh(y, spread["mean"], 0.8, color=style(i)[0])
            if error:
                axis.errorbar(spread["mean"], y, xerr=error, color=INK, lw=1.2, capsize=2.5)
            _value(axis, spread["mean"] + (error or 0), y, spread["mean"])
            top = max(top, spread["mean"] + (error or 0))
            ticks.append(y + (0.4 if row.published else 0))
            names.append(short(row.label))
            if row.published:
                y += 0.8
                axis.barh(y, row.published[which], 0.7, color=GREY, alpha=FAINT)
                _value(axis, row.published[which], y, row.published[which])
            y += 1.25
        for name, values in peers.items():
            axis.barh(y, values[which], 0.7, color=GREY, alpha=FAINT)
            _value(axis, values[which], y, values[which])
            ticks.append(y)
            names.append(paper.NAMES[name])
            y += 1
        axis.set_yticks(ticks, names)
        axis.tick_params(axis="y", length=0)
        axis.set_ylim(y - 0.4, -0.6)
        axis.set_xlim(0, top * 1.15)
        axis.set_xticks([0, 0.25, 0.5, 0.75, 1.0])
        axis.grid(visible=False, axis="y")

    panels = []
    for which, (field, symbol) in enumerate(SYMBOLS.items()):
        ours = (_with_paper(row, field, which) for row in group.rows)
        panels.append(Panel(symbol, f"Bars of {symbol}: {'; '.join(ours)}.", partial(draw, which=which)))
    keys = row_keys(group.rows, block=True) + ([Key("published", GREY, block=True)] if published or peers else [])
    return Picture("psi", panels, size=(4.3, max(1.6, 0.26 * bars + 0.15 * len(group.rows) + 0.5)), keys=keys)


def confusion(group: Group) -> Picture:
    """The final model of the first order, classes in the order they were learned; base and new meet at the lines."""
    panels = []
    for row in group.rows:
        if row.record.get("confusion"):
            labels, rates = confusion_rates(row)
            base = row.record["protocol"]["base"]
            right = float(np.diag(rates).mean())
            words = (
                f"{right:.0%} right. Of the base classes {block_share(rates, base, 'new'):.0%} are taken for added "
                f"ones, of the added {block_share(rates, base, 'base'):.0%} for base classes."
            )
            alt = f"Confusion matrix of {row.label}, classes in order of learning: {words}"
            draw = partial(_draw_confusion, labels=labels, rates=rates, base=base)
            panels.append(Panel(row.label, alt, draw, below=words))
    note = (
        "The fuller the colour, the larger the share of a class's test data: blue for right, full at 100%; orange for "
        f"taken for another class, full at {_FULL:.0%}."
    )
    return Picture("confusion", panels, size=(4.1, 4.1), columns=4 if len(panels) == 4 else 3, note=note)


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
    n = len(labels)
    image = np.empty((n, n, 4))
    image[..., :3] = _rgb(COLOURS[1])
    image[np.arange(n), np.arange(n), :3] = _rgb(COLOURS[0])
    image[..., 3] = np.sqrt(np.minimum(rates / _FULL, 1))
    image[np.arange(n), np.arange(n), 3] = np.sqrt(np.diag(rates))
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
    axis.set_xlabel("answer")
    axis.set_ylabel("truth")


def _smooth(course: Sequence[float], window: int) -> list[float]:
    reach = window // 2
    return [float(np.mean(course[max(0, i - reach) : i + reach + 1])) for i in range(len(course))]


def _value(axis: Any, x: float, y: float, value: float) -> None:
    axis.text(x + 0.015, y, f"{value:.3f}", va="center", fontsize=9)


def _with_paper(row: Row, field: str, which: int) -> str:
    ours = f"{row.label} {row.record[field]['mean']:.3f}"
    return ours + (f", published {row.published[which]:.3f}" if row.published else "")


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
