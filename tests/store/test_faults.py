"""Killed at any moment, or with the disk full at any write: no model is damaged, no class is lost."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def campaign(what: str, number: int, folder: Path, **environment: str) -> dict:
    process = subprocess.run(
        [sys.executable, HERE / "faults.py", what, str(number), folder],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", **environment},
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.fixture(scope="module")
def faulty_disk(tmp_path_factory) -> str:
    if sys.platform != "linux" or not shutil.which("cc"):
        pytest.skip("needs Linux and a C compiler, to stand between the process and its disk")
    library = tmp_path_factory.mktemp("disk") / "faulty_disk.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, HERE / "faulty_disk.c", "-ldl"], check=True)
    return str(library)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(3000)])])
def test_killed_at_random_moments(kills, tmp_path):
    result = campaign("random", kills, tmp_path)
    assert result["kills"] == kills
    assert len(result["stopped_at"]) > 1  # moments that differ


@pytest.mark.parametrize("every", [12, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(3000)])])
def test_killed_or_out_of_room_at_every_write(every, tmp_path, faulty_disk):
    result = campaign("writes", every, tmp_path, LD_PRELOAD=faulty_disk)
    for part in result.values():
        assert part["calls"] > 10
        assert part["killed"] >= part["calls"] // every  # each of them
        assert part["full"] > 0
