"""engram predict and engram evaluate: what the model says to pictures."""

import csv
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from engram.cli.app import BAD_INPUT, NOTHING, app, cell, complain, note, print_json, printable, progress
from engram.cli.options import MAIN, AsJson, Device, ExistingModel, Folder, open_store, percent

if TYPE_CHECKING:
    from engram.store import Answer

_EXAMPLES = """Examples:

engram predict birds.engram garden.jpg

engram predict birds.engram card/DCIM/ --top 1 --csv > birds.csv

find . -name '*.jpg' | engram predict birds.engram --list - --json

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
    device: Device = "auto",
    as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a table as CSV.")] = False,
) -> None:
    """Say what pictures show.

    Behind each class is how likely it is. Pictures that cannot be read are named on standard error, the others are
    answered, and the exit code is 2.
    """
    from engram.store import Answer, predict_images, unknown_threshold

    if as_json and as_csv:
        raise ValueError("choose one of --json and --csv")
    sources = _sources(pictures or [], listed)
    if not sources:
        note("no pictures found")
        raise typer.Exit(NOTHING)
    loaded = open_store(model, device).read()
    threshold = unknown_threshold(loaded, unknown)
    unreadable = 0

    def answered() -> Iterator[Answer]:
        nonlocal unreadable
        # On a terminal the answers themselves are the progress.
        with progress("predict", shown=as_json or not sys.stdout.isatty()) as update:
            for done, one in enumerate(predict_images(loaded, sources, top=top, unknown=threshold, device=device), 1):
                update(done, len(sources))
                if isinstance(one, Answer):
                    yield one
                else:
                    unreadable += 1
                    complain(f"cannot read {one.name}: {one.reason}")

    if as_json:
        print_json([answer.as_json() for answer in answered()])
    elif as_csv:
        _write_csv(answered(), min(top, len(loaded.names)))
    else:
        for answer in answered():
            best = ", ".join(f"{one.label} {percent(one.probability)}" for one in answer.top)
            typer.echo(printable(f"{answer.path}: {answer.label} ({best})"))
    if unreadable:
        raise typer.Exit(BAD_INPUT)


class _StandardInput(io.BytesIO):
    """The picture on standard input, under a name for people."""

    name = "-"


def _sources(pictures: Sequence[str], listed: Path | None) -> list[Any]:
    """The images to answer: paths, and for `-` the content of standard input."""
    from engram.datasets import pictures_below

    names = list(pictures)
    if listed is not None:
        text = sys.stdin.read() if str(listed) == "-" else listed.read_text()
        names += [line for line in text.splitlines() if line.strip()]
    sources: list[str | Path | _StandardInput] = []
    for name in names:
        if name == "-":
            sources.append(_StandardInput(sys.stdin.buffer.read()))
        elif Path(name).is_dir():
            sources += pictures_below(Path(name))
        else:
            sources.append(name)
    return sources


def _write_csv(answers: "Iterator[Answer]", top: int) -> None:
    writer = csv.writer(sys.stdout, lineterminator="\n")
    ranks = [f"{column}_{rank}" for rank in range(1, top + 1) for column in ("label", "similarity", "probability")]
    writer.writerow(["path", "label", "similarity", "probability", *ranks])
    for answer in answers:
        ranked = [value for one in answer.top for value in one]
        writer.writerow([answer.path, answer.label, answer.similarity, answer.probability, *ranked])


_EVALUATE_EXAMPLES = """Examples:

engram evaluate birds.engram test/

engram evaluate birds.engram test/ --html birds.html --json > birds.json"""


@app.command(epilog=_EVALUATE_EXAMPLES, rich_help_panel=MAIN)
def evaluate(
    model: ExistingModel,
    folder: Folder,
    html: Annotated[Path, typer.Option(help="Where to write the report.")] = Path("engram-evaluation.html"),
    device: Device = "auto",
    as_json: AsJson = False,
) -> None:
    """Count how often the model is right, class by class, and show what it takes for what.

    The report is one file with small copies of the pictures that were taken for something else. Judge with pictures the
    model has not learned from.
    """
    from engram.datasets import image_folder
    from engram.store import evaluate_images
    from engram.store.evaluation_page import write_evaluation_page

    data = image_folder(folder)
    split = data.test or data.train
    loaded = open_store(model, device).read()
    with progress("evaluate") as update:
        paths = [Path(path) for path in split.images]
        result = evaluate_images(loaded, paths, split.labels, device=device, progress=update)
    for one in result.unreadable:
        complain(f"cannot read {one.name}: {one.reason}")
    if not result.pictures:
        note(f"no picture in {folder} could be read")
        raise typer.Exit(NOTHING)
    write_evaluation_page(html, result, model=str(model), folder=str(folder))
    if as_json:
        print_json(result.as_json())
    else:
        table = Table(title=f"{result.accuracy:.1%} of {result.pictures:,} pictures right")
        for heading in ("class", "pictures", "right", "most often taken for"):
            table.add_column(heading, justify="right" if heading in ("pictures", "right") else "left", overflow="fold")
        for name, total, right, other in result.per_class():
            known = "" if name in loaded.names else " (not known to the model)"
            table.add_row(cell(name + known), f"{total:,}", f"{right / total:.1%}", cell(other))
        Console().print(table)
    note(f"report with {len(result.wrong):,} pictures that were taken for something else: {html}")
