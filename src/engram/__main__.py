"""`python -m engram` is the command `engram`."""

from engram.cli import run

run()
