"""The `engram` command: thin, calls the rest."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import engram

app = typer.Typer(
    help="Teach an image classifier new classes one at a time; keep one mean vector per class and no old pictures.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
# People look at stderr; stdout is for what the next program reads.
console = Console(stderr=True)


def main() -> None:
    """Run the command; an expected error is one line that says what to do, and exit code 2."""
    try:
        app()
    except (ValueError, engram.ModelFileError, OSError) as error:
        console.print(f"[bold red]error:[/] {error}", highlight=False)
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(engram.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    json_path: Annotated[
        str | None, typer.Option("--json", metavar="PATH", help="Write the numbers as JSON; - is standard output.")
    ] = None,
    plot: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("engram-demo.png"),
    seed: Annotated[int, typer.Option(help="Class order and initial weights.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Learn handwritten digits, five at first, then five more one by one, and show how much was remembered."""
    from engram.benchmark.demo import CONFIGURATIONS, demonstrate
    from engram.benchmark.plots import plot_demonstration

    columns = (TextColumn("{task.description:<10}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks = {name: bars.add_task(name, total=1.0, start=False) for name in (*CONFIGURATIONS, "offline")}

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
    plot_demonstration(result, plot)
    console.print(f"accuracy over increments: {plot}", highlight=False)
    if json_path == "-":
        typer.echo(json.dumps(result.as_json(), indent=2))
    elif json_path is not None:
        Path(json_path).write_text(json.dumps(result.as_json(), indent=2) + "\n")
