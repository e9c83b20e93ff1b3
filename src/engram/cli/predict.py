"""engram predict: what the model says to pictures."""

import csv
import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from engram.cli.answers import Among, Sure, Taxonomy, answer_line, choose_classes, choose_names, require_taxonomy
from engram.cli.app import BAD_INPUT, NOTHING, app, complain, note, print_json, printable, progress
from engram.cli.options import (
    MAIN,
    AllowDownload,
    AsJson,
    DetectionsFile,
    DetectionThreshold,
    Device,
    ExistingModel,
    ImagesFolder,
    MaxPixels,
    open_store,
)
from engram.cli.sources import detected_boxes, tell_left_out

if TYPE_CHECKING:
    from engram.store import Answer, Unreadable

_EXAMPLES = """Examples:

engram predict birds.engram garden.jpg

engram predict birds.engram card/DCIM/ --top 1 --csv birds.csv

find . -name '*.jpg' | engram predict birds.engram --list - --json

engram predict birds.engram card/DCIM/ --taxonomy families.csv      # lines like wren,Troglodytidae,songbird

engram predict birds.engram feeder.mp4 --every 1 --csv feeder.csv   # needs pip install 'engram-learn\\[video]'

engram predict birds.engram card/DCIM/ --among wren,robin,heron     # or --among names.txt, one name a line

engram predict birds.engram --detections md.json --out named.json   # MegaDetector's boxes, named

curl -s https://example.org/bird.jpg | engram predict birds.engram - --unknown auto"""


@app.command(epilog=_EXAMPLES, rich_help_panel=MAIN)
def predict(
    model: ExistingModel,
    pictures: Annotated[
        list[str] | None,
        typer.Argument(metavar="[IMAGE|FOLDER]...", help="Pictures, folders of them, or - for one on standard input."),
    ] = None,
    listed: Annotated[
        Path | None, typer.Option("--list", metavar="FILE", help="Read paths, one a line; - is standard input.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many classes to name.")] = 3,
    unknown: Annotated[
        str | None,
        typer.Option(
            metavar="auto|NUMBER",
            help="Answer unknown where a picture looks like no known class; auto refuses about 5 % of the known ones "
            "too. NUMBER is another such share, like 0.02. Methods that are not calibrated cannot tell.",
        ),
    ] = None,
    among: Among = None,
    taxonomy: Taxonomy = None,
    sure: Sure = None,
    every: Annotated[
        float | None,
        typer.Option(min=0.01, help="Of films and streams, answer a frame every so many seconds.", show_default=False),
    ] = None,
    detections: DetectionsFile = None,
    detection_threshold: DetectionThreshold = None,
    images: ImagesFolder = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --detections: write them here, with what each box shows."),
    ] = None,
    max_pixels: MaxPixels = None,
    device: Device = "auto",
    allow_download: AllowDownload = False,
    as_json: AsJson = False,
    as_csv: Annotated[
        bool,
        typer.Option(
            "--csv", help="Write a table as CSV, to the argument that ends in .csv or, without one, to standard output."
        ),
    ] = False,
) -> None:
    """Say what pictures show.

    Behind each class is how likely it is. Pictures that cannot be read are named on standard error, the others are
    answered, and the exit code is 2.
    """
    if as_json and as_csv:
        raise ValueError("choose one of --json and --csv")
    require_taxonomy(taxonomy, sure)
    names = pictures or []
    tables = [name for name in names if as_csv and name.lower().endswith(".csv")]  # what it is called is no picture
    if len(tables) > 1:
        raise ValueError(f"--csv writes one table, not {' and '.join(tables)}")
    boxes = detected_boxes(detections, images, detection_threshold)
    if boxes is None and out is not None:
        raise ValueError("--out belongs to --detections; for a table there is --csv")
    sources = _sources([name for name in names if name not in tables], listed, films=every is not None)
    if boxes is not None:
        if sources:
            raise ValueError("--detections names the pictures itself; choose one of the two")
        from engram.store import crops

        sources = [*crops(boxes)]
    if not (sources or out):
        note("no pictures found" if boxes is None else f"no box reaches {boxes.threshold:g}")
        raise typer.Exit(NOTHING)
    if missing := [one for one in sources if isinstance(one, str) and "://" not in one and not os.path.exists(one)]:
        for name in missing:
            complain(f"cannot read {name}: No such file or directory")
        if len(missing) == len(sources):
            raise typer.Exit(BAD_INPUT)
        sources = [one for one in sources if one not in missing]

    from engram.datasets.folders import is_film
    from engram.store.predict import Answer, predict_images, unknown_threshold  # slow, and not for a wrong path

    has_films = any(map(is_film, sources))
    if has_films and every is None:
        raise ValueError("of a film or stream, frames are answered: say how often, like --every 1 for one a second")
    loaded = open_store(model, device).read()
    threshold = unknown_threshold(loaded, unknown)
    chosen = None if among is None else choose_classes([*loaded.names, *loaded.built_in], among)
    parents, likely = choose_names(taxonomy, sure)
    wanted: dict[str, Any] = {"top": top, "unknown": threshold, "among": chosen, "taxonomy": parents, "sure": likely}
    unreadable = len(missing)
    named: list[Answer] = []

    def asked() -> "Iterator[Answer | Unreadable]":
        for films, some in groupby(sources, is_film):
            if films:
                from engram.store import predict_film

                for film in some:
                    yield from predict_film(loaded, str(film), every=every or 1.0, device=device, **wanted)
            else:
                yield from predict_images(loaded, list(some), device=device, **wanted)

    def answered() -> Iterator[Answer]:
        nonlocal unreadable
        # On a terminal the answers themselves are the progress.
        with progress("predict", shown=as_json or not sys.stdout.isatty()) as update:
            for done, one in enumerate(asked(), 1):
                update(done, max(done, len(sources)))
                if isinstance(one, Answer):
                    if out is not None:
                        named.append(one)
                    yield one
                else:
                    unreadable += 1
                    complain(f"cannot read {one.name}: {one.reason}")

    if as_json:
        print_json([answer.as_json() for answer in answered()])
    elif as_csv:
        ranks = min(top, len(chosen or [*loaded.names, *loaded.built_in]))
        with _open_table(tables[0]) if tables else nullcontext(sys.stdout) as file:
            more = ["label_probability"] if parents else []
            _write_csv(file, answered(), ranks, [*more, "seconds"] if has_films else more, boxes=boxes is not None)
    else:
        for answer in answered():
            typer.echo(printable(answer_line(answer)))
    if boxes is not None and out is not None:
        from engram.store import add_classifications, write_detections

        classes = chosen or [*loaded.names, *loaded.built_in]
        content = add_classifications(boxes, named, classifier=model.name, names=classes, taxonomy=parents)
        try:
            write_detections(out, content)
        except OSError as error:
            raise ValueError(f"cannot write {out}: {error.strerror}") from error
        note(f"{len(named):,} of {len(boxes.boxes):,} boxes of animals were answered: {out}")
    if unreadable:
        raise typer.Exit(BAD_INPUT)


