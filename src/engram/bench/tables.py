"""The paper's Tables 3, 5 and 4 with all rows, ours and theirs, and what a further class costs each method."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

from engram.bench import published
from engram.bench.drawing import can_draw, save_png
from engram.bench.figures import FLAVOURS, costs, curves, psi
from engram.bench.html import Cell, Content
from engram.bench.learners import METHODS
from engram.bench.results import (
    MARKS,
    NEAR,
    NEAR_PEERS,
    Json,
    Row,
    Verdict,
    dataset_title,
    group,
    judge,
    load,
    method_title,
    published_only,
)
from engram.bench.schema import PSI
from engram.bench.units import size, spread
from engram.learners.base import GROUPS

NOTHING = "–"
_NUMBERS = {"cifar100": "Table 3: ", "cub200": "Table 5: "}


def write_tables(results: Sequence[Path | str | Json], out: Path | str, note: str = "") -> str:
    """Write `tables.md` and its figures to the folder `out`; return the text. `note` stands below the costs.

    Without matplotlib everything but the figures is written.
    """
    rows = [row for found in group(load(results)) for row in found.rows]
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for dataset in dict.fromkeys(row.record["dataset"] for row in rows):
        own = in_order([row for row in rows if row.record["dataset"] == dataset])
        name = dataset_title(dataset)
        title = _NUMBERS.get(dataset, "") + name
        parts += [f"## {title}", protocols(own), psi_table(own)]
        if can_draw():
            parts.append(f"![Ψ of every method](psi-{dataset}.png)")
            save_png(psi(own), folder / f"psi-{dataset}.png", title)
            parts.append(f"![Accuracy on all classes seen, as they arrive](curves-{dataset}.png)")
            shown, on_which = comparable(own)
            drawn = curves(shown)
            drawn = replace(drawn, note=f"{drawn.note} {on_which}".strip())
            save_png(drawn, folder / f"curves-{dataset}.png", f"{name}: test accuracy on all classes seen so far")
        parts += [f"### What a further class costs, {name}", cost_table(own), *([note] if note else [])]
        if can_draw():
            parts.append(f"![Bytes kept and seconds per increment](costs-{dataset}.png)")
            shown, on_which = comparable(own)
            drawn = replace(costs(shown, ("kept_bytes", "seconds")), note=on_which)
            save_png(drawn, folder / f"costs-{dataset}.png", f"{name}: what a further class costs")
    parts += ["## Table 4: memory beside the network that answers", memory_table(in_order(rows))]
    parts += ["### Where the published figures may come from", formula_table()]
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
            label += f" · {row.features.removesuffix(':pooled').removesuffix(':conv4_1')}"
        named.append(replace(row, label=label))
    return sorted(named, key=lambda row: order.index(row.method if row.method in order else row.record["learner"]))


def comparable(rows: Sequence[Row]) -> tuple[list[Row], str]:
    """Rows to draw beside each other: of a method that ran on several features, on those most ran on; and a note."""
    common = Counter(row.features for row in rows).most_common(1)[0][0]
    there = {row.method for row in rows if row.features == common}
    kept = [row for row in rows if row.features == common or row.method not in there]
    note = f"Methods that ran on several features are shown on {common}." if len(kept) < len(rows) else ""
    return kept, note


def psi_columns(rows: Sequence[Row]) -> tuple[dict[str, list[str]], list[list[Content]], str]:
    """The columns under every Ψ, a line for each row and for what was only published, and a note.

    Each Ψ stands as measured and, where the paper has it, as published, with the difference and its verdict, and as it
    would be with the paper's α_ideal.
    """
    dataset = rows[0].record["dataset"]
    compared, constant = dataset in published.PSI, published.IDEAL.get(dataset)
    columns = {symbol: ["measured", *["published", "difference"] * compared] for symbol in PSI.values()}
    divided = ("psi_base", "psi_all") if constant else ()  # Ψ_new is divided by nothing
    for field in divided:
        columns[PSI[field]].append(f"with α_ideal {constant:.3f}")
    lines: list[list[Content]] = []
    for row in rows:
        line: list[Content] = [row.label]
        by_us, by_them = row.verdicts("ours"), row.verdicts("paper")
        for i, field in enumerate(PSI):
            line.append(spread(row.record[field]))
            if row.published:
                gap = f"{row.record[field]['mean'] - row.published[i]:+.3f}".replace("-", "−")
                line += [f"{row.published[i]:.3f}", _judged(gap, by_us[i])]
            elif compared:
                line += [None, None]
            if field in divided:
                theirs = row.ideals.get("paper")
                number = spread(theirs[field]) if theirs else None
                line.append(_judged(number, by_them[i]) if number and by_them else number)
        lines.append(line)
    for method, values in published_only(rows).items():
        line = [Cell(published.NAMES[method], "peer")]
        for field, value in zip(PSI, values, strict=True):
            line += [None, Cell(f"{value:.3f}", "peer"), None, *[None] * (field in divided)]
        lines.append(line)
    return columns, lines, _psi_note(rows, constant if compared else None)


def _psi_note(rows: Sequence[Row], constant: float | None) -> str:
    """How to read the table, and what it comes to by either α_ideal."""
    runs = [[order["seed"] for order in row.record["orders"]] for row in rows]
    also = " and initialisations" if any(len(set(seeds)) < len(seeds) for seeds in runs) else ""
    several = any(len(seeds) > 1 for seeds in runs)
    note = f"Mean ± standard deviation over class orders{also}." if several else "One class order: no spread is known."
    if constant is None:
        return note
    note += (
        f" Difference: measured less published. ▲ and ▼ mark what is more than {NEAR} ({NEAR_PEERS} for the systems "
        f"the paper compares with) from the published. The published Ψ divide by an α_ideal of {constant}, an offline "
        "network on ResNet-50 features. Rows without a measurement were not run here."
    )
    return f"{note} {judge(rows)}"


def _judged(number: str, verdict: Verdict) -> Cell:
    return Cell(f"{MARKS[verdict]} {number}".strip(), verdict)


def protocols(rows: Sequence[Row]) -> str:
    """What was done: a sentence for each way to split the classes, with how often the rows have it."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        split, often = row.protocol.removesuffix(".").split("; ")
        found.setdefault(split, {})[often] = None
    return " ".join(f"{split}; {', or '.join(often)}." for split, often in found.items())


