"""The command line, run as a person would run it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

import engram


def engram_command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from engram.cli import main; main()", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, engram_command("demo", "--json", "-", "--device", "cpu", cwd=folder)


def test_demo_writes_its_numbers(demo):
    _, process = demo
    assert process.returncode == 0, process.stderr
    result = json.loads(process.stdout)
    assert result["dataset"] == "digits"
    assert 0.9 < result["alpha_ideal"] <= 1
    assert [row["method"] for row in result["rows"]] == ["mas", "si", "mas-lof", "si-lof", "finetune"]
    for row in result["rows"]:
        assert set(row) == {"method", "psi_base", "psi_new", "psi_all", "seconds"}
        assert row["seconds"] > 0
        assert 0 <= row["psi_new"] <= 1
        assert f"{row['psi_all']:.3f}" in process.stderr  # the table


def test_demo_shows_forgetting_and_remembering(demo):
    rows = {row["method"]: row for row in json.loads(demo[1].stdout)["rows"]}
    assert rows["finetune"]["psi_base"] < 0.4
    for method in ("mas", "si", "mas-lof", "si-lof"):
        assert rows[method]["psi_base"] > 0.85, method
        assert rows[method]["psi_all"] > 0.85, method


def test_demo_draws_a_picture(demo):
    folder, _ = demo
    with Image.open(folder / "engram-demo.png") as picture:
        assert picture.width > 800
        assert len(picture.convert("RGB").getcolors(1 << 24)) > 100


def test_version_and_help(tmp_path):
    assert engram_command("--version", cwd=tmp_path).stdout.strip() == engram.__version__
    assert "demo" in engram_command("--help", cwd=tmp_path).stdout


def test_an_error_is_one_line_that_says_what_to_do(tmp_path):
    process = engram_command("demo", "--device", "warp", cwd=tmp_path)
    assert process.returncode == 2
    assert process.stderr.strip() == "error: unknown device 'warp'; use 'auto', 'cpu' or 'cuda'"
    assert not process.stdout
