"""The tables of the page; what comes from a file is escaped here."""

from collections.abc import Iterable, Sequence
from html import escape
from statistics import mean, median
from typing import Any

from engram.bench import published as paper
from engram.bench.costs import FLAVOURS, size
from engram.bench.figures import SYMBOLS
from engram.bench.results import PSI, Group, Json, Row, Run

# A published number counts as reached from this far below it.
MARGIN = 0.03
_NOTHING = '<td aria-label="none">–</td>'


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def tiles(group: Group) -> str:
    """The few numbers to remember."""
    best = max(group.rows, key=lambda row: float(row.record["psi_all"]["mean"]))
    found = [(f"{best.record['psi_all']['mean']:.3f}", f"best Ψ_all: {best.label}")]
    gaps = [gap for row in group.rows for gap in _differences(row)]
    if gaps:
        reached = sum(_verdict(gap) != "low" for gap in gaps)
        found.append((f"{reached} of {len(gaps)}", f"published Ψ reached, to within {MARGIN}"))
    ideals = sorted({f"{row.record['alpha_ideal']['accuracy']:.3f}" for row in group.rows})
    found.append((" / ".join(ideals), "α_ideal: offline, on the same features"))
    later = [task["seconds"] for order in best.record["orders"] for task in order["tasks"][1:]]
    if later:
        found.append((f"{median(later):.3g} s", f"to learn an increment: {best.label}"))
    memory = (best.record.get("memory") or {}).get("all_the_next_increment_needs", {})
    if {"100", "1000"} <= set(memory):
        found.append((size((memory["1000"] - memory["100"]) / 900), f"for each further class: {best.label}"))
    items = (f"<li><b>{escape(value)}</b><span>{escape(text)}</span></li>" for value, text in found)
    return f'<ul class="tiles">{"".join(items)}</ul>'


def psi_table(group: Group) -> str:
    """Ψ with the measured α_ideal, the paper's number and the difference, and Ψ with the paper's constant."""
    published = group.dataset in paper.PSI
    constants = sorted({r.record["paper_ideal"]["alpha_ideal"] for r in group.rows if r.record.get("paper_ideal")})
    constant = f"with α_ideal {', '.join(f'{c:.3f}' for c in constants)}"
    top, sub = ['<th rowspan="2" scope="col">method</th>'], []
    for field, symbol in SYMBOLS.items():
        names = ["measured"] + ["published", "difference"] * published
        names += [constant] if constants and field != "psi_new" else []  # Ψ_new is divided by nothing
        top.append(f'<th class="first" colspan="{len(names)}" scope="colgroup">{symbol}</th>')
        sub += [f'<th scope="col"{_first(i)}>{escape(name)}</th>' for i, name in enumerate(names)]
    body = []
    for row in group.rows:
        cells = []
        for i, field in enumerate(PSI):
            cells.append(_spread(row.record[field], ' class="first"'))
            if published and row.published:
                gap = _differences(row)[i]
                sign = "▼ " if _verdict(gap) == "low" else ""
                text = f"{gap:+.3f}".replace("-", "−")
                cells.append(f'<td>{row.published[i]:.3f}</td><td class="{_verdict(gap)}">{sign}{text}</td>')
            elif published:
                cells.append(_NOTHING * 2)
            if constants and field != "psi_new":
                theirs = row.record.get("paper_ideal")
                cells.append(_spread(theirs[field]) if theirs else _NOTHING)
        body.append(f'<tr><th scope="row">{escape(row.label)}</th>{"".join(cells)}</tr>')
    ran = {row.record["method"] for row in group.rows}
    for method, values in paper.PSI.get(group.dataset, {}).items():
        if method not in ran:
            body.append(_published_row(paper.NAMES[method], values, bool(constants)))
    several = any(len(row.record["orders"]) > 1 for row in group.rows)
    notes = ["Mean ± standard deviation over class orders." if several else "One class order: no spread is known."]
    if published:
        notes.append(
            f"Difference: measured less published; ▼ where it is below −{MARGIN}. The published Ψ divide by an α_ideal "
            f"of {paper.IDEAL[group.dataset]}, an offline network on ResNet-50 features. Rows in grey: not run here."
        )
    head = f"<tr>{''.join(top)}</tr><tr>{''.join(sub)}</tr>"
    return _table("Ψ of every method", head, body) + f'<p class="note">{escape(" ".join(notes))}</p>'


