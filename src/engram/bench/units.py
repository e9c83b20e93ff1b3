"""Numbers as people read them."""

from collections.abc import Mapping
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


def count(number: int, noun: str) -> str:
    """A number with its noun."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