class _StandardInput(io.BytesIO):
    """The picture on standard input, under a name for people."""

    name = "-"


def _sources(pictures: Sequence[str], listed: Path | None, films: bool) -> list[Any]:
    """The images to answer: paths, and for `-` the content of standard input. With `films`, also those in folders."""
    from engram.datasets.folders import is_film, scan_pictures

    names = list(pictures)
    if listed is not None:
        text = sys.stdin.read() if str(listed) == "-" else listed.read_text()
        names += [line for line in text.splitlines() if line.strip()]
    sources: list[str | Path | _StandardInput] = []
    for name in names:
        if name == "-":
            sources.append(_StandardInput(sys.stdin.buffer.read()))
        elif os.path.isdir(name):
            found, left_out = scan_pictures(Path(name))
            seen = [one.path for one in left_out if films and is_film(one.path)]
            tell_left_out(one for one in left_out if one.path not in seen)
            sources += sorted(found + seen)
        else:
            sources.append(name)
    return sources


def _open_table(path: str) -> TextIO:
    try:
        return open(path, "w", newline="", encoding="utf-8")
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from error


def _write_csv(file: TextIO, answers: "Iterator[Answer]", top: int, more: list[str], *, boxes: bool) -> None:
    writer = csv.writer(file, lineterminator="\n")
    ranks = [f"{column}_{rank}" for rank in range(1, top + 1) for column in ("label", "similarity", "probability")]
    sides = ["x_min", "y_min", "width", "height"] if boxes else []
    writer.writerow(["path", "label", "similarity", "probability", *ranks, *more, *sides])
    for answer in answers:
        ranked = [value for one in answer.top for value in one]
        others = [*(getattr(answer, column) for column in more), *(answer.box or ())]
        writer.writerow([answer.path, answer.label, answer.similarity, answer.probability, *ranked, *others])
