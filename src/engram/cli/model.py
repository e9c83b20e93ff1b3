"""engram info, card, history, forget, rename, undo, redo: looking at and changing a model without pictures."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from engram.cli.app import app, cell, complain, note, print_json, printable
from engram.cli.options import CARE, AsJson, ExistingModel, Wait, Yes, megabytes, open_store, percent
from engram.errors import NothingToDoError

if TYPE_CHECKING:
    from engram.history import Event

_RIGHT = "right: how often its pictures would be recognised, each judged as if it had not been learned"


@app.command(epilog="Example:\n\nengram info birds.engram", rich_help_panel=CARE)
def info(model: ExistingModel, as_json: AsJson = False) -> None:
    """Show what a model knows, since when, what it keeps and what it does not."""
    from engram.store import examine, measure_drift, tell_what_is_kept, warn_of_drift

    store = open_store(model)
    present = store.read()
    about, health = store.info(present), examine(present)
    not_stored = tell_what_is_kept(about)
    for one in about["classes"]:
        told = health.classes[one["name"]]
        one["right"], one["taken_for"] = (told.share, told.taken_for) if told else (None, {})
    if as_json:
        drift = measure_drift(present)
        print_json({**about, "accuracy": health.overall(), "drift": drift, "not_stored": not_stored})
        return
    out = Console(highlight=False)
    table = Table(title=f"{cell(str(model))}: {len(about['classes'])} classes")
    for heading in ("class", "pictures", "right", "taken for", "learned", "increment"):
        numeric = heading in ("pictures", "right", "increment")
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for one in about["classes"]:
        pictures = "" if one["pictures"] is None else f"{one['pictures']:,}"
        right = "" if one["right"] is None else percent(one["right"])
        increment = {None: "", 0: "base"}.get(one["increment"], str(one["increment"]))
        taken, day = next(iter(one["taken_for"]), ""), (one["learned"] or "")[:10]  # --json has all, and the time
        table.add_row(cell(one["name"]), pictures, right, cell(taken), day, increment)
    out.print(table)
    if any(health.classes.values()):
        out.print(_RIGHT, markup=False, soft_wrap=True)
    for line in _lines(about):
        out.print(line, markup=False, soft_wrap=True)
    out.print(not_stored, markup=False)
    if warning := warn_of_drift(present):
        complain(f"warning: {warning}")


def _lines(about: dict[str, Any]) -> list[str]:
    groups = ", ".join(f"{group} {megabytes(size)}" for group, size in about["bytes_by_group"].items() if size)
    unknown, versions = about["unknown"], about["versions"]
    lines = [
        f"file: {megabytes(about['bytes'])} ({groups})",
        f"per class: {about['kept_per_class']}, {about['bytes_per_class']:,} bytes",
        f"method: {about['method']}",
        f"backbone: {about['backbone'] or 'none; the model takes feature vectors'}",
    ]
    if built_in := about["built_in"]:
        lines.append(f"built in: {built_in['classes']:,} classes of ImageNet; {built_in['licence']}")
    if unknown:
        lines.append(f"unknown: about {percent(unknown['share'])} of pictures of known classes are refused")
    elif not about["can_leave_out"]:
        lines.append("unknown: not calibrated; the method cannot tell")
    kept = versions["kept"]
    lines.append(
        f"previous versions: {len(kept)} in {versions['folder']}, {megabytes(versions['bytes'])}"
        if kept
        else f"previous versions: {versions['left_behind'] or 'none kept'}"
    )
    if not about["can_learn"]:
        lines.append("saved slim: it predicts, but cannot learn further")
    return lines


@app.command(epilog="Example:\n\nengram card birds.engram > README.md", rich_help_panel=CARE)
def card(model: ExistingModel) -> None:
    """Print a model card in Markdown, as Hugging Face shows it: classes, what is kept, how good it is, limits."""
    from engram.store import model_card

    typer.echo(model_card(open_store(model)), nl=False)


@app.command(epilog="Example:\n\nengram history birds.engram", rich_help_panel=CARE)
def history(model: ExistingModel, as_json: AsJson = False) -> None:
    """List every change of a model, oldest first."""
    store = open_store(model)
    notes = store.read().notes
    events, left = notes.history, store.versions.tell_left_behind(notes.versions_at)
    if as_json:
        print_json([vars(event) for event in events])
        return
    if not events:
        raise NothingToDoError(f"{model} has no history; nothing was taught with engram learn")
    for event in events:
        typer.echo(printable(f"{event.when}  {describe(event)}"))
    if left:
        note(left)


def describe(event: "Event") -> str:
    """A change in words."""
    names, pictures = ", ".join(event.pictures), sum(event.pictures.values())
    match event.what:
        case "base":
            amount = f"{len(event.pictures)} classes from {pictures:,} pictures"
            return f"base: {amount} in {event.seconds:.1f} s: {names}"
        case "learn":
            return f"learned {names} from {pictures:,} pictures in {event.seconds:.1f} s"
        case "more":
            return f"learned more of {names} from {pictures:,} pictures in {event.seconds:.1f} s"
        case "unlearn":
            return f"took a lesson back: {pictures:,} pictures of {names or 'classes forgotten before'}"
        case "forget":
            return f"forgot {names}"
        case "merge":
            return f"merged models: {len(event.pictures)} classes from {pictures:,} pictures: {names}"
        case "rename":
            return f"renamed {names} to {event.new_name}"
        case "refuse":
            return f"calls about {event.share:.1%} of known pictures unknown from now on"


_FORGET = """Examples:

engram forget birds.engram wren

engram forget birds.engram wren --for-good --yes    # also from the history and the previous versions"""


@app.command(epilog=_FORGET, rich_help_panel=CARE)
def forget(
    model: ExistingModel,
    name: Annotated[str, typer.Argument(metavar="CLASS", help="The class to forget.", show_default=False)],
    for_good: Annotated[
        bool, typer.Option("--for-good", help="Remove all previous versions too, and the name from the history.")
    ] = False,
    yes: Yes = False,
    wait: Wait = 60.0,
    as_json: AsJson = False,
) -> None:
    """Remove a class: its name and all that is kept of it alone.

    What a network's weights have learned from it stays in them. A previous version that is kept still knows the class,
    and engram undo brings it back, unless --for-good.
    """
    store = open_store(model, wait=wait)
    store.read().label(name)  # before anybody is asked about a class that is not there
    _confirm(f"Forget {name}?" if not for_good else f"Forget {name}, and remove all previous versions?", yes)
    store.forget(name, for_good=for_good)
    kept = len(store.versions.numbers())
    if as_json:
        print_json({"forgotten": name, "versions_kept": kept})
    note(f"forgot {name}" + (f"; {kept} previous versions are kept: engram undo, or --for-good" if kept else ""))


@app.command(epilog="Example:\n\nengram rename birds.engram wren 'Eurasian wren'", rich_help_panel=CARE)
def rename(
    model: ExistingModel,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The class as it is called.", show_default=False)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="What to call it.", show_default=False)],
    wait: Wait = 60.0,
    as_json: AsJson = False,
) -> None:
    """Give a class another name."""
    open_store(model, wait=wait).rename(old, new)
    if as_json:
        print_json({"old": old, "new": new})
    note(f"{old} is called {new} now")


@app.command(epilog="Example:\n\nengram undo birds.engram", rich_help_panel=CARE)
def undo(model: ExistingModel, yes: Yes = False, wait: Wait = 60.0, as_json: AsJson = False) -> None:
    """Take the last change back: the version before takes the model's place, byte for byte.

    A damaged model gives way to the last version that is whole. engram redo makes the change again.
    """
    store = open_store(model, wait=wait)
    _confirm("Take the last change back?", yes)
    undone = store.undo()
    names = store.read().names
    if as_json:
        print_json({"undone": undone and vars(undone), "classes": names})
    what = describe(undone) if undone else "the damaged file was replaced"
    note(f"undone: {what}; {model} knows {len(names)} classes")


@app.command(epilog="Example:\n\nengram redo birds.engram", rich_help_panel=CARE)
def redo(model: ExistingModel, wait: Wait = 60.0, as_json: AsJson = False) -> None:
    """Make the change again that engram undo took back last, byte for byte."""
    store = open_store(model, wait=wait)
    redone = store.redo()
    names = store.read().names
    if as_json:
        print_json({"redone": vars(redone), "classes": names})
    note(f"made again: {describe(redone)}; {model} knows {len(names)} classes")


def _confirm(question: str, yes: bool) -> None:
    if yes:
        return
    if not sys.stdin.isatty():
        raise ValueError("there is no terminal to ask on; give --yes")
    typer.confirm(question, abort=True, err=True)
