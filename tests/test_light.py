"""What a command needs is loaded, and nothing heavier: asked of real commands."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from toys import paint

HEAVY = {"torch", "scipy", "sklearn", "pandas"}
RESEARCH = {"paper", "peers", "bench", "backbones"}
COMMANDS = """
import json, sys
from engram.cli import main
codes = []
for line in sys.argv[1:]:
    sys.argv = ["engram", *line.split()]
    try:
        main()
    except SystemExit as end:
        codes.append(end.code)
open("loaded", "w").write(json.dumps([codes, sorted(sys.modules)]))
"""


def loaded_by(folder: Path, *lines: str) -> tuple[list[int], set[str]]:
    """The exit codes of commands in a process of their own, and what it had imported in the end."""
    done = subprocess.run([sys.executable, "-c", COMMANDS, *lines], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    codes, names = json.loads((folder / "loaded").read_text())
    return codes, set(names)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("light")
    paint(folder / "pictures", "red", "green", n=3)
    codes, names = loaded_by(folder, "learn m.engram pictures")
    assert codes == [0]
    assert not names & HEAVY
    return folder


def test_a_question_loads_what_it_needs(place):
    codes, names = loaded_by(place, "predict m.engram pictures/red/0-0.png")
    assert codes == [0]
    assert not names & HEAVY
    assert len([name for name in names if name.split(".")[0] == "engram"]) <= 45


def test_all_that_is_done_with_a_model_loads_neither_research_nor_what_only_research_needs(place):
    paint(place / "second", "blue", n=3)
    lines = ["learn second.engram second", "merge both.engram m.engram second.engram", "evaluate both.engram pictures",
             "info both.engram", "card both.engram", "rename both.engram red rot", "forget both.engram rot --yes",
             "undo both.engram --yes", "history both.engram", "doctor both.engram",
             "export both.engram both.onnx", "new imagenet.engram --imagenet"]  # fmt: skip
    codes, names = loaded_by(place, *lines)
    assert codes == [0] * len(lines)
    assert not names & (HEAVY | {f"engram.{room}" for room in RESEARCH})


@pytest.mark.parametrize(
    ("line", "code"),
    [("--help", 0), ("learn --help", 0), ("predict nowhere.engram x.jpg", 2), ("info nowhere.engram", 2)],
)
def test_what_needs_no_model_loads_not_even_numpy(line, code, tmp_path):
    codes, names = loaded_by(tmp_path, line)
    assert codes == [code]
    assert not names & {*HEAVY, "numpy", "PIL", "onnxruntime"}
