"""The commands that show results: `tables` and `report`."""

from pathlib import Path
from typing import Annotated

import typer

from engram.cli.app import app, note, print_json
from engram.cli.options import RESEARCH, AsJson

Runs = Annotated[list[Path], typer.Argument(help="Folders of finished runs, or their results.json.")]


@app.command(rich_help_panel=RESEARCH)
def tables(
    runs: Runs,
    out: Annotated[Path, typer.Option(help="Folder for tables.md and its figures.")] = Path("tables"),
    as_json: AsJson = False,
) -> None:
    """Make the paper's Tables 3, 5 and 4 with all methods run and all published, and the figures beside them."""
    from engram.bench.tables import write_tables

    text = write_tables(runs, out)
    if as_json:
        print_json({"out": str(out), "files": sorted(path.name for path in out.iterdir())})
        return
    typer.echo(text)
    note(f"tables and figures in {out}")


@app.command(rich_help_panel=RESEARCH)
def report(
    runs: Runs,
    out: Annotated[Path | None, typer.Option(help="Where to write the report (default: the first folder).")] = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the report of a run, or compare several."""
    from engram.bench.report import write_report

    target = out or (runs[0] if runs[0].is_dir() else runs[0].parent)
    write_report(runs, target)
    page = target / "report.html"
    if as_json:
        print_json({"report": str(page)})
    else:
        typer.echo(f"report in {page}")
