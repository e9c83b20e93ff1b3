"""engram watch: pictures as they come."""

from pathlib import Path
from typing import Annotated

import typer

from engram.cli.answers import Among, Sure, Taxonomy, answer_line, choose_classes, choose_names, require_taxonomy
from engram.cli.app import app, complain, note, printable
from engram.cli.options import MAIN, AllowDownload, Device, ExistingModel, MaxPixels, open_store

_EXAMPLES = """Examples:

engram watch birds.engram inbox/                             # appends to answers.csv, until Ctrl-C

engram watch birds.engram inbox/ --out birds.jsonl --move sorted/ --unknown auto --among wren,robin

engram watch birds.engram rtsp://camera.local/stream --every 5     # needs pip install 'engram-learn\\[video]'"""


@app.command(epilog=_EXAMPLES, rich_help_panel=MAIN)
def watch(
    model: ExistingModel,
    inbox: Annotated[
        str,
        typer.Argument(metavar="INBOX", help="The folder that pictures and films come into; or a stream's address."),
    ],
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="Where answers are appended: a CSV or, by its name, JSON lines.")
    ] = Path("answers.csv"),
    move: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Move each picture into a folder there, named by its answer.")
    ] = None,
    unknown: Annotated[str | None, typer.Option(metavar="auto|NUMBER", help="As for engram predict.")] = None,
    among: Among = None,
    taxonomy: Taxonomy = None,
    sure: Sure = None,
    every: Annotated[
        float, typer.Option(min=0.1, help="Seconds between two looks: into the folder, and at a film or stream.")
    ] = 2.0,
    max_pixels: MaxPixels = None,
    device: Device = "auto",
    allow_download: AllowDownload = False,
) -> None:
    """Answer every picture that comes into a folder, until Ctrl-C.

    A picture is answered once its file has stopped growing. What has been answered is in the file that is appended to,
    so after a restart nothing is answered twice. Of films, frames are answered.
    """
    require_taxonomy(taxonomy, sure)
    from engram.store import Answer, AnswerLog, Wanted, watch_inbox, watch_stream

    store = open_store(model, device)
    loaded, streams = store.read(), "://" in inbox
    names = choose_names(taxonomy, sure)
    wanted = Wanted(unknown, None if among is None else choose_classes(loaded.names, among), *names)
    wanted.options(loaded)  # before anything is written
    if not (streams or Path(inbox).is_dir()):
        raise ValueError(f"{inbox} is not a folder")
    if streams and move is not None:
        raise ValueError("--move is for a folder: there is no file to move in a stream")
    try:
        log = AnswerLog(out)
    except OSError as error:
        raise ValueError(f"cannot write {out}: {error.strerror}") from error
    note(f"watching {inbox}, answers go to {out}; Ctrl-C ends it")
    try:
        answers = (
            watch_stream(store, inbox, log, wanted, every=every)
            if streams
            else watch_inbox(store, Path(inbox), log, wanted, move=move, every=every)
        )
        for one in answers:
            if isinstance(one, Answer):
                typer.echo(printable(answer_line(one)))
            else:
                complain(f"cannot read {one.name}: {one.reason}")
    except KeyboardInterrupt:
        return
    finally:
        log.close()
