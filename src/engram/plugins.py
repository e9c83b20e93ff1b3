"""What packages add to engram: the entry points of a group, found by name and imported when they are used."""

import tomllib
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path


def registered(group: str) -> list[EntryPoint]:
    """The entry points of a group, this package's own first."""
    return [*_of_checkout(group), *entry_points(group=group)]


def _of_checkout(group: str) -> list[EntryPoint]:
    """What a checkout's pyproject.toml registers: what was installed of it may be older."""
    pyproject = Path(__file__).parents[2] / "pyproject.toml"
    project = tomllib.loads(pyproject.read_text())["project"] if pyproject.is_file() else {}
    own = project.get("entry-points", {}) if project.get("name") == "engram-learn" else {}
    return [EntryPoint(name, value, group) for name, value in own.get(group, {}).items()]
