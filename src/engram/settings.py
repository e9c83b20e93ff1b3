"""Settings of a method: given as text, on a command line or in a preset, and checked against what they are to be."""

import math
import tomllib
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np


def parse_settings(changes: Sequence[str]) -> dict[str, Any]:
    """Settings given as texts like ``"base_epochs=10"``, by name.

    >>> parse_settings(["layers=[64, 32]", "pairs=all", "feature_rms=none"])
    {'layers': (64, 32), 'pairs': 'all', 'feature_rms': None}
    """
    parsed = {}
    for change in changes:
        key, equals, text = (part.strip() for part in change.partition("="))
        if not equals or not key:
            raise ValueError(f"--set {change!r} is not NAME=VALUE")
        try:
            parsed[key] = as_setting(tomllib.loads(f"value = {text}")["value"])
        except tomllib.TOMLDecodeError:
            parsed[key] = as_setting(text)  # a bare word is a string
    return parsed


def as_setting(value: Any) -> Any:
    """A TOML value as a configuration takes it. TOML has no null: "none" is None."""
    return None if value == "none" else tuple(value) if isinstance(value, list) else value


def plain(value: Any) -> Any:
    """A value of numpy's as Python's, which JSON can hold."""
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return tuple(plain(one) for one in value)
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.items()}
    return value


def require_kind(name: str, value: Any, kind: Any) -> None:
    """Refuse a plain value that is not of the kind its dataclass declares; which numbers are possible, that knows."""
    if expected := _expected(value, kind):
        raise ValueError(f"{name} must be {expected}, not {value!r}")


def _expected(value: Any, kind: Any) -> str:
    """What is expected in place of the value; nothing if it is of that kind."""
    if kind is Any:
        return ""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        wanted = [_expected(value, one) for one in inner]
        text = " or ".join(wanted) if all(wanted) else ""
        return text.replace(" or ", ", ", text.count(" or ") - 1)
    if origin is Literal:
        fits = any(value == one and type(value) is type(one) for one in inner)
        return "" if fits else ", ".join(map(repr, inner[:-1])) + f" or {inner[-1]!r}"
    if origin is tuple:
        fits = isinstance(value, tuple) and not any(_expected(one, inner[0]) for one in value)
        return "" if fits else "texts in brackets" if inner[0] is str else "whole numbers in brackets, as [64, 32]"
    if origin is not None:
        fits = isinstance(value, origin) and not any(_expected(one, inner[1]) for one in value.values())
        return "" if fits else "values by name"
    if kind is float:
        fits = type(value) in (int, float) and math.isfinite(value)
        return "" if fits else "a number"
    words = {int: "a whole number", bool: "true or false", str: "text", types.NoneType: "None"}
    return "" if type(value) is kind else words.get(kind, kind.__name__)
