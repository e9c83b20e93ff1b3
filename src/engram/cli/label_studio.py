"""engram label-studio: the model as an ML backend of Label Studio."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from engram.cli.app import app, note
from engram.cli.options import MAIN, Device, open_store

_EXAMPLES = """Example:

LABEL_STUDIO_API_KEY=… engram label-studio --model birds.engram --label-studio-url http://localhost:8080"""


@app.command("label-studio", epilog=_EXAMPLES, rich_help_panel=MAIN)
def label_studio(
    model: Annotated[Path, typer.Option(help="The model file; made with the first annotation if need be.")],
    label_studio_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Label Studio's own address, to get pictures from.")
    ] = None,
    files: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="What Label Studio has as LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT, read from here."
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on. Beyond this machine a login is needed.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 9090,
    device: Device = "auto",
) -> None:
    """Answer Label Studio's tasks with MODEL, and learn from every annotation.

    For labelling interfaces with Choices for an Image. The access token comes from LABEL_STUDIO_API_KEY, and the login
    that Label Studio has to give from BASIC_AUTH_USER and BASIC_AUTH_PASS.
    """
    if not all(map(find_spec, ("uvicorn", "fastapi", "multipart"))):
        raise ValueError("the backend needs packages that are not installed; pip install 'engram-learn[web]'")
    from engram.store import Plan
    from engram.web.addresses import is_loopback
    from engram.web.connections import PageServer, listen
    from engram.web.label_studio import create_backend
    from engram.web.label_studio_files import LabelStudioFiles

    user, password = os.environ.get("BASIC_AUTH_USER"), os.environ.get("BASIC_AUTH_PASS")
    login = (user, password) if user and password else None
    if login is None and not is_loopback(host):
        raise ValueError("beyond this machine a login is needed: set BASIC_AUTH_USER and BASIC_AUTH_PASS")
    if files is not None and not files.is_dir():
        raise ValueError(f"{files} is not a folder")
    store = open_store(model, device, wait=5.0)
    if store.exists():  # whatever cannot work is said now
        store.read().open_encoder(store.device)
    pictures = LabelStudioFiles(label_studio_url, os.environ.get("LABEL_STUDIO_API_KEY"), files)
    backend = create_backend(store, Plan(more=True), pictures, bound=host, login=login)
    server = backend.state.server
    with listen(host, port) as listening:
        shown = f"[{host}]" if ":" in host else host
        note(f"answering Label Studio with {model}; Ctrl-C ends it")
        typer.echo(f"http://{shown}:{listening.getsockname()[1]}")
        PageServer(backend, server.limits, server.begin_closing).run([listening])
