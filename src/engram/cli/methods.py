"""The command `methods`."""

from dataclasses import asdict

import typer

from engram.cli.app import app, print_json
from engram.cli.options import RESEARCH, AsJson


@app.command(rich_help_panel=RESEARCH)
def methods(as_json: AsJson = False) -> None:
    """List the methods: their papers, what they store of a class, and what they are given beyond the protocol."""
    from engram.methods import METHODS

    if as_json:
        print_json({name: asdict(learner.about) for name, learner in METHODS.items()})
        return
    for name, learner in METHODS.items():
        about = learner.about
        typer.echo(f"{name:<12}{about.title}. {about.paper}")
        kept = f"stores of a class: {about.per_class}; old samples: {'kept' if about.keeps_samples else 'none'}"
        more = (f"; is given: {about.given}" if about.given else "") + ("; can be merged" if about.merges else "")
        typer.echo(" " * 12 + kept + more)
