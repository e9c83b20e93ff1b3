"""The `engram` command: thin, calls the rest."""

from engram.cli import research as research  # registers its commands
from engram.cli.app import main

__all__ = ["main"]
