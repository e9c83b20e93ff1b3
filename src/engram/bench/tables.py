"""The paper's Tables 3, 5 and 4 with all rows, ours and theirs, and what a further class costs each method."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

from engram.bench import published
from engram.bench.drawing import Figure, save_png
from engram.bench.figures import FLAVOURS, costs, psi
from engram.bench.results import (
    MARKS,
    NEAR,
    NEAR_PEERS,
    PSI,
    Json,
    Row,
    dataset_title,
    group,
    load,
    method_title,
    published_only,
)
from engram.bench.units import size, spread
from engram.methods import METHODS

NOTHING = "–"
_NUMBERS = {"cifar100": "Table 3: ", "cub200": "Table 5: "}


def write_tables(results: Sequence[Path | str | Json], out: Path | str, note: str = "") -> str:
    """Write `tables.md` and its figures to the folder `out`; return the text. `note` stands below the costs."""
    rows = [row for found in group(load(results)) for row in found.rows]
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for dataset in dict.fromkeys(row.record["dataset"] for row in rows):
        own = in_order([row for row in rows if row.record["dataset"] == dataset])
        name = dataset_title(dataset)
        title = _NUMBERS.get(dataset, "") + name
        parts += [f"## {title}", " ".join(dict.fromkeys(row.protocol for row in own)), psi_table(dataset, own)]
        parts.append(f"![Ψ of every method](psi-{dataset}.png)")
        save_png(psi(own), folder / f"psi-{dataset}.png", title)
        parts += [f"### What a further class costs, {name}", cost_table(own), *([note] if note else [])]
        parts.append(f"![Bytes kept and seconds per increment](costs-{dataset}.png)")
        save_png(comparable_costs(own), folder / f"costs-{dataset}.png", f"{name}: what a further class costs")
    parts += ["## Table 4: memory beside the network that answers", memory_table(in_order(rows))]
    text = "\n\n".join(parts) + "\n"
    (folder / "tables.md").write_text(text, encoding="utf-8")
    return text


def in_order(rows: Sequence[Row]) -> list[Row]:
    """The rows in the order of the tables, by the names people know; of a method on several features, with these."""
    several = {key for key, n in Counter((row.record["dataset"], row.label) for row in rows).items() if n > 1}
    order = list(dict.fromkeys([*published.OWN, *METHODS]))
    named = []
    for row in rows:
        label = row.label.replace(row.method, method_title(row.method), 1)
        if (row.record["dataset"], row.label) in several:
            label += f" · {row.features.split(':')[0]}"
        named.append(replace(row, label=label))
    return sorted(named, key=lambda row: order.index(row.method) if row.method in order else len(order))


def comparable_costs(rows: Sequence[Row]) -> Figure:
    """Bytes and seconds; of a method that ran on several features, on those that most ran on: only these compare."""
    common = Counter(row.features for row in rows).most_common(1)[0][0]
    there = {row.method for row in rows if row.features == common}
    kept = [row for row in rows if row.features == common or row.method not in there]
    note = f"Methods that ran on several features are shown on {common}." if len(kept) < len(rows) else ""
    return replace(costs(kept, ("kept_bytes", "seconds")), note=note)


def psi_table(dataset: str, rows: Sequence[Row]) -> str:
    """Ψ as measured and as published, and what else the method was given."""
    constant = published.IDEAL.get(dataset)
    head = ["method", "features"]
    for field, symbol in PSI.items():  # Ψ_new is divided by nothing
        head += [symbol, *([f"by {constant}"] if constant and field != "psi_new" else []), "published"]
    lines = []
    for row in rows:
        line = [row.label, row.features]
        for i, field in enumerate(PSI):
            mark = MARKS[row.verdicts[i]] if row.published else ""
            line.append(f"{spread(row.record[field])} {mark}".strip())
            if constant and field != "psi_new":
                theirs = row.record.get("paper_ideal")
                line.append(f"{theirs[field]['mean']:.3f}" if theirs else NOTHING)
            line.append(f"{row.published[i]:.3f}" if row.published else NOTHING)
        lines.append([*line, "yes" if row.about.keeps_samples else "no", row.about.given])
    for method, (base, new, everything) in published_only(rows).items():
        numbers = [NOTHING, NOTHING, f"{base:.3f}", NOTHING, f"{new:.3f}", NOTHING, NOTHING, f"{everything:.3f}"]
        lines.append([published.NAMES[method], NOTHING, *numbers, NOTHING, NOTHING])
    ideals = sorted({(row.features, row.record["alpha_ideal"]["accuracy"]) for row in rows})
    notes = ["Mean ± standard deviation over class orders; Ψ is relative to an offline network on the same features:"]
    notes.append(", ".join(f"α_ideal {accuracy:.3f} ({features})" for features, accuracy in ideals) + ".")
    if dataset in published.PSI:
        notes.append(
            f"The published numbers divide by an α_ideal of {constant}, an offline network on other features, and so "
            f"do the columns named so. ▲, ▼: higher or lower than published by more than {NEAR} ({NEAR_PEERS} for the "
            "systems the paper compares with)."
        )
    return markdown([*head, "keeps old samples", "what else it was given"], lines) + "\n\n" + " ".join(notes)


def cost_table(rows: Sequence[Row]) -> str:
    """Bytes and seconds, and how they change from the first increments to the last."""
    head = ["method", "device", "kept after the base", "kept at the end", "per further class"]
    head += ["seconds per increment, first", "last", "base"]
    lines = []
    for row in rows:
        kept, seconds = (
            [fmean(task) for task in zip(*row.courses(field), strict=True)] for field in ("kept_bytes", "seconds")
        )
        per_class = (kept[-1] - kept[0]) / max(1, row.classes_seen[-1] - row.classes_seen[0])
        few = max(1, min(10, len(seconds) // 2))
        line = [row.label, str(row.run.content["run"].get("device", NOTHING)), size(kept[0]), size(kept[-1])]
        line += [size(per_class), *(f"{median(part):.3g}" for part in (seconds[1:][:few], seconds[1:][-few:]) if part)]
        lines.append([*line, f"{seconds[0]:.3g}"])
    return markdown(head, lines)


def memory_table(rows: Sequence[Row]) -> str:
    """Bytes at 100 and 1,000 classes as the paper counts, beside what it published, and all that is needed."""
    head = ["method", "data", "features"]
    for title in ("published", "counted alike", "all it needs"):
        head += [f"{title}, 100", "1,000"]

    def amounts(found: Mapping[int, float]) -> list[str]:
        return [size(found[n]) if n in found else NOTHING for n in (100, 1000)]

    lines = []
    for row in rows:
        line = [row.label, dataset_title(row.record["dataset"]), row.features]
        for found in (published.MEMORY.get(row.method, {}), *map(row.memory, FLAVOURS)):
            line += amounts(found)
        lines.append(line)
    ran = {row.method for row in rows}
    for method in (name for name in published.MEMORY if name not in ran):
        theirs = amounts(published.MEMORY[method])
        lines.append([published.NAMES[method], NOTHING, NOTHING, *theirs, *amounts({}), *amounts({})])
    note = "A read-out's rows belong to the network that answers; DeepNCM's means are its read-out."
    return markdown(head, lines) + "\n\n" + note


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)
