"""Settings given as text, on a command line or in a preset."""

import tomllib
from collections.abc import Sequence
from typing import Any


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
