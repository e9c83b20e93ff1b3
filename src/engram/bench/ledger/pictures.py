"""The pictures beside the tables: Ψ of every method, and what a further class costs it."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from engram.bench import published as paper
from engram.bench.costs import apart, size
from engram.bench.drawing import Panel, Picture, short, style
from engram.bench.figures import SYMBOLS
from engram.bench.ledger.entries import Entry, kept_bytes, seconds_per_task
from engram.bench.plots import COLOURS, GREY
from engram.bench.results import PSI, Row


def psi(dataset: str, entries: Sequence[Entry]) -> Picture:
    """One line per method: a dot for what was measured, a ring for what was published."""
    largest = max((e.row.record[f]["mean"] + e.row.record[f]["std"] for e in entries if e.row for f in PSI), default=1)

    def draw(axis: Any, which: int) -> None:
        for y, entry in enumerate(entries):
            published = paper.PSI.get(dataset, {}).get(entry.method)
            if published:
                axis.plot(published[which], y, "o", color=GREY, mfc="none", ms=8, mew=1.5)
            if entry.row:
                spread = entry.row.record[PSI[which]]
                colour = COLOURS[0 if entry.method in paper.OWN else 1]
                marker = "s" if entry.about.keeps_samples else "o"
                axis.errorbar(spread["mean"], y, xerr=spread["std"], color=colour, lw=1.2, capsize=2)
                axis.plot(spread["mean"], y, marker, color=colour, ms=5.5)
        axis.set_yticks(range(len(entries)), [short(entry.title, 28) for entry in entries])
        axis.tick_params(axis="y", length=0)
        axis.set_ylim(len(entries) - 0.4, -0.6)
        axis.set_xlim(0, max(1.15, largest + 0.05))

    panels = []
    for which, (field, symbol) in enumerate(SYMBOLS.items()):
        words = "; ".join(f"{e.title} {e.row.record[field]['mean']:.3f}" for e in entries if e.row)
        panels.append(Panel(symbol, f"{symbol}: {words}.", partial(draw, which=which)))
    note = (
        "Blue: the paper's method, orange: others; squares keep old samples. Bars: standard deviation over class "
        "orders. Grey rings: published."
    )
    return Picture("psi", panels, size=(4.6, max(2.0, 0.28 * len(entries) + 0.4)), note=note)


def costs(entries: Sequence[Entry]) -> Picture:
    """Bytes kept and seconds per increment against the number of classes, every line named at its end.

    Of a method that ran on several features, those that most methods ran on: only these compare.
    """
    ran = [entry for entry in entries if entry.row]
    common = Counter(entry.features for entry in ran).most_common(1)[0][0]
    there = {entry.method for entry in ran if entry.features == common}
    left_out = [entry for entry in ran if entry.features != common and entry.method in there]
    note = f"Methods that ran on several features are shown on {common}." if left_out else ""
    ran = [entry for entry in ran if entry not in left_out]

    def draw(axis: Any, values_of: Callable[[Any], list[float]], show: Callable[[float], str]) -> None:
        ends, lowest, highest, last = [], math.inf, 0.0, 1
        for i, entry in enumerate(ran):
            assert entry.row is not None
            colour, dash = style(i)
            seen, values = entry.row.classes_seen[1:], values_of(entry.row)[1:]
            axis.plot(seen, values, dash, color=colour, lw=1.6)
            ends.append((values[-1], short(entry.title, 24), colour))
            lowest, highest, last = min(lowest, *values), max(highest, *values), max(last, seen[-1])
        limits = lowest / 1.5, highest * 1.5
        axis.set_yscale("log")
        axis.set_ylim(*limits)
        if highest < 30 * lowest:
            axis.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
        axis.minorticks_off()
        axis.yaxis.set_major_formatter(lambda value, _: show(value))
        axis.set_xlabel("classes seen")
        ends.sort()
        first = min(entry.row.classes_seen[1] for entry in ran if entry.row)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.set_xticks([tick for tick in axis.get_xticks() if first <= tick <= last])
        axis.set_xlim(first, last + 0.6 * (last - first))  # room for the names
        near, far = last + 0.01 * (last - first), last + 0.06 * (last - first)
        for place, (value, text, colour) in zip(apart(ends, limits, min(0.042, 0.95 / len(ends))), ends, strict=True):
            axis.plot([near, far], [value, place], color=colour, lw=0.6)  # from the line's end to its name
            axis.text(far + 0.01 * (last - first), place, text, color=colour, va="center", fontsize=8)

    panels = [
        Panel("Kept, all in all", _words(ran, kept_bytes, size), partial(draw, values_of=kept_bytes, show=size)),
        Panel(
            "Seconds per increment",
            _words(ran, seconds_per_task, _seconds),
            partial(draw, values_of=_smooth_seconds, show=_seconds),
        ),
    ]
    return Picture("costs", panels, size=(6.0, max(3.2, 0.25 * len(ran) + 0.8)), columns=2, note=note)


def _smooth_seconds(row: Row) -> list[float]:
    base, *increments = seconds_per_task(row)
    return [base, *_smooth(increments)]


def _smooth(values: Sequence[float], window: int = 5) -> list[float]:
    """The median of neighbours: one slow moment is not a cost."""
    reach = window // 2
    parts = (sorted(values[max(0, i - reach) : i + reach + 1]) for i in range(len(values)))
    return [max(part[len(part) // 2], 1e-9) for part in parts]


def _words(entries: Sequence[Entry], values_of: Callable[[Any], list[float]], show: Callable[[float], str]) -> str:
    return "After the last task: " + "; ".join(f"{e.title} {show(values_of(e.row)[-1])}" for e in entries) + "."


def _seconds(value: float) -> str:
    return f"{value:g} s" if value < 0.01 else f"{value:.3g} s"
