"""Presets: every hyper-parameter of a benchmark row, spelled out in one TOML file."""

import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from engram.bench.learners import find_method, on_device
from engram.learners.base import Learner
from engram.settings import as_setting, parse_settings

_FOLDER = files("engram.bench") / "presets"


@dataclass(frozen=True)
class Preset:
    """One row: a data set, the row's name, the learner and its settings."""

    name: str
    dataset: str
    method: str
    learner: type[Learner]
    config: Any
    variant: str = ""  # what tells a changed preset from the one it was

    def new(self, seed: int = 0, device: str = "auto") -> Learner:
        """A learner with these settings that knows nothing."""
        return on_device(self.learner.new(asdict(self.config), seed=seed), device)


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
    learner = find_method(content.get("learner", "prototypes"))
    settings = {key: as_setting(value) for key, value in content["config"].items()} | parse_settings(changes)
    return Preset(name, content["dataset"], content["method"], learner, learner.configure(settings))
