"""The commands for data sets and experiments: demo, features, cache, bench, methods, tables, report."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress
from rich.table import Table

from engram.cli.app import app, console, print_json
from engram.cli.app import progress as _progress
from engram.cli.options import RESEARCH, AsJson

if TYPE_CHECKING:
    from engram.learner import Progress

PAPER_ROWS = ("mas", "si", "mas-lof", "si-lof")


@app.command(rich_help_panel=RESEARCH)
def demo(
    json_path: Annotated[
        str | None, typer.Option("--json", metavar="PATH", help="Write the numbers as JSON; - is standard output.")
    ] = None,
    plot: Annotated[Path, typer.Option(help="Where to save the picture.")] = Path("engram-demo.png"),
    seed: Annotated[int, typer.Option(help="Class order and initial weights.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Learn handwritten digits, five at first, then five more one by one, and show how much was remembered."""
    from engram.bench.demo import ROWS, demonstrate
    from engram.bench.plots import plot_demonstration

    columns = (TextColumn("{task.description:<10}"), BarColumn(), TimeElapsedColumn())
    with RichProgress(*columns, console=console, disable=not console.is_terminal) as bars:
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
    plot_demonstration(result, plot)
    console.print(f"accuracy over increments: {plot}", highlight=False, markup=False, soft_wrap=True)
    if json_path == "-":
        typer.echo(json.dumps(result.as_json(), indent=2))
    elif json_path is not None:
        Path(json_path).write_text(json.dumps(result.as_json(), indent=2) + "\n")


