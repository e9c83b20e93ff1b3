"""What a class may be called, and when two names are likely one."""

import unicodedata
from collections.abc import Iterable

SURE = 0.8  # the probability from which on an answer is called by its name, where there are coarser ones
UNKNOWN = "unknown"  # what pictures of no class are called
WITHOUT_JOINERS = {0x200C: None, 0x200D: None}  # which Persian words and many emoji are written with


def similar_name(name: str, known: Iterable[str]) -> str | None:
    """The first known name that differs from this one, but only in case or in how it is written in Unicode."""
    return next((other for other in known if other != name and fold_name(other) == fold_name(name)), None)


def fold_name(name: str) -> str:
    """What names have in common that differ only in that."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded).translate(WITHOUT_JOINERS)


def fault_of_name(name: str) -> str | None:
    """Why a class cannot be called so; None if it can.

    Control characters, and those that turn the direction of writing, are not printable. Joiners are not either.
    """
    shown = name.translate(WITHOUT_JOINERS)
    if not shown.strip() or not shown.isprintable():
        return "the name of a class has printable characters, and only such"
    if fold_name(name.strip()) == UNKNOWN:
        return f"a class cannot be called {UNKNOWN!r}: that is what pictures of no class are called"
    return None


def require_name(name: str) -> None:
    """ValueError if a class cannot be called so."""
    if fault := fault_of_name(name):
        raise ValueError(f"{name!r}: {fault}")
