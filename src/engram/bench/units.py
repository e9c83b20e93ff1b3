"""Numbers as people read them."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any


def size(amount: float) -> str:
    """Bytes, in powers of ten as the paper has them."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if amount >= factor:
            return f"{amount / factor:,.3g} {unit}" if amount < 1000 * factor else f"{amount / factor:,.0f} {unit}"
    return f"{amount:,.0f} B"


def seconds(value: float) -> str:
    """A duration, to three digits."""
    return f"{value:,.0f} s" if value >= 100 else f"{value:.3g} s"


def spread(measured: Mapping[str, Any]) -> str:
    """A mean over class orders, and its standard deviation where there is more than one."""
    several = len(measured["values"]) > 1 and measured.get("std") is not None
    return f"{measured['mean']:.3f}" + (f" ± {measured['std']:.3f}" if several else "")


def short_number(value: float) -> str:
    """Three digits after the point, without the zero before it, as accuracies are printed in a sentence."""
    return f"{round(value, 3) + 0.0:.3f}".replace("0.", ".", 1).replace("-", "−")  # + 0.0: there is no −.000


def join_words(words: Sequence[str]) -> str:
    """A list in a sentence: one, two and three."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def wrap(text: str, indent: str = "") -> str:
    """Prose in lines that a person would write."""
    return textwrap.fill(text, 125, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
