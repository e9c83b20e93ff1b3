"""engram watch: pictures as they come."""

from pathlib import Path
from typing import Annotated

import typer

from engram.cli.app import app, complain, note
from engram.cli.options import MAIN, AllowDownload, Device, ExistingModel, MaxPixels, open_store, percent

_EXAMPLES = """Examples:

engram watch birds.engram inbox/                             # appends to answers.csv, until Ctrl-C

engram watch birds.engram inbox/ --out birds.jsonl --move sorted/ --unknown auto"""


@app.command(epilog=_EXAMPLES, rich_help_panel=MAIN)
def watch(
    model: ExistingModel,
    inbox: Annotated[Path, typer.Argument(metavar="INBOX", help="The folder that pictures come into.")],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where answers are appended: a CSV or, by its name, JSON lines.")
    ] = Path("answers.csv"),
    move: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Move each picture into a folder there, named by its answer.")
    ] = None,
    unknown: Annotated[str | None, typer.Option(metavar="auto|NUMBER", help="As for engram predict.")] = None,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 2.0,
    max_pixels: MaxPixels = None,
    device: Device = "auto",
    allow_download: AllowDownload = False,
) -> None:
    """Answer every picture that comes into a folder, until Ctrl-C.

    A picture is answered once its file has stopped growing. What has been answered is in the file that is appended to,
    so after a restart nothing is answered twice.
    """
    from engram.store import Answer, AnswerLog, unknown_threshold, watch_inbox

    store = open_store(model, device)
    unknown_threshold(store.read(), unknown)  # before anything is written
    if not inbox.is_dir():
        raise ValueError(f"{inbox} is not a folder")
    try:
        log = AnswerLog(out)
    except OSError as error:
        raise ValueError(f"cannot write {out}: {error.strerror}") from error
    note(f"watching {inbox}, answers go to {out}; Ctrl-C ends it")
    try:
        for one in watch_inbox(store, inbox, log, unknown=unknown, move=move, every=every):
            if isinstance(one, Answer):
                typer.echo(f"{one.path}: {one.label} ({one.top[0].label} {percent(one.probability)})")
            else:
                complain(f"cannot read {one.name}: {one.reason}")
    except KeyboardInterrupt:
        return
    finally:
        log.close()
