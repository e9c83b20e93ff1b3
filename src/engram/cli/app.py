"""What all commands share: the application, the console, progress, errors and exit codes."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as RichProgress

import engram

app = typer.Typer(
    help="Teach an image classifier new classes one at a time; keep one mean vector per class and no old pictures.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
# People look at stderr; stdout is for what the next program reads.
console = Console(stderr=True)


def main() -> None:
    """Run the command; an expected error is one line that says what to do, and exit code 2."""
    try:
        app()
    except (ValueError, engram.ModelFileError, OSError) as error:
        console.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr with count, rate and time left; nothing where nobody looks."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=console, disable=not console.is_terminal) as bars:
        task = bars.add_task(what, total=None, rate="")

        def update(done: int, total: int) -> None:
            speed = bars.tasks[task].speed
            bars.update(task, completed=done, total=total, rate=f"{speed:,.0f}/s" if speed else "")

        yield update


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(engram.__version__)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass
