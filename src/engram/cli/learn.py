"""engram learn: from folders of pictures, one class at a time."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from engram.cli.app import INTERRUPTED, NOTHING, app, complain, console, note, print_json
from engram.cli.listed import listed_pictures
from engram.cli.options import (
    MAIN,
    AsJson,
    Backbone,
    Device,
    Folder,
    Method,
    ModelPath,
    Settings,
    SkipBad,
    Wait,
    megabytes,
    open_store,
    percent,
)

if TYPE_CHECKING:
    from engram.store import Learned, ModelStore, Report, Step
    from engram.store.learn import Classes

_EXAMPLES = """Examples:

engram learn birds.engram pictures/             # pictures/wren/…, pictures/robin/…: one folder per class

engram learn birds.engram pictures/             # again, after adding pictures/heron/: learns the heron

engram learn birds.engram new/ --more           # new/wren/… holds more pictures of wrens

engram learn birds.engram labels.csv            # lines like garden/1.jpg,wren; paths relative to the file

engram learn birds.engram incoming/ --watch     # learns whatever folder appears, until Ctrl-C"""

BLOCK = 2048  # pictures
_SMALL_BASE = 5  # classes
_MISFITS = 10  # shown
_DOING = {"look": "looking at pictures", "train": "training", "check": "checking"}


