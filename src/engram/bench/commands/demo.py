"""The command `demo`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from engram.bench.commands.options import note_missing_pictures
from engram.cli.app import app, console, note, print_json, progress
from engram.cli.options import RESEARCH, Device


@app.command(rich_help_panel=RESEARCH)
def demo(
    json_path: Annotated[
        str | None, typer.Option("--json", metavar="PATH", help="Write the numbers as JSON; - is standard output.")
    ] = None,
    plot: Annotated[Path, typer.Option(help="Where to save the figure.")] = Path("engram-demo.png"),
    seed: Annotated[int, typer.Option(help="Class order and initial weights.")] = 0,
    device: Device = "auto",
) -> None:
    """Learn handwritten digits, five at first, then five more one by one, and show how much was remembered."""
    from engram.bench.demo import demonstrate
    from engram.bench.drawing import can_draw, save_png

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
    (console if json_path == "-" else Console()).print(table)
    if can_draw():
        save_png(result.draw(), plot, "Handwritten digits: five first, then one at a time")
        note(f"accuracy over increments: {plot}")
    note_missing_pictures()
    if json_path == "-":
        print_json(found)
    elif json_path is not None:
        Path(json_path).write_text(json.dumps(found, indent=2, allow_nan=False) + "\n")
