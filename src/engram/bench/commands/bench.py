"""The commands of the laboratory: `bench`, and `tables` and `report` of its results."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.table import Table

from engram.bench.commands.options import Source, expand, note_missing_pictures
from engram.cli.app import app, console, note, print_json, progress
from engram.cli.options import RESEARCH, AsJson

if TYPE_CHECKING:
    from engram.bench.inputs import Inputs
    from engram.bench.presets import Preset
    from engram.bench.runner import Bench
    from engram.learners.base import Progress

Runs = Annotated[list[Path], typer.Argument(help="Folders of finished runs, or their results.json.")]
PAPER_ROWS = ("mas", "si", "mas-lof", "si-lof")


@dataclass(frozen=True)
class Rows:
    """What to run."""

    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Row to run: mas, si, mas-lof, si-lof or one of `engram methods`; may be repeated (default: the four)."
        ),
    ] = None
    preset: Annotated[list[str] | None, typer.Option(help="Preset to run, by name; may be repeated.")] = None
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of every row.")
    ] = None

    def load(self, dataset: str) -> list[Preset]:
        """The presets, changed as wanted."""
        from engram.bench.presets import load_preset, preset_for

        rows = self.method or (() if self.preset else PAPER_ROWS)
        names = [*(self.preset or ()), *(preset_for(dataset, row) for row in rows)]
        return [load_preset(name, self.settings or ()) for name in names]


@dataclass(frozen=True)
class Protocol:
    """How the classes arrive, and how it is run."""

    orders: Annotated[int, typer.Option(min=1, help="Class orders, seeded 0, 1, …")] = 3
    seeds: Annotated[int, typer.Option(min=1, help="Initialisations of the network for every class order.")] = 1
    base: Annotated[int | None, typer.Option(help="Classes in the base task (default: half).")] = None
    step: Annotated[int, typer.Option(min=1, help="Classes in every later task.")] = 1
    tf32: Annotated[bool, typer.Option("--tf32", help="Faster, less exact matrix products on a GPU.")] = False
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between checkpoints; 0 makes one after every task.")
    ] = 0.0


@app.command(rich_help_panel=RESEARCH)
@expand
def bench(
    source: Source,
    rows: Rows,
    protocol: Protocol,
    features: Annotated[Path | None, typer.Option(help="File of engram features --export; no images are needed.")] = (
        None
    ),
    out: Annotated[Path, typer.Option(help="Folder for results; a stopped run goes on from there.")] = Path("bench"),
    as_json: AsJson = False,
) -> None:
    """Run the paper's protocol: half the classes first, then one at a time; write results.json and a report."""
    import torch

    from engram.bench.report import write_report
    from engram.bench.runner import Bench
    from engram.bench.torchrun import joined_processes

    presets = rows.load(source.dataset)
    if protocol.tf32:
        torch.set_float32_matmul_precision("high")
    with joined_processes() as first:
        console.quiet = console.quiet or not first
        inputs = _read_features(source, features)
        plan = Bench(
            dataset=source.dataset,
            backbone=inputs.backbone,
            train=inputs.train,
            test=inputs.test,
            out=out,
            base=protocol.base or len(set(inputs.train.y.tolist())) // 2,
            step=protocol.step,
            order_seeds=range(protocol.orders),
            initialisations=protocol.seeds,
            device=source.device,
            checkpoint_every=protocol.checkpoint_every,
        )
        records = _run(plan, presets)["records"]
    if not first:
        return
    write_report([out / "results.json"], out)
    note_missing_pictures()
    measured = ("psi_base", "psi_new", "psi_all", "final_accuracy")
    if as_json:
        shown = ("dataset", "backbone", "method", "preset", *measured)
        print_json({"out": str(out), "records": [{key: record[key] for key in shown} for record in records]})
        return
    table = Table(
        title=f"{plan.dataset}, {plan.base} classes first, then {plan.step} at a time; {protocol.orders} class orders",
        caption=f"α_ideal (offline network on the same features): {records[0]['alpha_ideal']['accuracy']:.3f}",
    )
    for heading in ("method", "Ψ_base", "Ψ_new", "Ψ_all", "final accuracy"):
        table.add_column(heading, justify="left" if heading == "method" else "right", no_wrap=True)
    for record in records:
        values = (record[part] for part in measured)
        table.add_row(record["method"], *(f"{value['mean']:.3f} ± {value['std']:.3f}" for value in values))
    Console().print(table)
    typer.echo(f"results and report in {out}")


def _read_features(source: Source, exported: Path | None) -> Inputs:
    from engram.bench.inputs import import_features

    if exported is not None:
        return import_features(exported, source.dataset, source.device)
    with progress(f"{source.dataset} features") as update:
        return source.load(progress=update)


def _run(plan: Bench, presets: list[Preset]) -> dict[str, Any]:
    """Run it, with a bar that shows what is done of all the work."""
    from engram.bench.runner import run_bench

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    left = (TextColumn("left"), TimeRemainingColumn())
    with Bars(*columns, *left, console=console, disable=not console.is_terminal) as bars:
        bar = bars.add_task("offline ideal", total=plan.work(presets))

        def show(name: str, seed: int, task: int, tasks: int, epoch: Progress | None, done: float) -> None:
            at = f"epoch {epoch.epoch}/{epoch.epochs}" if epoch else "done"
            bars.update(bar, completed=done, description=f"{name} order {seed} task {task + 1}/{tasks} {at}")

        return run_bench(plan, presets, show)


@app.command(rich_help_panel=RESEARCH)
def tables(
    runs: Runs,
    out: Annotated[Path, typer.Option(help="Folder for tables.md and its figures.")] = Path("tables"),
    as_json: AsJson = False,
) -> None:
    """Make the paper's Tables 3, 5 and 4 with all methods run and all published, and the figures beside them."""
    from engram.bench.drawing import can_draw
    from engram.bench.tables import write_tables

    text = write_tables(runs, out)
    note_missing_pictures()
    if as_json:
        print_json({"out": str(out), "files": sorted(path.name for path in out.iterdir())})
        return
    typer.echo(text)
    note(f"tables{' and figures' if can_draw() else ''} in {out}")


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
    note_missing_pictures()
    page = target / "report.html"
    if as_json:
        print_json({"report": str(page)})
    else:
        typer.echo(f"report in {page}")
