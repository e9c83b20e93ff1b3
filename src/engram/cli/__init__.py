"""The `engram` command: thin, calls the rest."""

from engram.cli.app import main

__all__ = ["main"]
