"""engram export: the model as one graph, for programs without engram."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from engram.cli.app import app, console, note, print_json
from engram.cli.options import MAIN, AllowDownload, AsJson, ExistingModel, megabytes, open_store
from engram.cli.sources import tell_left_out

_EXPORT = """Examples:

engram export birds.engram birds.onnx                    # needs pip install 'engram-learn\\[onnx]'

engram export birds.engram birds.onnx --int8 pictures/   # smaller, and faster on small devices"""
_MOST = 100  # pictures to calibrate with; more take longer and say no more


@app.command(epilog=_EXPORT, rich_help_panel=MAIN)
def export(
    model: ExistingModel,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A file ending in .onnx.", show_default=False)],
    int8: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Compute the network in 8-bit integers, scaled by the pictures in FOLDER. They should be "
            "like those it will be asked about; those it was taught with will do.",
        ),
    ] = None,
    allow_download: AllowDownload = False,
    as_json: AsJson = False,
) -> None:
    """Write the model as one graph, pictures in, answers out, for programs without engram.

    The graph resizes, crops and normalises pictures of any size, and holds the backbone, what the method learned, and
    the names of the classes. Before the file takes its place it is run, and has to give the model's scores, within
    0.0001.
    """
    calibration = None if int8 is None else _pictures(int8)
    with console.status(f"writing and checking {escape(str(out))}"):
        loaded = open_store(model).read()
        result = loaded.clf.export(out, unknown_below=loaded.unknown_below(), calibration=calibration)
    if as_json:
        print_json({"path": str(out), "bytes": out.stat().st_size, **result})
    answers = f"{len(result['labels'])} classes; differs from the model by at most {result['difference']:.1e}"
    if calibration is not None:
        answers = f"{len(result['labels'])} classes; with integers, {result['same_answers']:,} of "
        answers += f"{result['calibrated_on']:,} answers are the model's"
    note(f"{out}: {megabytes(out.stat().st_size)}, input {result['input']}, {answers}")


def _pictures(folder: Path) -> list[Path]:
    """Some pictures in a folder, evenly among all of them."""
    from engram.datasets import scan_pictures

    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder of pictures")
    found, left_out = scan_pictures(folder)
    tell_left_out(left_out)
    if not found:
        raise ValueError(f"{folder} holds no pictures to calibrate 8-bit integers on")
    step = max(1, -(-len(found) // _MOST))
    return found[::step]
