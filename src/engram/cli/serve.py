"""engram serve: the page that learns by example."""

import sys
from importlib.util import find_spec
from typing import Annotated

import typer

from engram.cli.app import app, note
from engram.cli.options import MAIN, Backbone, Device, Method, ModelPath, Settings, open_store

_EXAMPLES = """Examples:

engram serve birds.engram                       # a page on this machine; the file need not exist yet

engram serve birds.engram --host 0.0.0.0        # for others too: prints an address with a token in it"""


@app.command(epilog=_EXAMPLES, rich_help_panel=MAIN)
def serve(
    model: ModelPath,
    host: Annotated[str, typer.Option(help="Address to listen on. Beyond this machine a token is asked for.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 8000,
    open_page: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in a browser, if there is a terminal here.")
    ] = True,
    backbone: Backbone = None,
    method: Method = None,
    settings: Settings = None,
    device: Device = "auto",
) -> None:
    """Open a page to teach MODEL new classes by example, try it and look at what it knows.

    Pictures sent to it are decoded in memory and gone after the lesson; the model file is all that stays.
    """
    if find_spec("uvicorn") is None or find_spec("fastapi") is None or find_spec("multipart") is None:
        raise ValueError("the page needs packages that are not installed; pip install 'engram[web]'")
    import logging
    import secrets
    import socket
    import webbrowser

    import uvicorn

    from engram.settings import parse_settings
    from engram.store import Plan
    from engram.web.app import create_app
    from engram.web.security import is_loopback

    logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # what is wrong with a form is told its sender
    plan = Plan(more=True, holdout=0.2, backbone=backbone, method=method, settings=parse_settings(settings or ()))
    store = open_store(model, device, wait=5.0)
    folder = store.versions.model.parent
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder; make it first")
    # Whatever cannot work is said now, and not when somebody has taken pictures.
    if store.exists():
        clf = store.read().clf
        if clf.backbone_identity_ is None:
            raise ValueError(f"{model} was taught feature vectors, and the page is about pictures")
        plan.require_same(clf)
    else:
        plan.new_classifier(plan.new_backbone(), device)
    token = None if is_loopback(host) else secrets.token_urlsafe(24)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only on sockets declared as TCP does asyncio send at once; on others every answer waits 40 ms.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            reason = error.strerror or error
            raise ValueError(f"cannot listen on {host}, port {port}: {reason}; choose another --port") from None
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listening.getsockname()[1]}/" + (f"?token={token}" if token else "")
        note(f"serving {model}; Ctrl-C ends it")
        typer.echo(address)
        if open_page and sys.stderr.isatty():
            webbrowser.open(address)
        config = uvicorn.Config(
            create_app(store, plan, bound=host, token=token), log_level="warning", server_header=False,
            timeout_graceful_shutdown=2, timeout_keep_alive=30, h11_max_incomplete_event_size=64_000,
        )  # fmt: skip
        uvicorn.Server(config).run(sockets=[listening])
