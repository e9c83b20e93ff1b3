"""Presets: every hyper-parameter of a benchmark row, spelled out in one TOML file."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from typing import Any

from engram.methods.prototypes import PrototypeConfig

_FOLDER = files("engram.benchmark") / "presets"
_FIELDS = {f.name: f for f in fields(PrototypeConfig)}


@dataclass(frozen=True)
class Preset:
    """One row: a data set, the row's name, and the method's settings."""

    name: str
    dataset: str
    method: str
    config: PrototypeConfig


def preset_names() -> list[str]:
    """The presets that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir() if entry.name.endswith(".toml"))


def load_preset(name: str, changes: Sequence[str] = ()) -> Preset:
    """Read a preset; `changes` are texts like ``"base_epochs=10"``."""
    if name not in preset_names():
        raise ValueError(f"no preset is called {name!r}; there are {', '.join(preset_names())}")
    content = tomllib.loads((_FOLDER / f"{name}.toml").read_text())
    config = PrototypeConfig(**{key: _value(value) for key, value in content["config"].items()})
    return Preset(
        name, content["dataset"], content["method"], replace(config, **parse_settings(changes, list(_FIELDS)))
    )


def parse_settings(changes: Sequence[str], known: Sequence[str]) -> dict[str, Any]:
    """Settings given as texts like ``"base_epochs=10"``, by name; only `known` names."""
    parsed = {}
    for change in changes:
        key, equals, text = (part.strip() for part in change.partition("="))
        if not equals or key not in known:
            raise ValueError(f"--set {change!r} is not NAME=VALUE with one of {', '.join(known)}")
        try:
            parsed[key] = _value(tomllib.loads(f"value = {text}")["value"])
        except tomllib.TOMLDecodeError:
            parsed[key] = _value(text)  # a bare word is a string
    return parsed


def _value(value: Any) -> Any:
    """TOML has no null: "none" is None."""
    return None if value == "none" else tuple(value) if isinstance(value, list) else value
