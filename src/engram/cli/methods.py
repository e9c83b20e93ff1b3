"""The command `methods`."""

import json
from dataclasses import asdict
from typing import Any

import typer

from engram.cli.app import app, complain, print_json
from engram.cli.options import RESEARCH, AsJson


@app.command(rich_help_panel=RESEARCH)
def methods(as_json: AsJson = False) -> None:
    """List the methods: their papers, what they store of a class, what they are given, and their settings for --set."""
    from engram.methods import METHODS, MissingMethodError, find_method

    found = {}
    for name in METHODS:
        try:
            found[name] = find_method(name)
        except MissingMethodError as error:
            complain(str(error))
    if as_json:
        print_json({name: {**asdict(one.about), "settings": asdict(one.configure())} for name, one in found.items()})
        return
    for name, learner in found.items():
        about = learner.about
        typer.echo(f"{name:<12}{about.title}. {about.paper}")
        kept = f"stores of a class: {about.per_class}; old samples: {'kept' if about.keeps_samples else 'none'}"
        more = (f"; is given: {about.given}" if about.given else "") + ("; can be merged" if about.merges else "")
        typer.echo(" " * 12 + kept + more)
        settings = ", ".join(f"{setting}={_shown(value)}" for setting, value in asdict(learner.configure()).items())
        typer.echo(" " * 12 + (f"settings: {settings}" if settings else "no settings"))


def _shown(value: Any) -> str:
    """A setting as --set takes it."""
    if value is None:
        return "none"
    return json.dumps(value) if isinstance(value, bool | tuple) else str(value)
