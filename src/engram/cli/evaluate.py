"""engram evaluate: how often the model is right."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from engram.cli.app import NOTHING, app, cell, complain, note, print_json, printable, progress
from engram.cli.options import (
    MAIN,
    AllowDownload,
    AsJson,
    DetectionsFile,
    DetectionThreshold,
    Device,
    ExistingModel,
    Folder,
    ImagesFolder,
    MaxPixels,
    SkipBad,
    open_store,
    percent,
)
from engram.cli.sources import detected_boxes, listed_pictures, tell_left_out

if TYPE_CHECKING:
    from engram.store.learn import Classes

_LISTED = 20  # pictures
_EXAMPLES = """Examples:

engram evaluate birds.engram test/

engram evaluate birds.engram test.csv                          # lines like garden/1.jpg,wren

engram evaluate birds.engram test/ --json > birds.json"""


@app.command(epilog=_EXAMPLES, rich_help_panel=MAIN)
def evaluate(
    model: ExistingModel,
    folder: Folder,
    skip_bad: SkipBad = False,
    detections: DetectionsFile = None,
    detection_threshold: DetectionThreshold = None,
    images: ImagesFolder = None,
    max_pixels: MaxPixels = None,
    device: Device = "auto",
    allow_download: AllowDownload = False,
    as_json: AsJson = False,
) -> None:
    """Count how often the model is right, class by class, and list the pictures that it takes for something else.

    Judge with pictures the model has not learned from.
    """
    boxes = detected_boxes(detections, images, detection_threshold)
    classes = _pictures(folder, skip_bad)

    from engram.images.decode import source_name
    from engram.store import crop_classes, evaluate_images

    if boxes is not None:
        classes, without = crop_classes(classes, boxes)
        tell_left_out(without)
    labelled = [(picture, name) for name, pictures in classes.items() for picture in pictures]
    pictures, labels = [picture for picture, _ in labelled], [name for _, name in labelled]
    loaded = open_store(model, device).read()
    with progress("evaluate") as update:
        result = evaluate_images(loaded, pictures, labels, device=device, progress=update)
    for one in result.unreadable:
        complain(f"cannot read {one.name}: {one.reason}")
    if not result.pictures:
        note(f"no picture in {folder} could be read")
        raise typer.Exit(NOTHING)
    if as_json:
        print_json(result.as_json())
    else:
        table = Table(title=f"{result.accuracy:.1%} of {result.pictures:,} pictures right")
        for heading in ("class", "pictures", "right", "most often taken for"):
            table.add_column(heading, justify="right" if heading in ("pictures", "right") else "left", overflow="fold")
        for name, total, right, other in result.per_class():
            known = " (not known to the model)" if name in result.strange else ""
            table.add_row(cell(name + known), f"{total:,}", f"{right / total:.1%}", cell(other))
        Console().print(table)
        for wrong in sorted(result.wrong, key=lambda mistake: -mistake.probability)[:_LISTED]:
            taken = f"{wrong.truth}, taken for {wrong.answer} ({percent(wrong.probability)})"
            typer.echo(printable(f"{source_name(wrong.image)}: {taken}"))
        if len(result.wrong) > _LISTED:
            note(f"the {_LISTED} surest of {len(result.wrong):,} that were taken for something else; --json has all")


def _pictures(folder: Path, skip_bad: bool) -> "Classes":
    """The pictures of each class."""
    from engram.datasets.dataset import image_folder

    if folder.is_file():
        return listed_pictures(folder, skip_bad=skip_bad)
    data = image_folder(folder)
    split = data.test or data.train
    tell_left_out(split.left_out)
    classes: dict[str, list[Path]] = {}
    for path, name in zip(split.images, split.labels, strict=True):
        classes.setdefault(name, []).append(Path(path))
    return classes
