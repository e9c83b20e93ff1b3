"""The command `demo`."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.table import Table

from engram.cli.app import app, console, note
from engram.cli.options import RESEARCH, Device


@app.command(rich_help_panel=RESEARCH)
def demo(
    json_path: Annotated[
        str | None, typer.Option("--json", metavar="PATH", help="Write the numbers as JSON; - is standard output.")
    ] = None,
    plot: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("engram-demo.png"),
    seed: Annotated[int, typer.Option(help="Class order and initial weights.")] = 0,
    device: Device = "auto",
) -> None:
    """Learn handwritten digits, five at first, then five more one by one, and show how much was remembered."""
    from engram.bench.demo import ROWS, demonstrate, draw
    from engram.bench.drawing import save_png

    columns = (TextColumn("{task.description:<10}"), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks = {name: bars.add_task(name, total=1.0, start=False) for name in (*ROWS, "offline")}

        def progress(name: str, fraction: float) -> None:
            bars.start_task(tasks[name])
            bars.update(tasks[name], completed=fraction)

        result = demonstrate(seed=seed, device=device, progress=progress)

    table = Table(
        title="Handwritten digits: 5 classes first, then 5 more, one at a time, without the old data",
        caption=f"α_ideal (offline network, all ten digits at once): {result.alpha_ideal:.3f}",
    )
    for heading in ("method", "Ψ_base", "Ψ_new", "Ψ_all", "seconds"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for row in result.rows:
        psi = row.psi
        table.add_row(row.method, f"{psi.base:.3f}", f"{psi.new:.3f}", f"{psi.all:.3f}", f"{row.seconds:.1f}")
    (console if json_path == "-" else Console()).print(table)
    save_png(draw(result), plot, "Handwritten digits, learned one after another")
    note(f"accuracy over increments: {plot}")
    if json_path == "-":
        typer.echo(json.dumps(result.as_json(), indent=2))
    elif json_path is not None:
        Path(json_path).write_text(json.dumps(result.as_json(), indent=2) + "\n")
