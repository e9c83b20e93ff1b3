"""engram serve: the page that learns by example."""

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from engram.cli.app import app, note
from engram.cli.options import MAIN, AllowDownload, Backbone, Device, Method, ModelPath, Settings, open_store

_EXAMPLES = """Examples:

engram serve birds.engram                       # a page on this machine; the file need not exist yet

engram serve birds.engram --host 0.0.0.0        # for others too: prints an address with a token in it

engram serve birds.engram --public-url https://birds.example.org   # behind a proxy that speaks https"""


@app.command(epilog=_EXAMPLES, rich_help_panel=MAIN)
def serve(
    model: ModelPath,
    host: Annotated[str, typer.Option(help="Address to listen on. Beyond this machine a token is asked for.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    public_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The page's address if a proxy serves it. A token is asked for."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the token in FILE, so that it is the same after a restart."),
    ] = None,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser, if there is a terminal here.")
    ] = True,
    backbone: Backbone = None,
    method: Method = None,
    settings: Settings = None,
    device: Device = "auto",
    allow_download: AllowDownload = False,
) -> None:
    """Open a page to teach MODEL new classes by example, try it and look at what it knows.

    Pictures sent to it are decoded in memory and gone after the lesson; the model file is all that stays.
    """
    if not all(map(find_spec, ("uvicorn", "fastapi", "multipart", "segno"))):
        raise ValueError("the page needs packages that are not installed; pip install 'engram-learn[web]'")
    import logging
    import webbrowser

    from engram.learners.registry import find
    from engram.settings import parse_settings
    from engram.store import Plan
    from engram.web.addresses import PublicUrl, is_loopback, page_addresses
    from engram.web.app import create_app
    from engram.web.connections import PageServer, listen
    from engram.web.token import kept_token, new_token

    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # what is wrong with a form is told its sender
    plan = Plan(more=True, backbone=backbone, method=method, settings=parse_settings(settings or ()))
    store = open_store(model, device, wait=5.0)
    folder = store.versions.model.parent
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; make it first")
    # Whatever cannot work is said now, and not when somebody has taken pictures.
    if store.exists():
        taught = store.read()
        if taught.encoder is None:
            raise ValueError(f"{model} was taught feature vectors, and the page is about pictures")
        find(taught.method)  # says what brings it, if it is not here
        plan.require_same(taught)
    else:
        plan.new_model(device)
    public = PublicUrl.parse(public_url) if public_url else None
    token = kept_token(token_file) if token_file else None if is_loopback(host) and not public else new_token()
    with listen(host, port) as listening:
        places = [str(public)] if public else page_addresses(host, listening.getsockname()[1])
        address, *others = [place + (f"?token={token}" if token else "") for place in places]
        note(f"serving {model}; Ctrl-C ends it")
        typer.echo(address)
        for other in others:
            note(f"also {other}")
        if sys.stderr.isatty():
            if token:
                _draw(address)
            if open_page:
                webbrowser.open(address)
        page = create_app(store, plan, bound=host, public=public, token=token, token_is_kept=token_file is not None)
        server = page.state.server
        PageServer(page, server.limits, server.begin_closing, behind_proxy=public is not None).run([listening])


def _draw(address: str) -> None:
    """A QR code, which a phone's camera opens."""
    import io

    import segno

    drawing = io.StringIO()
    segno.make(address, error="l").terminal(drawing, compact=True)
    note(drawing.getvalue())
