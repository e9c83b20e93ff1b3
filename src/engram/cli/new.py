"""engram new: a model that knows something before it is taught anything."""

from typing import Annotated

import typer

from engram.cli.app import app, note, print_json
from engram.cli.options import MAIN, AsJson, ModelPath, megabytes, open_store

_EXAMPLES = """Examples:

engram new things.engram --imagenet

engram learn things.engram pictures/            # pictures/our-mug/…: known beside the 1,000 from now on"""


@app.command(epilog=_EXAMPLES, rich_help_panel=MAIN)
def new(
    model: ModelPath,
    imagenet: Annotated[bool, typer.Option("--imagenet", help="Know the 1,000 classes of ImageNet.")] = False,
    backbone: Annotated[
        str, typer.Option(help="The network that sees the pictures: efficientnet_lite0, 1 or 2, pooled or :joined.")
    ] = "efficientnet_lite0:joined",
    as_json: AsJson = False,
) -> None:
    """Make a model that knows what its backbone knows; engram learn teaches it more.

    engram learn makes a model that knows nothing else by itself.
    """
    if not imagenet:
        raise ValueError("say what the model is to know: --imagenet; one that knows nothing is made by engram learn")
    from engram.store import new_model

    made = new_model(open_store(model), backbone)
    size, classes = model.stat().st_size, len(made.built_in)
    if as_json:
        print_json({"path": str(model), "bytes": size, "classes": classes})
    note(f"{model} knows {classes:,} classes of ImageNet, {megabytes(size)}; teach it more with engram learn")