def other_table(group: Group) -> str:
    """What today's papers report."""
    fields = {
        "average_incremental_accuracy": "average incremental accuracy",
        "final_accuracy": "final accuracy",
        "forgetting": "forgetting",
    }
    body = []
    for row in group.rows:
        cells = [f"<td>{row.record['alpha_ideal']['accuracy']:.3f}</td>"]
        cells += [_spread(row.record[f]) if row.record.get(f) else _NOTHING for f in fields]
        total = mean(sum(task["seconds"] for task in order["tasks"]) for order in row.record["orders"])
        cells.append(f"<td>{total:,.0f} s</td>")
        body.append(f'<tr><th scope="row">{escape(row.label)}</th>{"".join(cells)}</tr>')
    return _table(
        "Accuracy as today's papers report it",
        _head(["method", "α_ideal", *fields.values(), "learning, per order"]),
        body,
    )


def memory_table(group: Group) -> str:
    """Bytes in the two ways of counting, and what lay in memory after the last task."""
    flavours = [(f, n) for f in FLAVOURS for n in _class_counts(group.rows, f)]
    lasts = {row.label: row.record["orders"][0]["tasks"][-1].get("kept_bytes") or {} for row in group.rows}
    parts = list(dict.fromkeys(part for kept in lasts.values() for part in kept))
    top, sub = ['<th rowspan="2" scope="col">method</th>'], []
    for flavour, title in FLAVOURS.items():
        counts = [n for f, n in flavours if f == flavour]
        if counts:
            top.append(f'<th class="first" colspan="{len(counts)}" scope="colgroup">{title.lower()}</th>')
            sub += [f'<th scope="col"{_first(i)}>{n:,} classes</th>' for i, n in enumerate(counts)]
    if parts:
        top.append(f'<th class="first" colspan="{len(parts)}" scope="colgroup">after the last task of this run</th>')
        sub += [f'<th scope="col"{_first(i)}>{escape(part)}</th>' for i, part in enumerate(parts)]
    body = []
    for row in group.rows:
        cells = [_bytes((row.record.get("memory") or {}).get(f, {}).get(str(n))) for f, n in flavours]
        cells += [_bytes(lasts[row.label].get(part)) for part in parts]
        body.append(f'<tr><th scope="row">{escape(row.label)}</th>{"".join(cells)}</tr>')
    return _table("Memory kept", f"<tr>{''.join(top)}</tr><tr>{''.join(sub)}</tr>", body)


def runs_table(runs: Sequence[Run]) -> str:
    """Where, when and with what."""
    fields = list(dict.fromkeys(key for run in runs for key in run.content["run"] if key != "command"))
    body = []
    for run in runs:
        cells = (f'<td class="text">{escape(_text(run.content["run"].get(field)))}</td>' for field in fields)
        body.append(f'<tr><th scope="row">{escape(run.label)}</th>{"".join(cells)}</tr>')
    return _table("Runs", _head(["run", *(field.replace("_", " ") for field in fields)], text=True), body)


def _differences(row: Row) -> list[float]:
    return [row.record[f]["mean"] - row.published[i] for i, f in enumerate(PSI)] if row.published else []


def _verdict(gap: float) -> str:
    return "good" if gap >= 0 else "near" if gap >= -MARGIN - 1e-9 else "low"


def _published_row(name: str, values: Iterable[float], constants: bool) -> str:
    cells = []
    for field, value in zip(PSI, values, strict=True):
        cells.append(f'<td class="first" aria-label="none">–</td><td>{value:.3f}</td>{_NOTHING}')
        cells.append(_NOTHING if constants and field != "psi_new" else "")
    return f'<tr class="peer"><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>'


def _spread(spread: Json, attributes: str = "") -> str:
    several = len(spread["values"]) > 1 and spread.get("std") is not None
    deviation = f' <span class="spread">± {spread["std"]:.3f}</span>' if several else ""
    return f"<td{attributes}>{spread['mean']:.3f}{deviation}</td>"


def _class_counts(rows: Sequence[Row], flavour: str) -> list[int]:
    return sorted({int(n) for row in rows for n in (row.record.get("memory") or {}).get(flavour, {})})


def _bytes(amount: float | None) -> str:
    return _NOTHING if amount is None else f"<td>{size(amount)}</td>"


def _text(value: Any) -> str:
    return "–" if value is None else str(value)


def _first(position: int) -> str:
    return ' class="first"' if position == 0 else ""


def _head(names: Iterable[str], text: bool = False) -> str:
    align = ' class="text"' if text else ""
    cells = (f'<th scope="col"{align}>{escape(name)}</th>' for name in names)
    return f"<tr>{''.join(cells)}</tr>"


def _table(name: str, head: str, body: Iterable[str]) -> str:
    """Wide tables scroll by themselves, also from the keyboard."""
    return (
        f'<div class="scroll" role="region" aria-label="{escape(name)}" tabindex="0"><table><thead>{head}</thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )
