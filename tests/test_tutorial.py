"""The tutorial and the README can be pasted, line by line."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from engram import IncrementalClassifier

README = (Path(__file__).parents[1] / "README.md").read_text()
TUTORIAL = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(r"```bash\n(.*?)```", TUTORIAL, re.DOTALL)


def shell(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """As a person would paste it, with the python that runs the tests."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    for name, code in (("python3", '"$@"'), ("engram", '-c "from engram.cli import main; main()" "$@"')):
        (tools / name).write_text(f"#!/bin/sh\nexec {shlex.quote(sys.executable)} {code}\n")
        (tools / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", **variables}
    done = subprocess.run(["bash", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def check(said: list[str]) -> None:
    assert "self test: right 100%" in said[0]
    assert "base: 5 classes learned from 100 pictures" in said[2]
    assert "test/circle/00.png: circle (" in said[3]
    assert len(re.findall(r"^test/triangle/\d\d\.png,triangle,", said[3], re.MULTILINE)) >= 4
    assert "1/1 star: learned from 20 pictures" in said[4]
    right = re.search(r"([\d.]+)% of 30 pictures right", said[4])
    assert right
    assert float(right[1]) > 80
    assert "look again: more/star/05.png was taught as star and looks like circle" in said[5]
    assert "undone: learned more of star" in said[5]
    assert len(re.findall("^strange/stripes/0[0-2].png: unknown ", said[6], re.MULTILINE)) == 3
    assert "learned star from 20 pictures" in said[7]
    assert "test/circle/00.png: circle" not in said[8]
    assert "star is called five-pointed star now" in said[8]
    assert re.search(r"^test/square/00.png: square \d+%$", said[9], re.MULTILINE)
    assert re.search(r"^test/circle/00.png: circle \d+%$", said[9], re.MULTILINE)
    assert "one class of several: circle" in said[10]
    assert "shapes.engram knows 7 classes, from 2 models" in said[10]
    assert "strange/stripes/00.png: stripes (" in said[10]
    assert "test/circle/00.png: circle (" in said[10]


def paste(blocks, engram, tmp_path) -> list[str]:
    """The same lines, with engram in this process: quicker than to import torch for each."""
    said = []
    for block in blocks:
        parts = re.split(r"^(engram .*)\n", block, flags=re.MULTILINE)  # every other part is a command of ours
        texts = []
        for script, command in zip(parts[::2], [*parts[1::2], ""], strict=True):
            if script:
                texts.append(shell(script, tmp_path).stdout)
            if command:
                done = engram(*shlex.split(command)[1:])
                assert done.code == 0, done.err
                texts += [done.out, done.err]
        said.append("\n".join(texts))
    return said


def test_every_line_of_the_tutorial_runs(engram, tmp_path):
    check(paste(BLOCKS, engram, tmp_path))


def test_every_line_of_the_readme_runs(engram, tmp_path, capsys):
    _drawn, learned, asked = paste(re.findall(r"```bash\n(.*?)```", README, re.DOTALL), engram, tmp_path)
    assert "base: 3 classes learned from" in learned
    assert "1/1 hexagon: learned from" in learned
    assert re.search(r"\d% of 60 pictures right", learned)
    assert "test/hexagon/00.png: " in asked
    assert "undone: " in asked
    code = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[1]
    exec(compile(code, "README.md", "exec"), {"IncrementalClassifier": IncrementalClassifier})
    assert capsys.readouterr().out == "['hexagon']\n"


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_every_block_of_the_tutorial_can_be_pasted(tmp_path):
    said = []
    for block in BLOCKS:
        done = shell(block, tmp_path)
        said.append(done.stdout + done.stderr)
    check(said)
