"""What a class may be called."""

import unicodedata

UNKNOWN = "unknown"  # what pictures of no class are called
WITHOUT_JOINERS = {0x200C: None, 0x200D: None}


def fold(name: str) -> str:
    """The same for names that differ only in case or in how they are written in Unicode."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded).translate(WITHOUT_JOINERS)


def fault_of_name(name: str) -> str | None:
    """Why a class cannot be called so; None if it can.

    Control characters, and those that turn the direction of writing, are not printable. Joiners are not either, but
    Persian words and many emoji are written with them.
    """
    shown = name.translate(WITHOUT_JOINERS)
    if not shown.strip() or not shown.isprintable():
        return "the name of a class has printable characters, and only such"
    if fold(name.strip()) == UNKNOWN:
        return f"a class cannot be called {UNKNOWN!r}: that is what pictures of no class are called"
    return None


def require_name(name: str) -> None:
    """ValueError if a class cannot be called so."""
    if fault := fault_of_name(name):
        raise ValueError(f"{name!r}: {fault}")
