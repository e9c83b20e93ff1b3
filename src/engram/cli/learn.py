"""engram learn: from folders of pictures, one class at a time."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from engram.cli.app import INTERRUPTED, NOTHING, app, console, note
from engram.cli.learn_summary import summarise
from engram.cli.options import (
    MAIN,
    AllowDownload,
    AsJson,
    Backbone,
    DetectionsFile,
    DetectionThreshold,
    Device,
    Folder,
    ImagesFolder,
    MaxPixels,
    Method,
    ModelPath,
    Settings,
    SkipBad,
    Wait,
    open_store,
)
from engram.cli.sources import detected_boxes, listed_pictures, tell_left_out

if TYPE_CHECKING:
    from engram.store import Learned, Step
    from engram.store.learn import Classes

_EXAMPLES = """Examples:

engram learn birds.engram pictures/             # pictures/wren/…, pictures/robin/…: one folder per class

engram learn birds.engram pictures/             # again, after adding pictures/heron/: learns the heron

engram learn birds.engram new/ --more           # new/wren/… holds more pictures of wrens

engram learn birds.engram labels.csv            # lines like garden/1.jpg,wren; paths relative to the file

engram learn birds.engram pictures/ --detections md.json    # from MegaDetector's surest box in each picture"""

BLOCK = 2048  # pictures
_SMALL_BASE = 5  # classes
_DOING = {"look": "looking at pictures", "train": "training"}


@app.command(epilog=_EXAMPLES, rich_help_panel=MAIN)
def learn(
    model: ModelPath,
    folder: Folder,
    more: Annotated[
        bool, typer.Option("--more", help="Also learn from folders of known classes that hold other pictures.")
    ] = False,
    skip_bad: SkipBad = False,
    detections: DetectionsFile = None,
    detection_threshold: DetectionThreshold = None,
    images: ImagesFolder = None,
    keep: Annotated[
        int | None, typer.Option(help="Previous versions to keep beside the model (default: 3, or as before).")
    ] = None,
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
    max_pixels: MaxPixels = None,
    wait: Wait = 60.0,
    device: Device = "auto",
    allow_download: AllowDownload = False,
    as_json: AsJson = False,
) -> None:
    """Learn the classes in a folder or list that MODEL does not know yet.

    A new model is trained on all of them at once, an existing one learns class after class and saves each before it
    begins the next. After an interruption the same command continues with the next class.
    """
    from engram.datasets.folders import scan_classes
    from engram.errors import DataError
    from engram.settings import parse_settings

    if statistics and dask is not None:
        raise ValueError("choose one of --statistics and --dask")
    if detections is not None and (statistics or dask is not None):
        raise ValueError("--detections goes with neither --statistics nor --dask")
    if (min_count > 1 and not statistics) or (block != BLOCK and dask is None):
        raise ValueError("--min-count belongs to --statistics, and --block to --dask")
    if max_pixels is not None and dask is not None:
        raise ValueError("--max-pixels is for pictures that are read here, and --dask reads them elsewhere")
    boxes = detected_boxes(detections, images, detection_threshold)
    classes: Classes
    if folder.is_file():
        classes, left_out = listed_pictures(folder, skip_bad=skip_bad, addresses=dask is not None), []
    else:
        found = scan_classes(folder)
        classes, left_out = found.classes, found.left_out
    if boxes is not None:
        from engram.store import crop_classes

        classes, without = crop_classes(classes, boxes)
        left_out = [*left_out, *without]
    tell_left_out(left_out)
    if not classes:
        raise DataError(f"{folder} holds no folders; expected one folder of pictures per class")
    changed = parse_settings(settings or ())

    from engram.cluster import Cluster
    from engram.store import Plan, learn_classes, write_statistics

    plan = Plan(
        more=more, keep=keep, backbone=backbone, method=method, settings=changed, seed=seed
    )  # fmt: skip
    store = open_store(model, device, wait)
    saved: list[Learned] = []
    try:
        with _showing(saved) as tell:
            if statistics:
                report = write_statistics(store, classes, plan, tell, min_count=min_count)
            else:
                cluster = None if dask is None else Cluster(dask, block)
                report = learn_classes(store, classes, plan, tell, cluster=cluster)
    except KeyboardInterrupt:
        what = f"{len(saved)} classes were learned and saved" if saved else "nothing was changed"
        note(f"interrupted; {what}; the same command goes on from there")
        raise typer.Exit(INTERRUPTED) from None
    summarise(store, report, classes, left_out, as_json)
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
