"""Running commands in this process: starting one takes longer than what most of them do."""

import contextlib
import io
import json
import multiprocessing
import os
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent / "store"))  # films, for everybody
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # as the commands do; several tests run at once

# What takes an extra is not collected where that is not installed, as in `make test-base`.
_FOLDERS = {
    "paper": "torch",
    "peers": "torch",
    "bench": "torch",
    "backbones": "torch",
    "web": "fastapi",
    "cluster": "dask",
}
_EXTRAS = ("torch", "scipy", "sklearn", "fastapi", "httpx", "onnx", "matplotlib", "distributed")
_missing = {name for name in {*_FOLDERS.values(), *_EXTRAS} if find_spec(name) is None}
_imports = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)


def _takes_more(path: Path) -> bool:
    text = path.read_text()
    estimator = "sklearn" in _missing and "import IncrementalClassifier" in text
    return estimator or not _missing.isdisjoint(_imports.findall(text))


collect_ignore = [folder for folder, needed in _FOLDERS.items() if needed in _missing]
collect_ignore += [str(path) for path in Path(__file__).parent.rglob("test_*.py") if _takes_more(path)]


@dataclass
class Outcome:
    """What a command said and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run_command(*arguments: object, stdin: bytes = b"", terminal: bool = False) -> int:
    """`engram ARGUMENTS…`, up to its exit code."""
    from engram import cli
    from engram.cli import app

    given = io.TextIOWrapper(io.BytesIO(stdin))
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():  # which a command turns off
        patch.setattr(sys, "argv", ["engram", *map(str, arguments)])
        patch.setattr(given, "isatty", lambda: terminal)
        patch.setattr(sys, "stdin", given)
        patch.setattr(app.console, "quiet", False)
        patch.setattr(app, "_debugging", False)
        with pytest.raises(SystemExit) as end:
            cli.main()
    return int(end.value.code or 0)


@pytest.fixture
def engram(monkeypatch, capsys, tmp_path) -> Callable[..., Outcome]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object, stdin: bytes = b"", terminal: bool = False) -> Outcome:
        code = run_command(*arguments, stdin=stdin, terminal=terminal)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def engram_in() -> Callable[..., Outcome]:
    """The same in a folder of choice, for what several tests share."""

    def run(folder: Path, *arguments: object) -> Outcome:
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setenv("COLUMNS", "200")
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = run_command(*arguments)
        return Outcome(code, out.getvalue(), err.getvalue())

    return run


@pytest.fixture(scope="session")
def processes() -> Any:
    """Starts processes in which the package is imported already, where the system can fork."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["engram.cli", "engram.store.learn"])
    return context


@pytest.fixture(scope="session")
def trained() -> dict[str, Any]:
    """The plan of a method that trains a network, where what teaches it is installed."""
    from toys import TRAINED, missing

    if reason := missing(TRAINED["method"], teaching=True):
        pytest.skip(reason)
    return TRAINED
