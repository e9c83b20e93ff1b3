"""Arguments and options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

from engram.cli.app import note

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="The model file.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Wait = Annotated[float, typer.Option(min=0, help="Seconds to wait for another process that is changing the model.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

MAIN, CARE, RESEARCH = "Learn and look", "Take care of a model", "Data sets and experiments"


def say_who(holder: str) -> None:
    """Tell that somebody else is changing the model."""
    note(f"waiting for {holder}")


def megabytes(count: int) -> str:
    """A size for people."""
    return f"{count / 1e6:,.1f} MB" if count >= 100_000 else f"{count / 1e3:,.1f} kB"
