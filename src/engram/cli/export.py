"""engram export: the model as one graph, for programs without engram."""

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from engram.cli.app import app, console, note, print_json
from engram.cli.options import MAIN, AllowDownload, AsJson, ExistingModel, megabytes, open_store

_EXPORT = """Example:

engram export birds.engram birds.onnx"""


@app.command(epilog=_EXPORT, rich_help_panel=MAIN)
def export(
    model: ExistingModel,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A file ending in .onnx.", show_default=False)],
    allow_download: AllowDownload = False,
    as_json: AsJson = False,
) -> None:
    """Write the model as one graph, pictures in, answers out, for programs without engram.

    The graph resizes, crops and normalises pictures of any size, and holds the backbone, what the method learned, and
    the names of the classes. Before the file takes its place it is run, and has to give the model's scores, within
    0.0001.
    """
    from engram.store.export import export_model

    with console.status(f"writing and checking {escape(str(out))}"):
        result = export_model(open_store(model).read(), out)
    if as_json:
        print_json({"path": str(out), "bytes": out.stat().st_size, **result})
    answers = f"{len(result['labels'])} classes; differs from the model by at most {result['difference']:.1e}"
    note(f"{out}: {megabytes(out.stat().st_size)}, input {result['input']}, {answers}")
