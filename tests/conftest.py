"""Running commands in this process, because torch takes seconds to import."""

import io
import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent / "store"))  # toys, for everybody
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the commands do; several tests run at once


@dataclass
class Outcome:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def engram(monkeypatch, capsys, tmp_path) -> Callable[..., Outcome]:
    from engram import cli
    from engram.cli import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object, stdin: bytes = b"", terminal: bool = False) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["engram", *map(str, arguments)])
        given = io.TextIOWrapper(io.BytesIO(stdin))
        monkeypatch.setattr(given, "isatty", lambda: terminal)
        monkeypatch.setattr(sys, "stdin", given)
        monkeypatch.setattr(app.console, "quiet", False)
        monkeypatch.setattr(app, "_debugging", False)
        with pytest.raises(SystemExit) as end:
            cli.main()
        captured = capsys.readouterr()
        return Outcome(int(end.value.code or 0), captured.out, captured.err)

    return run
