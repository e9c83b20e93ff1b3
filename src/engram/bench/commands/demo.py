"""The demonstration's second act: the paper's four configurations and fine-tuning, on handwritten digits."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from engram.bench import drawing
from engram.bench.commands.options import note_missing_pictures
from engram.bench.demo import demonstrate
from engram.cli.app import note, progress


def second_act(shown: Console, plot: Path, seed: int, device: str) -> dict[str, Any]:
    """Learn five digits at first, then five more one by one; show how much each configuration remembered."""
    with progress("handwritten digits") as update:
        result = demonstrate(seed=seed, device=device, progress=update)
    found = result.as_json()
    table = Table(
        title="Handwritten digits: 5 classes first, then 5 more, one at a time, without the old data",
        caption=f"α_ideal (offline network, all ten digits at once): {result.alpha_ideal:.3f}",
    )
    for heading in ("method", "Ψ_base", "Ψ_new", "Ψ_all", "seconds"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for row in found["rows"]:
        psi = (f"{row[part]:.3f}" for part in ("psi_base", "psi_new", "psi_all"))
        table.add_row(row["method"], *psi, f"{row['seconds']:.1f}")
    shown.print(table)
    if drawing.can_draw():
        drawing.save_png(result.draw(), plot, "Handwritten digits: five first, then one at a time")
        note(f"accuracy over increments: {plot}")
    note_missing_pictures()
    return found
