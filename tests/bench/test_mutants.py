"""Deliberate mistakes are noticed; benchmarks/mutants.py makes them."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

mutants = pytest.importorskip("mutants")
LISTED = mutants.load()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_mistake_is_noticed():
    process = subprocess.run([sys.executable, "benchmarks/mutants.py"], cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    assert f"{len(LISTED)} of {len(LISTED)} killed" in process.stdout


@pytest.mark.parametrize("mutant", LISTED, ids=lambda mutant: mutant.name)
def test_every_mistake_can_still_be_made(mutant, tmp_path):
    """If this fails, its line was changed: change the text in benchmarks/mutants.toml with it."""
    place = tmp_path / "engram" / mutant.file
    place.parent.mkdir(parents=True)
    shutil.copy(ROOT / "src" / "engram" / mutant.file, place)
    mutant.apply(tmp_path)
    compile(place.read_text(), mutant.file, "exec")
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text() if name else (ROOT / path).is_file(), test


def test_what_becomes_of_a_mistake(tmp_path):
    for path, text in {
        "src/engram/__init__.py": "",
        "src/engram/half.py": "def half(x):\n    return x / 2  # of it\n",
        "tests/test_half.py": "from engram.half import half\n\ndef test_half():\n    assert half(4) == 2\n",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    wrong = mutants.Mutant("wrong", "a third", "half.py", "x / 2", "x / 3", ("tests/test_half.py::test_half",))
    assert mutants.check_unchanged([wrong], tmp_path) is None
    assert mutants.judge(wrong, tmp_path).startswith("killed by tests/test_half.py::test_half - assert")
    assert mutants.judge(replace(wrong, old="of it", new="of that"), tmp_path) == "SURVIVED"
    assert mutants.judge(replace(wrong, old="x // 2"), tmp_path).startswith("does not apply")
    assert mutants.judge(replace(wrong, new="x / / 2"), tmp_path).startswith("cannot be tested")
    assert mutants.judge(replace(wrong, tests=("tests/test_half.py::test_third",)), tmp_path).startswith("cannot be")
    (tmp_path / "tests" / "test_half.py").write_text("def test_half():\n    assert False\n")
    assert "fail without any mistake" in mutants.check_unchanged([wrong], tmp_path)
    assert "x / 2" in (tmp_path / "src" / "engram" / "half.py").read_text(), "mistakes are made in a copy"
