"""The command `cache`, for features kept on disk."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from engram.cli.app import app, note, print_json
from engram.cli.options import RESEARCH, AsJson, Yes

cache_app = typer.Typer(help="List or clear the features kept on disk.", invoke_without_command=True)
app.add_typer(cache_app, name="cache", rich_help_panel=RESEARCH)


@cache_app.callback()
def cache_list(
    context: typer.Context,
    cache: Annotated[Path | None, typer.Option(help="Cache folder (default: $ENGRAM_CACHE).")] = None,
    as_json: AsJson = False,
) -> None:
    """List what is kept, per backbone."""
    from engram.bench.cache import FeatureCache

    store = FeatureCache(cache)
    context.obj = store
    if context.invoked_subcommand:
        return
    entries = store.entries()
    for path in store.damaged():
        note(f"damaged, and used no more; engram cache clear removes it: {path}")
    if as_json:
        rows = [
            {"identity": e.identity, "dtype": e.dtype, "count": e.count, "bytes": e.bytes, "path": str(e.path)}
            for e in entries
        ]
        print_json(rows)
        return
    table = Table(title=f"Features kept in {store.root}")
    for heading in ("backbone", "pictures", "number format", "MB"):
        table.add_column(heading, justify="left" if heading == "backbone" else "right", overflow="fold")
    for entry in entries:
        table.add_row(entry.identity, f"{entry.count:,}", entry.dtype, f"{entry.bytes / 1e6:,.1f}")
    Console().print(table if entries else f"no features are kept in {store.root}")


@cache_app.command("clear")
def cache_clear(
    context: typer.Context,
    identity: Annotated[str | None, typer.Argument(help="Backbone whose features to remove (default: all).")] = None,
    yes: Yes = False,
) -> None:
    """Remove features from disk; they can be computed again."""
    store = context.obj
    known = [entry.identity for entry in store.entries()]
    if identity is not None and identity not in known:
        raise ValueError(f"no features of {identity!r} are kept; there are {', '.join(known) or 'none'}")
    if not yes:
        typer.confirm(f"Remove the features of {identity or 'all backbones'} from {store.root}?", abort=True, err=True)
    typer.echo(f"{store.clear(identity) / 1e6:,.1f} MB removed")