@app.command(rich_help_panel=RESEARCH)
def features(
    dataset: Annotated[str, typer.Argument(help="cifar100, cub200 or folder.")],
    data: Annotated[Path | None, typer.Option(help="Where the data set lies (default: $ENGRAM_DATA).")] = None,
    backbone: Annotated[str, typer.Option(help="efficientnet_lite0, vgg16, vgg19, resnet50 or timm:NAME.")] = (
        "efficientnet_lite0"
    ),
    weights: Annotated[Path | None, typer.Option(help="Weights file (default: $ENGRAM_WEIGHTS, then a download).")] = (
        None
    ),
    cache: Annotated[Path | None, typer.Option(help="Cache folder (default: $ENGRAM_CACHE).")] = None,
    half: Annotated[bool, typer.Option("--half", help="Keep float16: half the disk space, three digits.")] = False,
    download: Annotated[bool, typer.Option("--download", help="Fetch the data set first if it is not there.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at a picture that cannot be read.")] = False,
    export: Annotated[
        Path | None, typer.Option(help="Also write features and labels to one file, for bench --features elsewhere.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: AsJson = False,
) -> None:
    """Compute the features of a data set once and keep them; a stopped run goes on where it was."""
    from engram import backbones
    from engram.bench.inputs import export_features, load_features
    from engram.datasets import load
    from engram.images import FeatureCache

    store = FeatureCache(cache, dtype="float16" if half else "float32")
    pictures = load(dataset, data, download=download)
    if dataset == "digits":
        raise ValueError("the digits are feature vectors already; choose cifar100, cub200 or folder")
    network = backbones.create(backbone, weights=weights)
    result: dict[str, object] = {"kept_in": str(store.root), "backbone": network.identity}
    for name, split in (("train", pictures.train), ("test", pictures.test)):
        if split is None:
            continue
        with _progress(f"{dataset} {name}") as update:
            stored = store.fill(split.images, network, device=device, strict=strict, progress=update)
        result[name] = {"pictures": len(stored), "features": stored.dim, "skipped": len(stored.skipped)}
        if not as_json:
            typer.echo(f"{dataset} {name}: {len(stored):,} pictures, {stored.dim} features each")
        for skipped, reason in stored.skipped:
            console.print(f"skipped {skipped}: {reason}", highlight=False, markup=False, soft_wrap=True)
        if stored.skipped:
            console.print(f"{len(stored.skipped):,} pictures could not be read and were skipped", highlight=False)
    if export is not None:
        inputs = load_features(dataset, data, backbone=backbone, weights=weights, cache=cache, half=half, device=device)
        export_features(export, dataset, inputs, half=half)
        result["export"] = str(export)
    if as_json:
        print_json(result)
        return
    typer.echo(f"kept in {store.root} as {network.identity}")
    if export is not None:
        typer.echo(f"written to {export}")


cache_app = typer.Typer(help="List or clear the features kept on disk.", invoke_without_command=True)
app.add_typer(cache_app, name="cache", rich_help_panel=RESEARCH)


@cache_app.callback()
def cache_list(
    context: typer.Context,
    cache: Annotated[Path | None, typer.Option(help="Cache folder (default: $ENGRAM_CACHE).")] = None,
    as_json: AsJson = False,
) -> None:
    """List what is kept, per backbone."""
    from engram.images import FeatureCache

    store = FeatureCache(cache)
    context.obj = store
    if context.invoked_subcommand:
        return
    entries = store.entries()
    if as_json:
        rows = [
            {"identity": e.identity, "dtype": e.dtype, "count": e.count, "bytes": e.bytes, "path": str(e.path)}
            for e in entries
        ]
        print_json(rows)
        return
    table = Table(title=f"Features kept in {store.root}")
    for heading in ("backbone", "pictures", "number format", "MB"):
        table.add_column(heading, justify="left" if heading == "backbone" else "right", overflow="fold")
    for entry in entries:
        table.add_row(entry.identity, f"{entry.count:,}", entry.dtype, f"{entry.bytes / 1e6:,.1f}")
    Console().print(table if entries else f"no features are kept in {store.root}")


@cache_app.command("clear")
def cache_clear(
    context: typer.Context,
    identity: Annotated[str | None, typer.Argument(help="Backbone whose features to remove (default: all).")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove features from disk; they can be computed again."""
    store = context.obj
    known = [entry.identity for entry in store.entries()]
    if identity is not None and identity not in known:
        raise ValueError(f"no features of {identity!r} are kept; there are {', '.join(known) or 'none'}")
    if not yes:
        typer.confirm(f"Remove the features of {identity or 'all backbones'} from {store.root}?", abort=True, err=True)
    typer.echo(f"{store.clear(identity) / 1e6:,.1f} MB removed")


@app.command(rich_help_panel=RESEARCH)
def bench(
    dataset: Annotated[str, typer.Argument(help="cifar100, cub200, digits or folder.")],
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Row to run: mas, si, mas-lof, si-lof or one of `engram methods`; may be repeated (default: the four)."
        ),
    ] = None,
    preset: Annotated[list[str] | None, typer.Option(help="Preset to run, by name; may be repeated.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting of every row.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Where the data set lies (default: $ENGRAM_DATA).")] = None,
    backbone: Annotated[str, typer.Option(help="efficientnet_lite0, vgg16, vgg19, resnet50 or timm:NAME.")] = (
        "efficientnet_lite0"
    ),
    weights: Annotated[Path | None, typer.Option(help="Weights file (default: $ENGRAM_WEIGHTS, then a download).")] = (
        None
    ),
    orders: Annotated[int, typer.Option(min=1, help="Class orders, seeded 0, 1, …")] = 3,
    base: Annotated[int | None, typer.Option(help="Classes in the base task (default: half).")] = None,
    step: Annotated[int, typer.Option(min=1, help="Classes in every later task.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for results; a stopped run goes on from there.")] = Path("bench"),
    cache: Annotated[Path | None, typer.Option(help="Feature cache (default: $ENGRAM_CACHE).")] = None,
    features_file: Annotated[
        Path | None, typer.Option("--features", help="File of engram features --export; no pictures are needed.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    tf32: Annotated[bool, typer.Option("--tf32", help="Faster, less exact matrix products on a GPU.")] = False,
    checkpoint_every: Annotated[
        float, typer.Option(help="Seconds between checkpoints; 0 makes one after every task.")
    ] = 0.0,
    as_json: AsJson = False,
) -> None:
    """Run the paper's protocol: half the classes first, then one at a time; write results.json and a report."""
    import torch

    from engram.bench.inputs import import_features, load_features
    from engram.bench.presets import load_preset, preset_for
    from engram.bench.report import write_report
    from engram.bench.runner import Bench, run_bench

    names = list(preset or ()) + [preset_for(dataset, row) for row in method or (() if preset else PAPER_ROWS)]
    presets = [load_preset(name, settings or ()) for name in names]
    if tf32:
        torch.set_float32_matmul_precision("high")
    if features_file is not None:
        features = import_features(features_file, dataset, device)
    else:
        with _progress(f"{dataset} features") as update:
            features = load_features(
                dataset, data, backbone=backbone, weights=weights, cache=cache, device=device, progress=update
            )
    plan = Bench(
        dataset=dataset,
        backbone=features.backbone,
        train=features.train,
        test=features.test,
        out=out,
        base=base or len(set(features.train.y.tolist())) // 2,
        step=step,
        order_seeds=range(orders),
        device=device,
        checkpoint_every=checkpoint_every,
    )
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=console, disable=not console.is_terminal) as bars:
        bar = bars.add_task("offline ideal", total=plan.work(presets))

        def progress(name: str, seed: int, task: int, tasks: int, epoch: Progress | None, done: float) -> None:
            at = f"epoch {epoch.epoch}/{epoch.epochs}" if epoch else "done"
            bars.update(bar, completed=done, description=f"{name} order {seed} task {task + 1}/{tasks} {at}")

        results = run_bench(plan, presets, progress)
    write_report([out / "results.json"], out)
    measured = ("psi_base", "psi_new", "psi_all", "final_accuracy")
    if as_json:
        shown = ("dataset", "backbone", "method", "preset", *measured)
        rows = [{key: record[key] for key in shown} for record in results["records"]]
        print_json({"out": str(out), "records": rows})
        return
    table = Table(title=f"{dataset}, {plan.base} classes first, then {step} at a time; {orders} class orders")
    ideal = results["records"][0]["alpha_ideal"]["accuracy"]
    table.caption = f"α_ideal (offline network on the same features): {ideal:.3f}"
    for heading in ("method", "Ψ_base", "Ψ_new", "Ψ_all", "final accuracy"):
        table.add_column(heading, justify="left" if heading == "method" else "right", no_wrap=True)
    for record in results["records"]:
        parts = [record[part] for part in measured]
        table.add_row(record["method"], *(f"{part['mean']:.3f} ± {part['std']:.3f}" for part in parts))
    Console().print(table)
    typer.echo(f"results and report in {out}")


@app.command(rich_help_panel=RESEARCH)
def methods(as_json: AsJson = False) -> None:
    """List the methods: their papers, what they store of a class, and what they are given beyond the protocol."""
    from engram.methods import METHODS

    if as_json:
        print_json({name: asdict(learner.about) for name, learner in METHODS.items()})
        return
    for name, learner in METHODS.items():
        about = learner.about
        typer.echo(f"{name:<12}{about.title}. {about.paper}")
        kept = f"stores of a class: {about.per_class}; old samples: {'kept' if about.keeps_samples else 'none'}"
        typer.echo(" " * 12 + kept + (f"; is given: {about.given}" if about.given else ""))


@app.command(rich_help_panel=RESEARCH)
def tables(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs, or their results.json.")],
    out: Annotated[Path, typer.Option(help="Folder for tables.md and its pictures.")] = Path("tables"),
    as_json: AsJson = False,
) -> None:
    """Make the paper's Tables 3, 5 and 4 with all methods run and all published, and the pictures beside them."""
    from engram.bench.ledger import write_tables

    text = write_tables([path / "results.json" if path.is_dir() else path for path in runs], out)
    if as_json:
        print_json({"out": str(out), "files": sorted(path.name for path in out.iterdir())})
        return
    typer.echo(text)
    console.print(f"tables and pictures in {out}", highlight=False, markup=False, soft_wrap=True)


@app.command(rich_help_panel=RESEARCH)
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs, or their results.json.")],
    out: Annotated[Path | None, typer.Option(help="Where to write the report (default: the first folder).")] = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the report of a run, or compare several."""
    from engram.bench.report import write_report

    files = [path / "results.json" if path.is_dir() else path for path in runs]
    target = out or files[0].parent
    write_report(files, target)
    page = target / "report.html"
    if as_json:
        print_json({"report": str(page)})
    else:
        typer.echo(f"report in {page}")
