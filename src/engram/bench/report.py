"""One or more results files as a page to look at: everything in one HTML file, and the figures as PNG."""

import json
import re
from collections.abc import Sequence
from html import escape
from itertools import chain
from pathlib import Path
from statistics import mean, median

from engram.bench.drawing import Figure, can_draw, save_png, svg
from engram.bench.figures import FLAVOURS, accuracy, confusion, costs, memory, psi
from engram.bench.html import Cell, document, table, tiles
from engram.bench.results import IDEALS, Group, Json, Run, count_verdicts, dataset_title, group, load
from engram.bench.tables import psi_columns
from engram.bench.units import count, seconds, size, spread

_ABOUT = {
    "psi": (
        "How much is remembered",
        "Ψ_base and Ψ_all are the mean accuracy after every increment, on the base classes and on all classes seen, "
        "divided by what an offline model reaches on all classes at once (α_ideal); Ψ_new is the mean accuracy on the "
        "class just learned. 1 is an incremental model as good as the offline one.",
    ),
    "accuracy": ("Accuracy as classes arrive", ""),
    "confusion": (
        "What is taken for what",
        "The final model of the first class order. Rows are the truth, columns the answer, classes in the order they "
        "were learned; the lines part the base classes from those added later.",
    ),
    "memory": (
        "What has to be kept",
        "Beside the network that answers. The paper counts the class means alone; to learn one more class without "
        "forgetting, the importance of every parameter, its reference value and the decoder are needed too.",
    ),
    "costs": ("What an increment costs", ""),
}


def write_report(results: Sequence[Path | str | Json], out: Path | str) -> None:
    """Write `report.html` and its figures to the folder `out`; without matplotlib, everything but the figures.

    Parameters
    ----------
    results : files written by `engram bench`, folders that hold one as `results.json`, or their content. Records of the
        same data and backbone are compared; a method that appears twice is labelled by the name of its run's folder.
    out : made if it is not there. The first data set and backbone give `psi.png`, `accuracy.png`, `confusion.png`,
        `memory.png` and `costs.png`, the next ones `psi-2.png`, and so on.
    """
    drawing = can_draw()
    runs = load(results)
    groups = group(runs)
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    names = ", ".join(sorted({dataset_title(group.dataset) for group in groups}))
    title = f"Learning one class after another: {names}"
    devices = sorted({str(run.content["run"].get("device", "an unnamed device")) for run in runs})
    records = count(sum(len(group.rows) for group in groups), "record")
    parts = [f"<h1>{escape(title)}</h1>"]
    parts.append(f"<p>{records} of {count(len(runs), 'run')}, measured on {escape(', '.join(devices))}.</p>")
    if len(groups) > 1:
        links = (f'<li><a href="#group-{n}">{escape(members.title)}</a></li>' for n, members in enumerate(groups, 1))
        parts.append(f'<nav aria-label="Contents"><ul>{"".join(links)}</ul></nav>')
    for number, members in enumerate(groups, 1):
        rows = members.rows
        drawn = (psi(rows), accuracy(rows), confusion(rows), memory(rows))
        figures = [f for f in (*drawn, costs(rows, ("seconds", "peak_memory_bytes"))) if f.panels]
        for figure in figures if drawing else ():
            save_png(figure, folder / f"{figure.name}{f'-{number}' if number > 1 else ''}.png", members.title)
        parts.append(_section(number, members, figures))
    parts.append(_runs(runs, groups))
    (folder / "report.html").write_text(document(f"engram: {title}", parts), encoding="utf-8")


def _section(number: int, group: Group, figures: Sequence[Figure]) -> str:
    parts = [f'<section aria-labelledby="group-{number}"><h2 id="group-{number}">{escape(group.title)}</h2>']
    protocols = dict[str, list[str]]()
    for row in group.rows:
        protocols.setdefault(row.protocol, []).append(row.label)
    for sentence, labels in protocols.items():
        whose = f"{', '.join(labels)}: " if len(protocols) > 1 else ""
        parts.append(f"<p>{escape(whose + sentence)}</p>")
    parts.append(_tiles(group))
    for figure in figures:
        heading, about = _ABOUT[figure.name]
        parts.append(f"<h3>{heading}</h3>" + (f"<p>{about}</p>" if about else ""))
        parts.append({"psi": _psi_table, "memory": _memory_table}.get(figure.name, lambda _: "")(group))
        parts.append(_panels(figure, str(number)) if can_draw() else '<p class="note">Drawn with matplotlib only.</p>')
        parts.append(_accuracy_table(group) if figure.name == "accuracy" else "")
    return "\n".join([*parts, "</section>"])


def _panels(figure: Figure, salt: str) -> str:
    panels = []
    for i, panel in enumerate(figure.panels):
        below = f'<p class="note">{escape(panel.below)}</p>' if panel.below else ""
        panels.append(
            f'<figure><figcaption>{escape(panel.title)}</figcaption><div role="img" aria-label="{escape(panel.alt)}">'
            f"{svg(figure, i, salt)}</div>{below}</figure>"
        )
    narrowest = {2: 22, 4: 15}.get(figure.columns, 20)
    note = f'<p class="note">{escape(figure.note)}</p>' if figure.note else ""
    return f'<div class="panels" style="--narrowest:{narrowest}rem">{"".join(panels)}</div>{note}'


