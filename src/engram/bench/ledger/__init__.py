"""The paper's Tables 3, 5 and 4 with all rows, ours and theirs, and what a further class costs each method."""

from collections.abc import Sequence
from pathlib import Path

from engram.bench.drawing import save_png
from engram.bench.ledger.entries import entries_of
from engram.bench.ledger.pictures import costs, psi
from engram.bench.ledger.tables import cost_table, memory_table, protocol, psi_table
from engram.bench.results import DATASETS, Json, group, load

PSI_TABLES = {"cifar100": "Table 3", "cub200": "Table 5"}


def write_tables(results: Sequence[Path | str | Json], out: Path | str, note: str = "") -> str:
    """Write `tables.md` and its pictures to the folder `out`; return the text. `note` stands below the costs."""
    rows = [row for found in group(load(results)) for row in found.rows]
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for dataset in dict.fromkeys(row.record["dataset"] for row in rows):
        entries = entries_of(dataset, [row for row in rows if row.record["dataset"] == dataset])
        name = DATASETS.get(dataset, dataset)
        title = f"{PSI_TABLES[dataset]}: {name}" if dataset in PSI_TABLES else name
        parts += [
            f"## {title}",
            protocol(entries),
            psi_table(dataset, entries),
            f"![Ψ of every method](psi-{dataset}.png)",
        ]
        save_png(psi(dataset, entries), folder / f"psi-{dataset}.png", title)
        parts += [f"### What a further class costs, {name}", cost_table(entries), *([note] if note else [])]
        parts.append(f"![Bytes kept and seconds per increment](costs-{dataset}.png)")
        save_png(costs(entries), folder / f"costs-{dataset}.png", f"{name}: what a further class costs")
    parts += ["## Table 4: memory beside the network that answers", memory_table(rows)]
    text = "\n\n".join(parts) + "\n"
    (folder / "tables.md").write_text(text, encoding="utf-8")
    return text
