"""The benchmark: presets, results field by field, resuming after a kill."""

import shutil
import sys
import time
from dataclasses import fields
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from engram.bench.offline import Recipe, offline_ideal
from engram.bench.presets import load_preset, preset_for, preset_names
from engram.bench.results_file import read_results
from engram.cli import main

ROWS = ("--method", "mas", "--method", "si-lof")
QUICK = ("--orders", "2", "--device", "cpu", "--set", "base_epochs=3", "--set", "increment_epochs=2")


def numbers(path: Path) -> list[dict]:
    """The results without what may differ from run to run."""
    records = read_results(path)["records"]
    for record in records:
        for order in record["orders"]:
            for task in order["tasks"]:
                del task["seconds"], task["peak_memory_bytes"]
    return records


def test_every_row_of_the_paper_has_a_preset_that_names_only_real_options():
    wanted = {f"{d}-{m}" for d in ("cifar100", "cub200") for m in ("mas", "si", "mas-lof", "si-lof")}
    assert wanted <= set(preset_names())
    folder = Path(sys.modules["engram.bench.presets"].__file__).parent / "presets"
    for name in preset_names():
        preset = load_preset(name)
        assert f"{preset.dataset}-{preset.method}" == name
        text = (folder / f"{name}.toml").read_text()
        for field in fields(preset.config):
            assert f"\n{field.name} = " in text, f"{name} leaves {field.name} to the default"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cifar100-mas", ("mas", False, 100, 1e-4, 1.0, 50, 2e-4)),
        ("cifar100-si", ("si", False, 100, 1e-4, 1.0, 10, 1e-4)),
        ("cifar100-mas-lof", ("mas", True, 100, 2e-4, 0.2, 50, 1e-4)),
        ("cifar100-si-lof", ("si", True, 100, 2e-4, 0.2, 25, 2e-4)),
        ("cub200-mas", ("mas", False, 100, 2e-4, 0.5, 50, 2e-4)),
        ("cub200-si", ("si", False, 100, 2e-4, 0.5, 50, 2e-4)),
        ("cub200-mas-lof", ("mas", True, 100, 2e-4, 0.2, 50, 2e-4)),
        ("cub200-si-lof", ("si", True, 100, 2e-4, 0.2, 25, 2e-4)),
    ],
)
def test_presets_are_the_papers_schedules(name, expected):
    c = load_preset(name).config
    found = (c.consolidation, c.outlier_exclusion, c.base_epochs, c.base_rate, c.base_decay, c.increment_epochs)
    assert (*found, c.increment_rate) == expected
    assert (c.lambda_mse, c.lambda_cos, c.lambda_l1, c.lambda_reg, c.lambda_center) == (1, 10, 1e-3, 10, 1)
    assert (c.batch_size, c.base_decay_every, c.pairs) == (64, 25, "random")


def test_settings_can_be_changed_by_name():
    config = load_preset("cifar100-mas", ["base_epochs=3", "layers=[8, 4]", "consolidation=none", "pairs=all"]).config
    assert (config.base_epochs, config.layers, config.consolidation, config.pairs) == (3, (8, 4), None, "all")
    with pytest.raises(ValueError, match="prototypes has no setting 'epochs'; it has layers"):
        load_preset("cifar100-mas", ["epochs=3"])
    with pytest.raises(ValueError, match="base_rate must be"):
        load_preset("cifar100-mas", ["base_rate=-1"])
    with pytest.raises(ValueError, match="no preset is called 'cifar10-mas'"):
        load_preset("cifar10-mas")


