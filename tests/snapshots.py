"""JSON answers as they were: the same fields, of the same types, with the same values wherever those can be the same.

With SNAPSHOTS=write in the environment they are written down in place of being compared.
"""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

# Of these fields, the type alone is compared: times, sizes of files, places in a map that may be turned, versions.
ANY = {
    "when", "learned", "seconds", "seconds_left", "milliseconds", "bytes", "x", "y", "loss", "server", "identity",
    "difference", "scratch memory", "model",
}  # fmt: skip
HEX = re.compile(r"[0-9a-f]{16,}")


class Snapshots:
    """What is in one file, by name; `places` are folders whose names differ from run to run."""

    def __init__(self, path: Path, tolerance: float = 1e-3) -> None:
        self.path, self.writing, self.tolerance = path, os.environ.get("SNAPSHOTS") == "write", tolerance
        self.kept: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}

    def check(self, name: str, found: Any, *places: Path) -> None:
        found = _without_chance(found, places)
        if self.writing:
            self.kept[name] = found
            lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in sorted(self.kept.items()))
            self.path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        _compare(found, self.kept[name], name, self.tolerance)


def _without_chance(value: Any, places: tuple[Path, ...], name: str = "") -> Any:
    if isinstance(value, dict):
        return {key: _without_chance(one, places, key) for key, one in value.items()}
    if isinstance(value, list):
        return [_without_chance(one, places, name) for one in value]
    if name in ANY and value is not None:
        return f"<{type(value).__name__}>" if not isinstance(value, int) or isinstance(value, bool) else "<number>"
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, str):
        for place in places:
            value = value.replace(str(place), "<folder>")
        return HEX.sub("<hex>", value)
    return value


def _compare(found: Any, wanted: Any, where: str, tolerance: float) -> None:
    if isinstance(wanted, dict) and isinstance(found, dict):
        assert list(found) == list(wanted), where
        if wanted.get("history") and wanted["history"][-1].get("what") == "merge":
            # Of models taught within one second, whose events come first in the merged history is chance.
            found, wanted = ({**one, "history": sorted(one["history"], key=str)} for one in (found, wanted))
        for key, value in wanted.items():
            _compare(found[key], value, f"{where}.{key}", tolerance)
    elif isinstance(wanted, list) and isinstance(found, list):
        assert len(found) == len(wanted), where
        for i, value in enumerate(wanted):
            _compare(found[i], value, f"{where}[{i}]", tolerance)
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=2 * tolerance, abs=tolerance), where
    else:
        assert (type(found), found) == (type(wanted), wanted), where
