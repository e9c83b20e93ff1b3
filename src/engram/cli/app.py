"""What all commands share: the application, the console, progress, errors and exit codes."""

import codecs
import contextlib
import functools
import gc
import inspect
import json
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

import engram
from engram.errors import DamagedModelError, ModelFileError, NothingToDoError

# A network's threads wait for each other by spinning, and on a busy machine spin away the time of those they wait for:
# training is then several times slower (docs/performance.md). To say so works only before torch is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# So do those of numpy's OpenBLAS, which cannot be told otherwise: on a busy machine a model's first answer took 1 to 4
# seconds with two, and takes .2 s with one. What takes long, decoding and encoding, has threads of its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_MODULES = {name: name for name in ("learn", "new", "predict", "evaluate", "watch", "serve")}
_MODULES |= {"label-studio": "label_studio", "export": "export", "doctor": "doctor"}
_MODULES |= dict.fromkeys(("info", "card", "history", "forget", "rename", "undo", "redo", "refuse"), "model")
_MODULES |= {"merge": "merge", "demo": "demo", "methods": "methods"}

# Exit codes; 0 is done. Ctrl-C is 130, as everywhere.
NOTHING, BAD_INPUT, DAMAGED, INTERRUPTED = 1, 2, 3, 130

# People look at stderr; stdout is for what the next program reads.
console = Console(stderr=True)
_errors = Console(stderr=True)
_debugging = False
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
F = TypeVar("F", bound=Callable[..., Any])


def _quiet(wanted: bool) -> None:
    console.quiet = console.quiet or wanted


def _debug(wanted: bool) -> None:
    global _debugging
    _debugging = _debugging or wanted


_SHARED = {
    "quiet": Annotated[
        bool, typer.Option("--quiet", "-q", callback=_quiet, help="Say nothing but the result and errors.")
    ],
    "debug": Annotated[bool, typer.Option("--debug", callback=_debug, help="Show where in the code an error arose.")],
}


class App(typer.Typer):
    """A Typer application whose commands all take --quiet and --debug."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[F], F]:
        """Register a command, as Typer does."""
        register = super().command(name, **settings)

        def enter(function: F) -> F:
            @functools.wraps(function)
            def run(*args: Any, quiet: bool = False, debug: bool = False, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

            own = inspect.signature(function, eval_str=True)
            shared = [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=annotation)
                for name, annotation in _SHARED.items()
            ]
            run.__signature__ = own.replace(parameters=[*own.parameters.values(), *shared])  # type: ignore[attr-defined]
            run.__annotations__ = {p.name: p.annotation for p in [*own.parameters.values(), *shared]}
            register(run)
            return function

        return enter


app = App(
    help="Teach an image classifier new classes one at a time; keep one mean vector per class and no old pictures.",
    epilog="Exit codes: 0 done, 1 nothing to do or found, 2 bad input, 3 damaged model.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command; an expected error is one line that says what to do, and an exit code of its kind."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="engram")
    if not sys.warnoptions:  # they are for developers
        warnings.simplefilter("ignore")
    load_commands(next((word for word in sys.argv[1:] if not word.startswith("-")), None))
    try:
        status = app(prog_name="engram", standalone_mode=False)
    except Exception as error:
        status = _explain(error)
        if status is None:
            raise
    sys.exit(status or 0)


def run() -> None:
    """Run the command in a process of its own, which ends with it."""
    try:
        main()
    finally:
        gc.freeze()  # nothing has to be looked through for what can be freed


def load_commands(name: str | None = None) -> None:
    """Import the module of one command; without a name, or for one that is not here, all and those of other packages.

    Modules register their commands in the order in which the help shows them.
    """
    if name in _MODULES:
        import_module(f"engram.cli.{_MODULES[name]}")
        return
    for module in dict.fromkeys(_MODULES.values()):
        import_module(f"engram.cli.{module}")
    from engram import plugins

    for more in plugins.registered("engram.commands"):
        more.load()


def _encode_anyway(error: UnicodeError) -> tuple[str | bytes, int]:
    """A file's name need not be text, and goes out as it is; what the encoding of a stream does not have becomes ?."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    code = ord(error.object[error.start])
    return bytes([code - 0xDC00]) if 0xDC80 <= code <= 0xDCFF else "?", error.start + 1


codecs.register_error("engram", _encode_anyway)


def printable(text: str) -> str:
    """Text whose control characters, and those that turn text around, a terminal shows and does not obey."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def cell(text: str) -> str:
    """Text as a table of rich takes it, brackets and all."""
    return escape(printable(text))


def _explain(error: Exception) -> int | None:
    """Print one line about an expected error and return its exit code; None for a fault of engram's own."""
    if isinstance(error, typer.Abort):
        return _say(error, "stopped; nothing was changed", NOTHING)
    if isinstance(error, typer.TyperException):
        message, context = error.format_message().strip().removesuffix("."), getattr(error, "ctx", None)
        if not message:  # a command without arguments has shown its help
            return BAD_INPUT
        return _say(error, f"{message}; see {context.command_path} --help" if context else message, BAD_INPUT)
    if isinstance(error, NothingToDoError):
        return _say(error, str(error), NOTHING)
    if isinstance(error, DamagedModelError):
        return _say(error, f"{error}; put a good copy in its place, or a previous version with engram undo", DAMAGED)
    if isinstance(error, ModelFileError | ValueError | OSError):
        return _say(error, str(error), BAD_INPUT)
    return None


def _say(error: Exception, message: str, status: int) -> int:
    if _debugging:
        _errors.print(
            "".join(traceback.format_exception(error)).rstrip(), highlight=False, markup=False, soft_wrap=True
        )
    line = printable(" ".join(message.split()))
    _errors.print(f"[bold red]error:[/] {escape(line)}", highlight=False, soft_wrap=True)
    return status


def note(text: str) -> None:
    """Tell a person something, on stderr, unless they asked for quiet."""
    console.print(printable(text), highlight=False, markup=False, soft_wrap=True)


def complain(text: str) -> None:
    """Tell a person that something went wrong, though the work goes on."""
    _errors.print(printable(text), highlight=False, markup=False, soft_wrap=True)


def print_json(value: Any) -> None:
    """The result, for the next program."""
    typer.echo(json.dumps(value, indent=2, allow_nan=False))


@contextlib.contextmanager
def progress(what: str, shown: bool = True) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr with count, rate and time left; nothing if stderr is no terminal."""
    if not (shown and console.is_terminal):
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress  # here, as --help needs none of it

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    # Not redirected: what is printed meanwhile is a result, and may go to a file.
    with RichProgress(*columns, console=console, redirect_stdout=False) as bars:
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
