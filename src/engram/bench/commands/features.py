"""The command `features`."""

from pathlib import Path
from typing import Annotated

import typer

from engram.bench.commands.options import Source, expand
from engram.cli.app import app, note, print_json, progress
from engram.cli.options import RESEARCH, AsJson


@app.command(rich_help_panel=RESEARCH)
@expand
def features(
    source: Source,
    half: Annotated[bool, typer.Option("--half", help="Keep float16: half the disk space, three digits.")] = False,
    download: Annotated[bool, typer.Option("--download", help="Fetch the data set first if it is not there.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at a picture that cannot be read.")] = False,
    export: Annotated[
        Path | None, typer.Option(help="Also write features and labels to one file, for bench --features elsewhere.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compute the features of a data set once and keep them; a stopped run goes on where it was."""
    from engram.bench.cache import FeatureCache
    from engram.bench.datasets import load
    from engram.bench.inputs import export_features
    from engram.encoders.registry import create

    dataset = source.dataset
    store = FeatureCache(source.cache, dtype="float16" if half else "float32")
    images = load(dataset, source.data, download=download)
    if dataset == "digits":
        raise ValueError("the digits are feature vectors already; choose cifar100, cub200 or folder")
    network = create(source.backbone, source.device, weights=source.weights)
    result: dict[str, object] = {"kept_in": str(store.root), "backbone": network.identity.text}
    for name, split in (("train", images.train), ("test", images.test)):
        if split is None:
            continue
        with progress(f"{dataset} {name}") as update:
            stored = store.fill(split.images, network, strict=strict, progress=update)
        result[name] = {"pictures": len(stored), "features": stored.dim, "skipped": len(stored.skipped)}
        if not as_json:
            typer.echo(f"{dataset} {name}: {len(stored):,} pictures, {stored.dim} features each")
        for skipped, reason in stored.skipped:
            note(f"skipped {skipped}: {reason}")
        if stored.skipped:
            note(f"{len(stored.skipped):,} pictures could not be read and were skipped")
    for aside in store.set_aside:
        note(f"a damaged file of the cache was set aside, and its features were computed again: {aside}")
    if export is not None:
        inputs = source.load(half=half)
        export_features(export, dataset, inputs, half=half)
        result["export"] = str(export)
    if as_json:
        print_json(result)
        return
    typer.echo(f"kept in {store.root} as {network.identity.text}")
    if export is not None:
        typer.echo(f"written to {export}")
