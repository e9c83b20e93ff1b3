"""engram predict: what the model says to pictures."""

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

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
    percent,
)
from engram.cli.sources import detected_boxes, tell_left_out

if TYPE_CHECKING:
    from engram.store import Answer, Model

_EXAMPLES = """Examples:

engram predict birds.engram garden.jpg

engram predict birds.engram card/DCIM/ --top 1 --csv birds.csv

find . -name '*.jpg' | engram predict birds.engram --list - --json

engram predict birds.engram card/DCIM/ --taxonomy families.csv      # lines like wren,Troglodytidae,songbird

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
            "too. NUMBER is another such share, like 0.02; for methods without a rule of their own, a similarity.",
        ),
    ] = None,
    among: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|NAME,NAME…", help="Answer with these classes only: a file of names, one a line, or a list."
        ),
    ] = None,
    taxonomy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A CSV of class,parent,grandparent,…: where no class is likely enough, answer with what is above.",
        ),
    ] = None,
    sure: Annotated[
        float | None,
        typer.Option(help="With --taxonomy: how likely an answer has to be.", show_default="0.8"),
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
    if sure is not None and taxonomy is None:
        raise ValueError("--sure belongs to --taxonomy")
    names = pictures or []
    tables = [name for name in names if as_csv and name.lower().endswith(".csv")]  # what it is called is no picture
    if len(tables) > 1:
        raise ValueError(f"--csv writes one table, not {' and '.join(tables)}")
    boxes = detected_boxes(detections, images, detection_threshold)
    if boxes is None and out is not None:
        raise ValueError("--out belongs to --detections; for a table there is --csv")
    sources = _sources([name for name in names if name not in tables], listed)
    if boxes is not None:
        if sources:
            raise ValueError("--detections names the pictures itself; choose one of the two")
        from engram.store import crops

        sources = [*crops(boxes)]
    if not (sources or out):
        note("no pictures found" if boxes is None else f"no box reaches {boxes.threshold:g}")
        raise typer.Exit(NOTHING)
    if missing := [one for one in sources if isinstance(one, str) and not Path(one).exists()]:
        for name in missing:
            complain(f"cannot read {name}: No such file or directory")
        if len(missing) == len(sources):
            raise typer.Exit(BAD_INPUT)
        sources = [one for one in sources if one not in missing]

    from engram.store import (  # slow, and not for a wrong path
        SURE,
        Answer,
        add_classifications,
        predict_images,
        read_taxonomy,
        unknown_threshold,
        write_detections,
    )

    loaded = open_store(model, device).read()
    threshold = unknown_threshold(loaded, unknown)
    chosen = None if among is None else _chosen(loaded, among)
    parents = None if taxonomy is None else read_taxonomy(taxonomy)
    unreadable = len(missing)
    named: list[Answer] = []

    def answered() -> Iterator[Answer]:
        nonlocal unreadable
        # On a terminal the answers themselves are the progress.
        with progress("predict", shown=as_json or not sys.stdout.isatty()) as update:
            answers = predict_images(
                loaded, sources, top=top, unknown=threshold, among=chosen,
                taxonomy=parents, sure=SURE if sure is None else sure, device=device,
            )  # fmt: skip
            for done, one in enumerate(answers, 1):
                update(done, len(sources))
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
            _write_csv(file, answered(), ranks, taxonomy=parents is not None, boxes=boxes is not None)
    else:
        for answer in answered():
            best = ", ".join(f"{one.label} {percent(one.probability)}" for one in answer.top)
            box = f" {list(answer.box)}" if answer.box else ""
            typer.echo(printable(f"{answer.path}{box}: {answer.label} ({best})"))
    if boxes is not None and out is not None:
        classes = chosen or loaded.names
        content = add_classifications(boxes, named, classifier=model.name, names=classes, taxonomy=parents)
        try:
            write_detections(out, content)
        except OSError as error:
            raise ValueError(f"cannot write {out}: {error.strerror}") from error
        note(f"{len(named):,} of {len(boxes.boxes):,} boxes of animals were answered: {out}")
    if unreadable:
        raise typer.Exit(BAD_INPUT)


def _chosen(model: "Model", among: str) -> list[str]:
    """The classes that may be answers. A list for a region names more than any model knows, so that is no error."""
    file = Path(among)
    names = file.read_text(encoding="utf-8").splitlines() if file.is_file() else among.split(",")
    wanted = list(dict.fromkeys(name.strip() for name in names if name.strip()))
    known = {*model.names, *model.built_in}
    if strangers := [name for name in wanted if name not in known]:
        complain(f"not known to the model, so never an answer: {', '.join(strangers)}")
    if len(strangers) == len(wanted):
        raise ValueError(f"the model knows none of the classes in --among {among}")
    return [name for name in wanted if name in known]


class _StandardInput(io.BytesIO):
    """The picture on standard input, under a name for people."""

    name = "-"


def _sources(pictures: Sequence[str], listed: Path | None) -> list[Any]:
    """The images to answer: paths, and for `-` the content of standard input."""
    from engram.datasets import scan_pictures

    names = list(pictures)
    if listed is not None:
        text = sys.stdin.read() if str(listed) == "-" else listed.read_text()
        names += [line for line in text.splitlines() if line.strip()]
    sources: list[str | Path | _StandardInput] = []
    for name in names:
        if name == "-":
            sources.append(_StandardInput(sys.stdin.buffer.read()))
        elif Path(name).is_dir():
            found, left_out = scan_pictures(Path(name))
            tell_left_out(left_out)
            sources += found
        else:
            sources.append(name)
    return sources


def _open_table(path: str) -> TextIO:
    try:
        return open(path, "w", newline="", encoding="utf-8")
    except OSError as error:
        raise ValueError(f"cannot write {path}: {error.strerror}") from error


def _write_csv(file: TextIO, answers: "Iterator[Answer]", top: int, *, taxonomy: bool, boxes: bool) -> None:
    writer = csv.writer(file, lineterminator="\n")
    ranks = [f"{column}_{rank}" for rank in range(1, top + 1) for column in ("label", "similarity", "probability")]
    more = ["label_probability"] if taxonomy else []
    sides = ["x_min", "y_min", "width", "height"] if boxes else []
    writer.writerow(["path", "label", "similarity", "probability", *ranks, *more, *sides])
    for answer in answers:
        ranked = [value for one in answer.top for value in one]
        others = [*([answer.label_probability] if taxonomy else []), *(answer.box or ())]
        writer.writerow([answer.path, answer.label, answer.similarity, answer.probability, *ranked, *others])
