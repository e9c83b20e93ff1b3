"""When two names of classes are likely one."""

import unicodedata
from collections.abc import Iterable

WITHOUT_JOINERS = {0x200C: None, 0x200D: None}  # which Persian words and many emoji are written with


def similar_name(name: str, known: Iterable[str]) -> str | None:
    """The first known name that differs from this one, but only in case or in how it is written in Unicode."""
    return next((other for other in known if other != name and fold_name(other) == fold_name(name)), None)


def fold_name(name: str) -> str:
    """What names have in common that differ only in that."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return unicodedata.normalize("NFKC", folded).translate(WITHOUT_JOINERS)