@app.command(epilog=_EXAMPLES, rich_help_panel=MAIN)
def learn(
    model: ModelPath,
    folder: Folder,
    more: Annotated[
        bool, typer.Option("--more", help="Also learn from folders of known classes that hold other pictures.")
    ] = False,
    holdout: Annotated[
        float,
        typer.Option(help="Share of each class held back, to show what is right before and after; 0 learns from all."),
    ] = 0.1,
    skip_bad: SkipBad = False,
    watch: Annotated[bool, typer.Option("--watch", help="Keep learning as folders appear.")] = False,
    keep: Annotated[
        int | None, typer.Option(help="Previous versions to keep beside the model (default: 3, or as before).")
    ] = None,
    keep_examples: Annotated[
        bool,
        typer.Option(
            "--keep-examples",
            help="For a new model: keep the numbers of up to 20 held-back pictures of a class in the file, "
            "so that earlier classes can be checked again.",
        ),
    ] = False,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Write counts, means and scatter alone, into a new file, to be merged.")
    ] = False,
    min_count: Annotated[
        int, typer.Option(min=1, help="With --statistics: leave out classes that have fewer pictures.")
    ] = 1,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS|local[:N]",
            help="Learn on the workers of a Dask scheduler, or N processes here. A LIST may hold addresses then.",
        ),
    ] = None,
    block: Annotated[int, typer.Option(min=1, help="With --dask: how many pictures a worker takes at a time.")] = BLOCK,
    backbone: Backbone = None,
    method: Method = None,
    settings: Settings = None,
    seed: Annotated[int, typer.Option(help="For a new model: its initial weights.")] = 0,
    wait: Wait = 60.0,
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Learn the classes in a folder or list that MODEL does not know yet.

    A new model is trained on all of them at once, an existing one learns class after class and saves each before it
    begins the next. After an interruption the same command continues with the next class.
    """
    from engram.datasets import DataError, class_folders
    from engram.settings import parse_settings

    if sum((watch, statistics, dask is not None)) > 1:
        raise ValueError("choose one of --watch, --statistics and --dask")
    if (min_count > 1 and not statistics) or (block != BLOCK and dask is None):
        raise ValueError("--min-count belongs to --statistics, and --block to --dask")
    if watch and folder.is_file():
        raise ValueError(f"--watch takes a folder, and {folder} is a list")
    classes: Classes = (
        listed_pictures(folder, skip_bad=skip_bad, addresses=dask is not None)
        if folder.is_file()
        else class_folders(folder)
    )
    if not (classes or watch):
        raise DataError(f"{folder} holds no folders; expected one folder of pictures per class")
    changed = parse_settings(settings or ())

    from engram.store import Plan, learn_classes, learn_on_cluster, watch_folder, write_statistics

    plan = Plan(
        more=more, holdout=holdout, keep=keep, keep_examples=keep_examples,
        backbone=backbone, method=method, settings=changed, seed=seed,
    )  # fmt: skip
    store = open_store(model, device, wait)
    saved: list[Learned] = []
    try:
        with _showing(saved) as tell:
            if watch:
                note(f"watching {folder}; Ctrl-C ends it")
                for report in watch_folder(store, folder, plan, tell):
                    _summarise(store, report, as_json)
            if statistics:
                report = write_statistics(store, classes, plan, tell, min_count=min_count)
            elif dask is not None:
                report = learn_on_cluster(store, classes, plan, dask, tell, block=block)
            else:
                report = learn_classes(store, classes, plan, tell)
    except KeyboardInterrupt:
        if watch:
            return
        what = f"{len(saved)} classes were learned and saved" if saved else "nothing was changed"
        note(f"interrupted; {what}; the same command goes on from there")
        raise typer.Exit(INTERRUPTED) from None
    _summarise(store, report, as_json)
    if not report.learned:
        raise typer.Exit(NOTHING)


@contextlib.contextmanager
def _showing(saved: "list[Learned]") -> "Iterator[Callable[[Step], None]]":
    """Show a bar for the class being learned, and print a line for each class once it is saved."""
    time_left = (TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *time_left)
    hidden = not console.is_terminal
    with RichProgress(*columns, console=console, transient=True, disable=hidden, redirect_stdout=False) as bars:
        task = bars.add_task("", total=None, visible=False)
        trained = False

        def tell(step: "Step") -> None:
            nonlocal trained
            trained = trained or step.stage == "train"
            if step.stage != "saved":
                text = f"{step.name}: {_DOING[step.stage]}"
                bars.update(task, completed=step.done, total=step.total, description=text, visible=True)
                return
            bars.reset(task, visible=False)
            saved.extend(step.learned)
            pictures, seconds = sum(one.pictures for one in step.learned), step.learned[0].seconds
            if step.learned[0].increment:
                note(f"{step.done}/{step.total} {step.name}: learned from {pictures:,} pictures in {seconds:.1f} s")
            else:
                note(f"base: {len(step.learned)} classes learned from {pictures:,} pictures in {seconds:.1f} s")
                if trained and len(step.learned) < _SMALL_BASE:  # a method that only counts and averages has no base
                    note("a small base: the network learns from it what makes classes differ; more classes are better")

        yield tell


def _summarise(store: "ModelStore", report: "Report", as_json: bool) -> None:
    classes, size = len(report.names), store.path.stat().st_size
    if as_json:
        print_json(_as_json(report, classes, size))
    for path, reason in report.unreadable:
        complain(f"passed over {path}: {reason}")
    for name, reason in report.skipped:
        complain(f"not learned: {name}: {reason}")
    if report.changed:
        note(f"known, but with other pictures than were learned (--more takes them): {', '.join(report.changed)}")
    if not report.learned:
        note(f"nothing new to learn; {store.path} knows {classes} classes")
        return
    note(
        f"{store.path} knows {classes} classes, {len(report.learned)} of them new; "
        f"{report.seconds:.1f} s, {megabytes(size)}"
    )
    for what, check in (("new classes", report.check_new), ("classes known before", report.check_known)):
        if check.accuracy is not None:
            note(f"check on {check.pictures} pictures held back, {what}: {check.accuracy:.1%} right")
    if report.workers_lost:
        note(f"{report.workers_lost} workers were lost; {report.blocks_retried} blocks of pictures were done again")
    for one in report.misfits[:_MISFITS]:
        share = percent(one.probability)
        note(f"look again: {one.picture} was taught as {one.name} and looks like {one.answer} ({share})")
    if len(report.misfits) > _MISFITS:
        note(f"look again: {len(report.misfits) - _MISFITS} more, less sure; --json lists them all")


def _as_json(report: "Report", classes: int, size: int) -> dict[str, Any]:
    checks = {"new": report.check_new, "known": report.check_known}
    return {
        "learned": [vars(one) for one in report.learned],
        "known": report.known,
        "changed": report.changed,
        "skipped": [{"name": name, "reason": reason} for name, reason in report.skipped],
        "unreadable": [{"path": path, "reason": reason} for path, reason in report.unreadable],
        "misfits": [vars(one) for one in report.misfits],
        "check": {
            what: {"pictures": check.pictures, "right": check.right, "accuracy": check.accuracy}
            for what, check in checks.items()
        },
        "classes": classes,
        "bytes": size,
        "seconds": round(report.seconds, 2),
        "workers_lost": report.workers_lost,
        "blocks_retried": report.blocks_retried,
    }
