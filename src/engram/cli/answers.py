"""Options about answers that `predict` and `watch` have, and an answer in words."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from engram.cli.app import complain
from engram.cli.options import percent
from engram.names import SURE

if TYPE_CHECKING:
    from engram.store import Answer

Among = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|NAME,NAME…", help="Answer with these classes only: a file of names, one a line, or a list."
    ),
]
Taxonomy = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A CSV of class,parent,grandparent,…: where no class is likely enough, answer with what is above.",
    ),
]
Sure = Annotated[
    float | None,
    typer.Option(help="With --taxonomy: how likely an answer has to be.", show_default="0.8"),
]


def choose_classes(known: Sequence[str], among: str) -> list[str]:
    """The classes that may be answers. A list for a region names more than any model knows, so that is no error."""
    listed = os.path.isfile(among)  # unlike Path.is_file, not an error where so many are named that no file could be
    names = Path(among).read_text(encoding="utf-8").splitlines() if listed else among.split(",")
    wanted = list(dict.fromkeys(name.strip() for name in names if name.strip()))
    if strangers := [name for name in wanted if name not in set(known)]:
        complain(f"not known to the model, so never an answer: {', '.join(strangers)}")
    if len(strangers) == len(wanted):
        raise ValueError(f"the model knows none of the classes in --among {among}")
    return [name for name in wanted if name not in strangers]


def choose_names(taxonomy: Path | None, sure: float | None) -> tuple[dict[str, str] | None, float]:
    """What is above each name, and how likely an answer has to be."""
    likely = SURE if sure is None else sure
    if taxonomy is None:
        return None, likely
    from engram.store import read_taxonomy

    return read_taxonomy(taxonomy), likely


def require_taxonomy(taxonomy: Path | None, sure: float | None) -> None:
    """Refuse --sure alone, before anything slow is imported."""
    if sure is not None and taxonomy is None:
        raise ValueError("--sure belongs to --taxonomy")


def answer_line(answer: "Answer") -> str:
    """An answer for people."""
    best = ", ".join(f"{one.label} {percent(one.probability)}" for one in answer.top)
    at = "" if answer.seconds is None else f" at {answer.seconds:g} s"
    box = f" {list(answer.box)}" if answer.box else ""
    return f"{answer.path}{at}{box}: {answer.label} ({best})"
