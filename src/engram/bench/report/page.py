"""The page: headline, tables and pictures of every group, then how each run was made. No script, nothing fetched."""

import json
from collections.abc import Sequence
from html import escape

from engram.bench.drawing import FAINT, Key, Picture, svg
from engram.bench.plots import COLOURS, GREY
from engram.bench.report_tables import count, memory_table, other_table, psi_table, runs_table, tiles
from engram.bench.results import DATASETS, Group, Run
from engram.html import document

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
    "seconds": ("What a task costs", "The dot is the base task, the line the increments after it."),
}


def render(runs: Sequence[Run], groups: Sequence[Group], pictures: Sequence[Sequence[Picture]]) -> str:
    """The whole page."""
    what = sorted({DATASETS.get(group.dataset, group.dataset) for group in groups})
    title = f"Learning one class after another: {', '.join(what)}"
    parts = [f"<h1>{escape(title)}</h1>", f"<p>{escape(_headline(runs, groups))}</p>"]
    if len(groups) > 1:
        links = (f'<li><a href="#group-{n}">{escape(group.title)}</a></li>' for n, group in enumerate(groups, 1))
        parts.append(f'<nav aria-label="Contents"><ul>{"".join(links)}</ul></nav>')
    for number, (group, drawn) in enumerate(zip(groups, pictures, strict=True), 1):
        parts.append(_section(number, group, drawn))
    parts.append(_runs(runs, groups))
    return document(f"engram: {title}", parts)


def _headline(runs: Sequence[Run], groups: Sequence[Group]) -> str:
    rows = [row for group in groups for row in group.rows]
    where = sorted({str(run.content["run"].get("device", "an unnamed device")) for run in runs})
    return f"{count(len(rows), 'record')} of {count(len(runs), 'run')}, measured on {', '.join(where)}."


def _section(number: int, group: Group, drawn: Sequence[Picture]) -> str:
    parts = [f'<section aria-labelledby="group-{number}"><h2 id="group-{number}">{escape(group.title)}</h2>']
    parts += [f"<p>{escape(line)}</p>" for line in _protocols(group)]
    parts.append(tiles(group))
    for picture in drawn:
        heading, about = _ABOUT[picture.name]
        parts.append(f"<h3>{heading}</h3>")
        if about:
            parts.append(f"<p>{escape(about)}</p>")
        if picture.name == "psi":
            parts.append(psi_table(group))
        if picture.name == "memory":
            parts.append(memory_table(group))
        parts.append(_panels(picture, f"{number}"))
        if picture.name == "accuracy":
            parts.append(other_table(group))
    return "\n".join([*parts, "</section>"])


def _protocols(group: Group) -> list[str]:
    """What was done, in a sentence; more than one where the runs differ."""
    found: dict[str, list[str]] = {}
    for row in group.rows:
        protocol, orders = row.record["protocol"], len(row.record["orders"])
        step = "one at a time" if protocol["step"] == 1 else f"{protocol['step']} at a time"
        sentence = (
            f"{protocol['base']} classes at first, then {protocol['classes'] - protocol['base']} more, {step}, without "
            f"the earlier data; {count(orders, 'class order')}."
        )
        found.setdefault(sentence, []).append(row.label)
    if len(found) == 1:
        return list(found)
    return [f"{', '.join(labels)}: {sentence}" for sentence, labels in found.items()]


def _panels(picture: Picture, salt: str) -> str:
    figures = []
    for i, panel in enumerate(picture.panels):
        below = f'<p class="note">{escape(panel.below)}</p>' if panel.below else ""
        figures.append(
            f'<figure><figcaption>{escape(panel.title)}</figcaption><div role="img" aria-label="{escape(panel.alt)}">'
            f"{svg(picture, i, salt)}</div>{below}</figure>"
        )
    narrowest = 22 if picture.columns == 2 else 15 if picture.columns == 4 else 20
    legend = f'<ul class="legend">{"".join(map(_legend_entry, picture.keys))}</ul>' if picture.keys else ""
    note = f'<p class="note">{escape(picture.note)}</p>' if picture.note else ""
    return f'{legend}<div class="panels" style="--narrowest:{narrowest}rem">{"".join(figures)}</div>{note}'


def _legend_entry(key: Key) -> str:
    colour = "var(--grey)" if key.colour == GREY else f"var(--c{COLOURS.index(key.colour)})"
    if key.block:
        opacity = FAINT if key.colour == GREY else 1
        shape = f'<rect width="14" height="12" fill="{colour}" opacity="{opacity}"/>'
    else:
        dash = {"--": "7 4", "-.": "7 3 2 3", ":": "2 3"}.get(key.dash, "none")
        shape = f'<path d="M0 6h26" stroke="{colour}" stroke-width="3" stroke-dasharray="{dash}"/>'
    width = 14 if key.block else 26
    return f'<li><svg width="{width}" height="12" aria-hidden="true">{shape}</svg>{escape(key.label)}</li>'


def _runs(runs: Sequence[Run], groups: Sequence[Group]) -> str:
    parts = ['<section aria-labelledby="runs"><h2 id="runs">How it was run</h2>', runs_table(runs)]
    for run in runs:
        command = str(run.content["run"].get("command", ""))
        if command:
            parts.append(f"<p>{escape(run.label)}</p><pre>{escape(command)}</pre>")
    parts.append("<h3>Settings of every record</h3>")
    for group in groups:
        for row in group.rows:
            settings = {k: row.record.get(k) for k in ("preset", "config", "protocol", "alpha_ideal")}
            settings = {"backbone": group.backbone, **settings}
            text = escape(json.dumps(settings, indent=2, ensure_ascii=False))
            parts.append(
                f"<details><summary>{escape(f'{row.label}, {group.title}')}</summary><pre>{text}</pre></details>"
            )
    return "\n".join([*parts, "</section>"])
