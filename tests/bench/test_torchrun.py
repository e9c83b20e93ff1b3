"""`torchrun … engram bench`: two processes, one run."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from engram.bench.inputs import load_features
from engram.bench.presets import load_preset
from engram.bench.results_file import read_results
from engram.bench.runner import Bench, run_bench

SETTINGS = ("layers=[32, 16]", "base_epochs=2", "increment_epochs=2")
IDEAL = {"backbone": "pixels", "accuracy": 0.9, "recipe": {}, "validation": {}}


def accuracies(results: Path) -> list[float]:
    tasks = [t for record in read_results(results)["records"] for o in record["orders"] for t in o["tasks"]]
    return [task[part] for task in tasks for part in ("alpha_base", "alpha_new", "alpha_all")]


def test_two_processes_go_on_with_one_run_and_the_first_writes_and_prints(tmp_path):
    """The second goes on from what the first one reads; its own files it neither reads, nor changes, nor adds to."""
    alone, apart = tmp_path / "alone", tmp_path / "apart"
    other = apart / "1" / "run" / "state" / "digits-mas-order1" / "learner.engram"
    other.parent.mkdir(parents=True)
    other.write_text("no model")
    (alone / "state").mkdir(parents=True)
    (alone / "state" / "ideal.json").write_text(json.dumps(IDEAL))
    preset, inputs = load_preset("digits-mas", SETTINGS), load_features("digits", device="cpu")
    bench = Bench("digits", "pixels", inputs.train, inputs.test, alone, base=7, order_seeds=range(2), device="cpu")

    def stop(name, seed, task, tasks, epoch, done):
        if seed == 1 and task == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_bench(bench, [preset], stop)
    left = {path.relative_to(alone).as_posix() for path in alone.rglob("*") if path.is_file()}
    assert left == {
        "state/ideal.json",
        "state/digits-mas-order0/course.json",
        "state/digits-mas-order1/learner.engram",
    }
    shutil.copytree(alone, apart / "0" / "run")

    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    protocol = ["--orders", "2", "--base", "7", "--device", "cpu", "--out", "run", "--json"]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += [str(Path(__file__).parent / "apart.py"), str(apart), "bench", "digits", "--method", "mas"]
    done = subprocess.run([*command, *settings, *protocol], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["records"]) == 1
    assert [path for path in (apart / "1").rglob("*") if path.is_file()] == [other]
    assert other.read_text() == "no model"

    run_bench(bench, [preset])
    found, expected = (accuracies(folder / "results.json") for folder in (apart / "0" / "run", alone))
    assert len(found) == 2 * 4 * 3
    assert found == pytest.approx(expected, abs=0.005)  # rounding may turn an answer over
    assert (apart / "0" / "run" / "report.html").exists()


def test_the_package_is_a_command():
    done = subprocess.run([sys.executable, "-m", "engram", "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout.strip().count(".") == 2
