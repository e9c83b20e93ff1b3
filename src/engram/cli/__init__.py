"""The `engram` command: thin, calls the rest."""

from engram.cli.app import main, run

__all__ = ["main", "run"]
