"""The tables, in Markdown."""

from collections.abc import Iterable, Sequence
from statistics import median

from engram.bench import published as paper
from engram.bench.costs import size
from engram.bench.ledger.entries import NOTHING, Entry, entries_of, kept_bytes, seconds_per_task
from engram.bench.results import DATASETS, PSI, Json, Row

REACHED = 0.05  # a published Ψ counts as reproduced from this far below it


def psi_table(dataset: str, entries: Sequence[Entry]) -> str:
    """Ψ as measured and as published, and what else the method was given."""
    constant = paper.IDEAL.get(dataset)
    head = ["method", "features"]
    for symbol in ("Ψ_base", "Ψ_new", "Ψ_all"):
        head += [symbol, *([f"by {constant}"] if constant and symbol != "Ψ_new" else []), "published"]
    lines = []
    for entry in entries:
        line = [entry.title, entry.features]
        published = paper.PSI.get(dataset, {}).get(entry.method)
        theirs = (entry.row.record.get("paper_ideal") or {}) if entry.row else {}
        for i, field in enumerate(PSI):
            spread = entry.row.record[field] if entry.row else None
            short = published is not None and spread is not None and spread["mean"] < published[i] - REACHED
            line.append((_spread(spread) + (" ▼" if short else "")) if spread else NOTHING)
            if constant and field != "psi_new":  # Ψ_new is divided by nothing
                line.append(f"{theirs[field]['mean']:.3f}" if theirs else NOTHING)
            line.append(f"{published[i]:.3f}" if published else NOTHING)
        lines.append([*line, "yes" if entry.about.keeps_samples else "no", entry.about.given])
    ideals = sorted({(e.features, e.row.record["alpha_ideal"]["accuracy"]) for e in entries if e.row})
    notes = ["Mean ± standard deviation over class orders; Ψ is relative to an offline network on the same features:"]
    notes.append(", ".join(f"α_ideal {accuracy:.3f} ({features})" for features, accuracy in ideals) + ".")
    if dataset in paper.PSI:
        notes.append(
            f"The published numbers divide by an α_ideal of {constant}, an offline network on other features, and so "
            f"do the columns named so. ▼: more than {REACHED} below the published number."
        )
    return _table([*head, "keeps old samples", "what else it was given"], lines) + "\n\n" + " ".join(notes)


def cost_table(entries: Sequence[Entry]) -> str:
    """Bytes and seconds, and how they change from the first increments to the last."""
    head = ["method", "device", "kept after the base", "kept at the end", "per further class"]
    head += ["seconds per increment, first", "last", "base"]
    lines = []
    for entry in entries:
        if entry.row is None:
            continue
        kept, seconds = kept_bytes(entry.row), seconds_per_task(entry.row)
        seen = entry.row.classes_seen
        per_class = (kept[-1] - kept[0]) / max(1, seen[-1] - seen[0])
        few = max(1, min(10, len(seconds) // 2))
        line = [entry.title, str(entry.row.run.content["run"].get("device", NOTHING)), size(kept[0]), size(kept[-1])]
        line += [size(per_class), *(f"{median(part):.3g}" for part in (seconds[1:][:few], seconds[1:][-few:]) if part)]
        lines.append([*line, f"{seconds[0]:.3g}"])
    return _table(head, lines)


def memory_table(rows: Sequence[Row]) -> str:
    """Bytes at 100 and 1,000 classes as the paper counts, beside what it published, and all that is needed."""
    head = [
        "method",
        "data",
        "features",
        "published, 100",
        "1,000",
        "counted alike, 100",
        "1,000",
        "all it needs, 100",
        "1,000",
    ]
    lines = []
    for entry in entries_of("", rows):
        published = paper.MEMORY.get(entry.method, {})
        name = entry.row.record["dataset"] if entry.row else NOTHING
        line = [entry.title, DATASETS.get(name, name), entry.features]
        line += [size(published[n]) if n in published else NOTHING for n in (100, 1000)]
        memory = (entry.row.record.get("memory") or {}) if entry.row else {}
        for flavour in ("as_the_paper_counts", "all_the_next_increment_needs"):
            line += [size(memory[flavour][str(n)]) if flavour in memory else NOTHING for n in (100, 1000)]
        lines.append(line)
    note = "A read-out's rows belong to the network that answers; DeepNCM's means are its read-out."
    return _table(head, lines) + "\n\n" + note


def protocol(entries: Iterable[Entry]) -> str:
    """What was done, in a sentence."""
    found = dict.fromkeys(
        f"{p['base']} classes first, then {p['classes'] - p['base']} more, {p['step']} at a time; "
        f"{len(entry.row.record['orders'])} class order(s)."
        for entry in entries
        if entry.row and (p := entry.row.record["protocol"])
    )
    return " ".join(found)


def _spread(spread: Json) -> str:
    several = len(spread["values"]) > 1
    return f"{spread['mean']:.3f}" + (f" ± {spread['std']:.3f}" if several else "")


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