@pytest.fixture(scope="module")
def finished(tmp_path_factory, engram_in) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    recipes = [Recipe(hidden=hidden, dropout=0.2, rate=3e-3, epochs=10, batch_size=64) for hidden in (32, 64)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engram.bench.runner.offline_ideal", partial(offline_ideal, recipes=recipes))
        done = engram_in(folder, "bench", "digits", *ROWS, *QUICK, "--out", "run", "--json")
    assert done.code == 0, done.err
    said, written = done.json, read_results(folder / "run" / "results.json")
    assert said["out"] == "run"
    for one, other in zip(said["records"], written["records"], strict=True):
        assert one == {key: other[key] for key in one}
        assert {"method", "psi_base", "psi_new", "psi_all", "final_accuracy"} <= one.keys()
    return folder / "run"


def test_results_hold_every_field(finished):
    results = read_results(finished / "results.json")
    assert results["format"] == 1
    run = results["run"]
    assert set(run) >= {"engram", "torch", "python", "numpy", "git_revision", "device", "started", "command", "seed"}
    assert [record["method"] for record in results["records"]] == ["mas", "si-lof"]
    for record in results["records"]:
        assert (record["dataset"], record["backbone"]) == ("digits", "pixels")
        assert record["preset"] == f"digits-{record['method']}"
        assert record["config"]["base_epochs"] == 3
        assert record["protocol"] == {"base": 5, "step": 1, "classes": 10, "order_seeds": [0, 1], "initialisations": 1}
        assert 0.9 < record["alpha_ideal"]["accuracy"] <= 1
        assert record["alpha_ideal"]["recipe"]["hidden"] in (32, 64)
        assert len(record["alpha_ideal"]["validation"]) == 2
        assert record["paper_ideal"] is None  # the paper has no digits
        for key in ("psi_base", "psi_new", "psi_all", "average_incremental_accuracy", "final_accuracy", "forgetting"):
            spread = record[key]
            assert len(spread["values"]) == 2
            assert spread["mean"] == pytest.approx(sum(spread["values"]) / 2)
            assert spread["std"] == pytest.approx(abs(spread["values"][0] - spread["values"][1]) / 2**0.5)
        for order, value in zip(record["orders"], record["psi_base"]["values"], strict=True):
            assert [task["classes_seen"] for task in order["tasks"]] == [5, 6, 7, 8, 9, 10]
            later = [task["alpha_base"] for task in order["tasks"][1:]]
            assert value == pytest.approx(sum(later) / 5 / record["alpha_ideal"]["accuracy"], abs=1e-5)
            for task in order["tasks"]:
                assert task["seconds"] > 0
                assert task["peak_memory_bytes"] > 0
                assert task["kept_bytes"]["class memory"] == task["classes_seen"] * (256 * 4 + 8)
        assert record["orders"][0]["classes"] != record["orders"][1]["classes"]
        assert sum(map(sum, record["confusion"]["counts"])) == 450
        diagonal = sum(row[i] for i, row in enumerate(record["confusion"]["counts"]))
        assert diagonal / 450 == pytest.approx(record["final_accuracy"]["values"][0])
        found = record["predictions"]
        right = (np.asarray(found["courses"]) == found["truth"]).mean(axis=1)
        assert right == pytest.approx(record["final_accuracy"]["values"], abs=1e-6)
        encoder = (64 * 256 + 256 + 256 * 256 + 256) * 4
        decoder = (256 * 256 + 256 + 256 * 64 + 64) * 4
        memory = record["memory"]
        assert memory["as_the_paper_counts"] == {"100": 100 * 1024, "1000": 1000 * 1024}
        assert memory["kept_between_increments"]["1000"] == encoder + decoder + 1000 * (1024 + 8)
        # importance and anchor are of the encoder's size; the scale of the features has 4 bytes
        assert memory["all_the_next_increment_needs"]["1000"] == 2 * encoder + decoder + 4 + 1000 * (1024 + 8)


@pytest.fixture
def run_folder(finished, tmp_path) -> Path:
    """Where a run can go that need not find the offline accuracy again."""
    (tmp_path / "run" / "state").mkdir(parents=True)
    shutil.copy(finished / "state" / "ideal.json", tmp_path / "run" / "state")
    return tmp_path / "run"


def test_a_report_is_written_and_can_be_rebuilt(finished, engram):
    page = (finished / "report.html").read_text()
    assert "digits" in page
    (finished / "report.html").unlink()
    rebuilt = engram("report", finished, "--json")
    assert (rebuilt.code, rebuilt.json) == (0, {"report": str(finished / "report.html")})
    assert (finished / "report.html").stat().st_size == pytest.approx(len(page.encode()), rel=0.05)
    assert not list(finished.rglob("*.engram"))  # when a run has ended only numbers stay


def test_a_killed_run_resumes_and_ends_with_the_same_numbers(finished, run_folder, processes, engram, monkeypatch):
    arguments = ["engram", "bench", "digits", *ROWS, *QUICK, "--out", "run"]
    state = run_folder / "state"
    for part in ("digits-mas-order0", "digits-mas-order1", "digits-si-lof-order0"):
        monkeypatch.setattr(sys, "argv", arguments)  # the process inherits them
        process = processes.Process(target=main)
        process.start()
        deadline = time.monotonic() + 120
        while not (state / part / "learner.engram").exists() and process.is_alive() and time.monotonic() < deadline:
            time.sleep(0.002)
        process.kill()
        process.join()
    assert not (run_folder / "results.json").exists()
    learned = [path.stat().st_mtime_ns for path in sorted(state.glob("*/course.json"))]
    assert learned, "the kills came before anything was finished"
    done = engram(*arguments[1:])
    assert done.code == 0, done.err
    assert numbers(run_folder / "results.json") == numbers(finished / "results.json")
    assert learned == [path.stat().st_mtime_ns for path in sorted(state.glob("*/course.json"))][: len(learned)]


def test_another_run_in_the_same_folder_is_refused(finished, engram):
    done = engram("bench", "digits", "--method", "mas", *QUICK, "--set", "base_rate=0.1", "--out", finished)
    assert done.code == 2
    assert "holds another run's work; choose another --out" in done.err


def test_a_method_without_a_preset_for_the_data_set_has_the_birds(run_folder, engram):
    assert preset_for("cifar100", "slda") == "cifar100-slda"
    assert preset_for("digits", "mas") == "digits-mas"
    assert preset_for("folder", "mas") == "cub200-mas"
    done = engram("bench", "digits", "--method", "slda", "--orders", "1", "--json", "--out", run_folder)
    assert done.code == 0, done.err
    (record,) = done.json["records"]
    assert (record["dataset"], record["method"], record["preset"]) == ("digits", "slda", "cub200-slda")
    assert record["psi_all"]["mean"] > 0.95


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("digits", "--method", "magic"), "no preset is called 'digits-magic'"),
        (("digits", "--set", "epochs=3"), "prototypes has no setting 'epochs'"),
        (("cifar100", "--data", "nowhere"), "nowhere"),
        (("imagenet", "--preset", "cifar100-mas"), "no data set is called 'imagenet'"),
        (("imagenet", "--method", "mas"), "no data set is called 'imagenet'"),
        (("digits", "--method", "mas", "--base", "11"), "cannot split 10 classes into a base of 11"),
    ],
)
def test_what_cannot_be_run_is_one_line_before_anything_is(arguments, message, engram, tmp_path):
    done = engram("bench", *arguments, "--out", "run")
    assert done.code == 2, done.err
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()
