"""The `engram` command: thin, calls the rest."""

# Each module registers its commands, in the order in which the help shows them; `main` adds those of other packages.
from engram.cli import learn as learn  # isort: skip
from engram.cli import new as new  # isort: skip
from engram.cli import predict as predict  # isort: skip
from engram.cli import evaluate as evaluate  # isort: skip
from engram.cli import watch as watch  # isort: skip
from engram.cli import serve as serve  # isort: skip
from engram.cli import label_studio as label_studio  # isort: skip
from engram.cli import export as export  # isort: skip
from engram.cli import doctor as doctor  # isort: skip
from engram.cli import model as model  # isort: skip
from engram.cli import merge as merge  # isort: skip
from engram.cli import cache as cache  # isort: skip
from engram.cli import methods as methods  # isort: skip
from engram.cli.app import main

__all__ = ["main"]
