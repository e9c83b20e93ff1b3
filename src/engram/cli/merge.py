"""engram merge: one model of several."""

from pathlib import Path
from typing import Annotated

import typer

from engram.cli.app import app, complain, note, print_json
from engram.cli.options import CARE, AsJson, Wait, megabytes, open_store, require_readable

_EXAMPLES = """Examples:

engram merge birds.engram garden.engram lake.engram

engram merge birds.engram birds.engram forest.stats --force     # into one of them; engram undo goes back"""


def _all_readable(paths: list[Path]) -> list[Path]:
    for path in paths:
        require_readable(path)
    return paths


@app.command(epilog=_EXAMPLES, rich_help_panel=CARE)
def merge(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The model file to write.", show_default=False)],
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL...", help="Models to merge.", show_default=False, callback=_all_readable),
    ],
    force: Annotated[bool, typer.Option("--force", help="Replace OUT; the version before is kept.")] = False,
    wait: Wait = 60.0,
    as_json: AsJson = False,
) -> None:
    """Make one model of several: what it would be had it learned everything in one place.

    A class that several models know becomes one, from the pictures of all; engram rename, before, keeps two apart. The
    models need the same backbone, method
    and settings; engram methods says which methods can be merged.
    """
    from engram.store import merge_models

    store = open_store(out, wait=wait)
    done = merge_models(store, models, replace_existing=force)
    names = done.model.names
    if as_json:
        print_json(
            {
                "classes": names,
                "added": done.added,
                "joined": done.joined,
                "learned_twice": [{"name": name, "models": both} for name, *both in done.twice],
            }
        )
    for name, one, other in done.twice:
        complain(f"learned twice: {name} in {one} and {other} is the same folder of pictures, and counts double")
    if done.joined:
        note(f"one class of several: {', '.join(done.joined)}")
    note(f"{out} knows {len(names)} classes, from {len(models)} models; {megabytes(out.stat().st_size)}")
