"""Presets: every hyper-parameter of a benchmark row, spelled out in one TOML file."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from importlib.resources import files
from typing import Any

from engram.methods import METHODS
from engram.methods.base import Learner

_FOLDER = files("engram.benchmark") / "presets"


@dataclass(frozen=True)
class Preset:
    """One row: a data set, the row's name, the learner and its settings."""

    name: str
    dataset: str
    method: str
    learner: type[Learner]
    config: Any


def preset_names() -> list[str]:
    """The presets that come with the package."""
    return sorted(entry.name.removesuffix(".toml") for entry in _FOLDER.iterdir() if entry.name.endswith(".toml"))


def preset_for(dataset: str, method: str) -> str:
    """The preset of a method on a data set; CUB-200's where the data set has none of its own."""
    own, other = f"{dataset}-{method}", f"cub200-{method}"
    return other if own not in preset_names() and other in preset_names() else own


def load_preset(name: str, changes: Sequence[str] = ()) -> Preset:
    """Read a preset; `changes` are texts like ``"base_epochs=10"``."""
    if name not in preset_names():
        raise ValueError(f"no preset is called {name!r}; there are {', '.join(preset_names())}")
    content = tomllib.loads((_FOLDER / f"{name}.toml").read_text())
    learner = METHODS[content.get("learner", "prototypes")]
    config = learner.config_type(**{key: _value(value) for key, value in content["config"].items()})
    known = [field.name for field in fields(config)]
    return Preset(
        name, content["dataset"], content["method"], learner, replace(config, **parse_settings(changes, known))
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