def psi_table(rows: Sequence[Row]) -> str:
    """Ψ as measured and as published, and what else the method was given."""
    columns, lines, note = psi_columns(rows)
    head = ["method", "features", *(name for symbol, names in columns.items() for name in (symbol, *names[1:]))]
    about = [(row.features, "yes" if row.about.keeps_samples else "no", row.about.given) for row in rows]
    about += [(NOTHING, NOTHING, NOTHING)] * (len(lines) - len(rows))  # only published
    full = [[name, of, *psi, *more] for (name, *psi), (of, *more) in zip(lines, about, strict=True)]
    ideals = sorted({(row.features, row.record["alpha_ideal"]["accuracy"]) for row in rows})
    measured = ", ".join(f"{accuracy:.3f} ({features})" for features, accuracy in ideals)
    note += f" α_ideal as measured: {measured}."
    return markdown([*head, "keeps old samples", "what else it was given"], full) + "\n\n" + note


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

    lines = []
    for row in rows:
        line = [row.label, dataset_title(row.record["dataset"]), row.features]
        for found in (published.MEMORY.get(row.method, {}), *map(row.memory, FLAVOURS)):
            line += _amounts(found)
        lines.append(line)
        if more := samples_gone(row):
            line = [f"{row.label}, at its peak", *line[1:3], NOTHING, NOTHING]
            for flavour in FLAVOURS:
                line += _amounts({n: kept + more for n, kept in row.memory(flavour).items()})
            lines.append(line)
    ran = {row.method for row in rows}
    for method in (name for name in published.MEMORY if name not in ran):
        theirs = _amounts(published.MEMORY[method])
        lines.append([published.NAMES[method], NOTHING, NOTHING, *theirs, *_amounts({}), *_amounts({})])
    note = (
        "A read-out's rows belong to the network that answers; DeepNCM's means are its read-out. FearNet is counted "
        "after a sleep, which empties its memory of samples, and at its peak, just before one. GEM keeps 2,000 samples "
        "however many classes there are."
    )
    return markdown(head, lines) + "\n\n" + note


def samples_gone(row: Row) -> float:
    """How many more bytes of stored samples there were at some time than after the last task."""
    tasks = row.record["orders"][0]["tasks"]
    kept = [float((task.get("kept_bytes") or {}).get(GROUPS["samples"], 0)) for task in tasks]
    return max(kept) - kept[-1]


def formula_table() -> str:
    """The published figures beside what they can be inferred from, and what that gives."""
    alike: dict[str, list[str]] = {}
    for method, (words, _) in published.MEMORY_FORMULAS.items():
        alike.setdefault(words, []).append(method)
    lines = []
    for words, methods in alike.items():
        sizes = published.MEMORY_FORMULAS[methods[0]][1]
        given = {n: n * sizes[0] + sizes[1] for n in (100, 1000)} if sizes else {}
        names = ", ".join(published.NAMES[method] for method in methods)
        lines.append([names, *_amounts(published.MEMORY[methods[0]]), words, *_amounts(given)])
    return markdown(["method", "published, 100", "1,000", "inferred from", "gives, 100", "1,000"], lines)


def _amounts(found: Mapping[int, float]) -> list[str]:
    return [size(found[n]) if n in found else NOTHING for n in (100, 1000)]


def markdown(head: Sequence[str], lines: Iterable[Sequence[Content]]) -> str:
    """A table in Markdown."""
    rows = [head, ["---"] * len(head), *(map(_plain, line) for line in lines)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def _plain(content: Content) -> str:
    return content.html if isinstance(content, Cell) else NOTHING if content is None else content
