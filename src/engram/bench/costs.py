"""What it costs: the memory kept, in two ways of counting, and the time and memory a task takes."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from engram.bench import published as paper
from engram.bench.drawing import INK, Panel, Picture, row_keys, short, style
from engram.bench.plots import COLOURS, GREY
from engram.bench.results import Group, Row

FLAVOURS = {
    "as_the_paper_counts": "As the paper counts",
    "all_the_next_increment_needs": "All the next increment needs",
}


def size(amount: float) -> str:
    """Bytes as people say them, in powers of ten as the paper does."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if amount >= factor:
            return f"{amount / factor:,.3g} {unit}" if amount < 1000 * factor else f"{amount / factor:,.0f} {unit}"
    return f"{amount:,.0f} B"


def memory(group: Group) -> Picture:
    """Bytes against the number of classes, both scales logarithmic, in the two ways of counting."""
    rows = [row for row in group.rows if all((row.record.get("memory") or {}).get(flavour) for flavour in FLAVOURS)]
    if not rows:
        return Picture("memory", [])
    published = {n: m for n, m in paper.MEMORY.items() if n not in paper.OWN} if group.dataset in paper.PSI else {}
    series = {f: [(r, {int(n): b for n, b in r.record["memory"][f].items()}) for r in rows] for f in FLAVOURS}
    amounts = [b for values in published.values() for b in values.values()]
    amounts += [b for ours in series.values() for _, values in ours for b in values.values() if b > 0]
    limits = 10 ** math.floor(math.log10(min(amounts))), 10 ** math.ceil(math.log10(max(amounts) * 1.5))

    def draw(axis: Any, flavour: str) -> None:
        ends: list[tuple[float, str, str]] = []
        merged: dict[tuple[tuple[int, float], ...], list[Row]] = {}
        for row, values in series[flavour]:
            merged.setdefault(tuple(sorted(values.items())), []).append(row)
        for points, same in merged.items():
            colour, dash = style(group.rows.index(same[0])) if len(merged) > 1 else (COLOURS[0], "-")
            axis.plot(*zip(*points, strict=True), dash, color=colour, lw=2.2, marker="o", ms=5, zorder=3)
            ends.append((points[-1][1], _together(same, rows), INK))
        for amounts, names in _alike(published).items():
            axis.plot([100, 1000], amounts, color=GREY, lw=1.2, marker="o", ms=3.5)
            ends.append((amounts[1], ", ".join(names), GREY))
        if published and flavour == "as_the_paper_counts":
            own = paper.MEMORY[paper.OWN[0]]
            axis.plot(list(own), list(own.values()), "o", color=GREY, mfc="none", ms=11)
        counts = sorted({n for points in merged for n, _ in points})
        axis.set(xscale="log", yscale="log", ylim=limits, xlim=(counts[0] * 0.85, counts[-1] * 3.2))
        axis.set_xticks(counts, [f"{n:,}" for n in counts])
        axis.minorticks_off()
        axis.yaxis.set_major_formatter(lambda amount, _: size(amount))
        axis.set_xlabel("classes")
        axis.set_ylabel("kept")
        for place, (_, text, colour) in zip(apart(sorted(ends), limits), sorted(ends), strict=True):
            axis.text(counts[-1] * 1.12, place, text, color=colour, va="center", fontsize=9)

    panels = []
    for flavour, title in FLAVOURS.items():
        words = "; ".join(
            f"{r.label} {', '.join(f'{size(b)} at {n} classes' for n, b in sorted(values.items()))}"
            for r, values in series[flavour]
        )
        panels.append(
            Panel(title, f"Memory kept, logarithmic scale. {title}: {words}.", partial(draw, flavour=flavour))
        )
    note = "Grey: as published; the large circles are the paper's own method." if published else ""
    return Picture("memory", panels, size=(5.0, 3.8), columns=2, note=note)


def cost(group: Group) -> Picture:
    """Seconds, and the most memory in use, for every task."""

    def draw(axis: Any, field: str, show: Callable[[float], str]) -> None:
        # Methods often cost the same: the later, the thinner, so that none is hidden by another.
        for i, (row, width) in enumerate(zip(group.rows, np.linspace(4, 1.2, len(group.rows)), strict=True)):
            colour, dash = style(i)
            if _given(row, field):
                values = np.mean(row.courses(field), axis=0)
                axis.plot(row.classes_seen[0], values[0], "o", color=colour, ms=3 + 1.5 * width)
                axis.plot(row.classes_seen[1:], values[1:], dash, color=colour, lw=width)
        if field == "seconds":
            axis.set_yscale("log")
            axis.yaxis.get_major_locator().set_params(subs=(1, 2, 5))
            axis.minorticks_off()
        else:
            axis.set_ylim(0, axis.get_ylim()[1] * 1.05)
        axis.yaxis.set_major_formatter(lambda value, _: show(value))
        axis.set_xlabel("classes seen")

    panels = []
    for field, title, show in (
        ("seconds", "Seconds per task", _seconds),
        ("peak_memory_bytes", "Peak memory while learning", size),
    ):
        rows = [row for row in group.rows if _given(row, field)]
        if rows:
            last = "; ".join(f"{r.label} {show(float(np.mean([c[-1] for c in r.courses(field)])))}" for r in rows)
            alt = f"Lines over classes seen. {title} in the last task: {last}."
            panels.append(Panel(title, alt, partial(draw, field=field, show=show)))
    return Picture("seconds", panels, size=(5.0, 3.0), columns=2, keys=row_keys(group.rows))


def _given(row: Row, field: str) -> bool:
    return all(task.get(field) for order in row.record["orders"] for task in order["tasks"])


def _seconds(value: float) -> str:
    return f"{value:,.0f} s" if value >= 10 else f"{value:.2g} s"


def _together(same: Sequence[Row], rows: Sequence[Row]) -> str:
    names = ", ".join(row.label for row in same)
    return f"all {len(rows)} of this report" if len(same) == len(rows) and len(names) > 22 else short(names, 22)


def _alike(published: dict[str, dict[int, float]]) -> dict[tuple[float, float], list[str]]:
    """Systems whose figures nobody could tell apart in the picture share one line."""
    found: dict[tuple[float, float], list[str]] = {}
    for name, at in published.items():
        same = next((a for a in found if all(abs(a[i] / at[n] - 1) < 0.05 for i, n in enumerate((100, 1000)))), None)
        found.setdefault(same or (at[100], at[1000]), []).append(paper.NAMES[name])
    return found


def apart(ends: Sequence[tuple[float, str, str]], limits: tuple[float, float], least: float = 0.055) -> list[float]:
    """Heights for the labels at the lines' ends, moved where two would be nearer than `least` of the axis.

    They move up, and down again where the topmost would leave the axis.
    """
    low, high = (math.log10(limit) for limit in limits)
    gap, places = least * (high - low), list[float]()
    for amount, _, _ in ends:
        place = math.log10(max(amount, limits[0]))
        places.append(max(place, places[-1] + gap) if places else place)
    ceiling = high - gap / 2
    for number in reversed(range(len(places))):
        places[number] = min(places[number], ceiling)
        ceiling = places[number] - gap
    return [10**place for place in places]