def _tiles(group: Group) -> str:
    """The few numbers to remember. Who is told the task of every test sample does not compete."""
    able = [row for row in group.rows if not row.about.told_the_task] or group.rows
    best = max(able, key=lambda row: float(row.record["psi_all"]["mean"]))
    found = [(f"{best.record['psi_all']['mean']:.3f}", f"best Ψ_all: {best.label}")]
    for ideal, whose in IDEALS.items():
        verdicts = [verdict for row in group.rows for verdict in row.verdicts(ideal)]
        if verdicts:
            reproduced, _, rest = count_verdicts(verdicts).partition(" reproduced")
            found.append((reproduced, f"published Ψ reproduced by {whose}{rest.replace(', ', '; ', 1)}"))
    ideals = sorted({f"{row.record['alpha_ideal']['accuracy']:.3f}" for row in group.rows})
    found.append((" / ".join(ideals), "α_ideal: offline, on the same features"))
    later = [value for course in best.courses("seconds") for value in course[1:]]
    if later:
        found.append((seconds(median(later)), f"to learn an increment: {best.label}"))
    kept = best.memory("all_the_next_increment_needs")
    if {100, 1000} <= set(kept):
        found.append((size((kept[1000] - kept[100]) / 900), f"for each further class: {best.label}"))
    return tiles(found)


def _psi_table(group: Group) -> str:
    columns, lines, note = psi_columns(group.rows)
    groups = [(symbol, len(names)) for symbol, names in columns.items()]
    html = table("Ψ of every method", ["method", *chain(*columns.values())], lines, groups)
    return f'{_soften(html)}<p class="note">{escape(note)}</p>'


def _accuracy_table(group: Group) -> str:
    """What today's papers report, and how long it took."""
    fields = ("average_incremental_accuracy", "final_accuracy", "forgetting")
    head = ["method", "α_ideal", *(field.replace("_", " ") for field in fields), "base task", "all tasks, per order"]
    lines = []
    for row in group.rows:
        spent = row.courses("seconds")
        measured = (row.record.get(field) for field in fields)
        line = [
            row.label,
            f"{row.record['alpha_ideal']['accuracy']:.3f}",
            *(spread(m) if m else None for m in measured),
        ]
        lines.append([*line, seconds(mean(course[0] for course in spent)), seconds(mean(map(sum, spent)))])
    return _soften(table("Accuracy as today's papers report it", head, lines))


def _memory_table(group: Group) -> str:
    """Bytes in the two ways of counting, and what lay in memory after the last task."""
    columns = [(f, n) for f in FLAVOURS for n in sorted({n for row in group.rows for n in row.memory(f)})]
    groups = [(title.lower(), sum(f == flavour for f, _ in columns)) for flavour, title in FLAVOURS.items()]
    lasts = [row.record["orders"][0]["tasks"][-1].get("kept_bytes") or {} for row in group.rows]
    parts = list(dict.fromkeys(part for last in lasts for part in last))
    if parts:
        groups.append(("after the last task of this run", len(parts)))
    lines = []
    for row, last in zip(group.rows, lasts, strict=True):
        amounts = [row.memory(flavour).get(n) for flavour, n in columns] + [last.get(part) for part in parts]
        lines.append([row.label, *(None if amount is None else size(amount) for amount in amounts)])
    head = ["method", *(f"{n:,} classes" for _, n in columns), *parts]
    return table("Memory kept", head, lines, groups)


def _soften(html: str) -> str:
    """Let standard deviations stand back behind the means."""
    return re.sub(r"± [\d.]+", r'<span class="spread">\g<0></span>', html)


def _runs(runs: Sequence[Run], groups: Sequence[Group]) -> str:
    """Where, when, with what and how."""
    fields = list(dict.fromkeys(key for run in runs for key in run.content["run"] if key != "command"))
    lines = []
    for run in runs:
        values = (run.content["run"].get(field) for field in fields)
        lines.append([run.label, *(None if value is None else Cell(escape(str(value)), "text") for value in values)])
    head = [Cell(escape(field.replace("_", " ")), "text") for field in ("run", *fields)]
    parts = ['<section aria-labelledby="runs"><h2 id="runs">How it was run</h2>', table("Runs", head, lines)]
    for run in runs:
        if command := run.content["run"].get("command"):
            parts.append(f"<p>{escape(run.label)}</p><pre>{escape(str(command))}</pre>")
    parts.append("<h3>Settings of every record</h3>")
    for members in groups:
        for row in members.rows:
            settings = {k: row.record.get(k) for k in ("backbone", "preset", "config", "protocol", "alpha_ideal")}
            text = escape(json.dumps(settings, indent=2, ensure_ascii=False))
            title = escape(f"{row.label}, {members.title}")
            parts.append(f"<details><summary>{title}</summary><pre>{text}</pre></details>")
    return "\n".join([*parts, "</section>"])
