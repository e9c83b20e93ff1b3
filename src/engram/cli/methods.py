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
    from engram.learners.registry import MissingMethodError, find, names

    found, missing = {}, {}
    for name in names():
        try:
            found[name] = (learner := find(name)), learner.settings_of()
        except MissingMethodError as error:
            missing[name] = str(error)
    if missing:
        complain(f"cannot be used here: {', '.join(missing)}: {next(iter(missing.values()))}")
    if as_json:
        print_json({name: {**asdict(one.about), "settings": made} for name, (one, made) in found.items()})
        return
    for name, (learner, made) in found.items():
        about = learner.about
        typer.echo(f"{name:<12}{about.title}. {about.paper}")
        kept = f"stores of a class: {about.per_class}; old samples: {'kept' if about.keeps_samples else 'none'}"
        more = (f"; is given: {about.given}" if about.given else "") + ("; can be merged" if about.merges else "")
        typer.echo(" " * 12 + kept + more)
        settings = ", ".join(f"{setting}={_shown(value)}" for setting, value in made.items())
        typer.echo(" " * 12 + (f"settings: {settings}" if settings else "no settings"))


def _shown(value: Any) -> str:
    """A setting as --set takes it."""
    if value is None:
        return "none"
    return json.dumps(value) if isinstance(value, bool | tuple) else str(value)
