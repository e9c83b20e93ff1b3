"""The command line, run as a person would run it."""

import subprocess
import sys
from pathlib import Path

import engram
from engram import plugins


def engram_command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from engram.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def test_version_and_help(tmp_path):
    assert engram_command("--version", cwd=tmp_path).stdout.strip() == engram.__version__
    assert "learn" in engram_command("--help", cwd=tmp_path).stdout


def test_an_error_is_one_line_that_says_what_to_do(tmp_path):
    process = engram_command("demo", "--device", "warp", cwd=tmp_path)
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith("error: unknown device 'warp'; use auto,")
    assert process.stderr.count("\n") == 1


def test_the_demo_of_the_base_teaches_made_up_pictures_and_names_what_more_takes(engram, monkeypatch):
    monkeypatch.setattr(plugins, "registered", lambda group: [])
    done = engram("demo", "--json", "-")
    assert done.code == 0, done.err
    assert list(done.json) == ["pictures"]
    assert "engram-learn[paper" in done.err
