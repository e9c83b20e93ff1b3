"""The ledger is run from a clean working copy, goes on where it stopped, and says itself what it was run with."""

import hashlib
import itertools
import json
import shutil
import subprocess
import sys
import tarfile
import time
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from engram.bench.inputs import load_features
from engram.bench.offline import Ideal, Recipe
from engram.bench.presets import load_preset
from engram.bench.results_file import read_results, write_json
from engram.settings import parse_settings
from engram.stats import projection

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

equal_memory = pytest.importorskip("equal_memory")
rows = pytest.importorskip("rows")
reproduce = pytest.importorskip("reproduce")

# At equal memory on CUB-200 with the settings of their first twelve trials; to be run again with those chosen since.
OLD_SETTINGS = [f"cub200-{method}-memory" for method in equal_memory.RETUNED_HERE["cub200"]]
LEDGER = ROOT / "results"
RESULTS = [path for folder in (LEDGER, LEDGER / "cpu") for path in sorted(folder.glob("*.json"))]
QUICK = ("base_epochs=2", "increment_epochs=1", "increment_rate=1e-4")


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_results_file_holds_the_rows_that_are_listed_with_the_settings_they_have_now(path):
    """A setting that changes, or a row that moves, without being run again is seen here."""
    listed, records = reproduce.GROUPS[path.stem], read_results(path)["records"]
    for row, record in zip(listed, records, strict=True):
        preset, ran = reproduce.preset_of(row), record["protocol"]
        assert (record["preset"], record.get("name", "")) == (preset.name, row.name)
        config = json.loads(json.dumps(asdict(preset.config)))
        if path.parent == LEDGER and path.stem in OLD_SETTINGS:  # their sizes alone are what they are now
            config = record["config"] | {name: config[name] for name in parse_settings(row.settings)}
        gone = {name: value for name, value in record["config"].items() if name not in config}  # rows of their own now
        assert not any(gone.values())
        assert {name: value for name, value in record["config"].items() if name in config} == config
        assert (ran["order_seeds"], ran["initialisations"]) == (list(reproduce.orders_of(row)), row.seeds)
        assert ran["base"] == (row.base or ran["classes"] // 2)


@pytest.fixture
def folders(tmp_path, monkeypatch):
    (tmp_path / "weights").mkdir()
    (tmp_path / "weights" / "none.safetensors").write_bytes(b"weights")
    groups = {
        "digits-two": [
            rows.Row("digits-mas", "digits", QUICK, orders=2, seeds=2),
            rows.Row("digits-mas", "digits", (*QUICK, "lambda_reg=0"), "λ_reg = 0", orders=1, seeds=1, base=3),
        ],
        "digits-same": [rows.Row("digits-mas", "digits", QUICK, "as published", orders=1, seeds=1)],
        "other": [rows.Row("digits-si", "digits", QUICK)],
    }
    monkeypatch.setattr(reproduce, "GROUPS", groups)
    monkeypatch.setattr(reproduce, "FEATURES", {"digits": rows.Features("digits", "pixels", "none.safetensors")})
    monkeypatch.setattr(reproduce, "clean_revision", lambda: "0123456789abcdef")
    monkeypatch.setattr(reproduce, "run_jobs", run_here)
    ideal = asdict(Ideal(0.9, Recipe(), {}, (0.8, 1.0), 0.1)) | {"backbone": "pixels"}
    write_json(tmp_path / "w" / "0123456789ab" / "digits" / "state" / "ideal.json", ideal)
    return tmp_path


def run_here(function, jobs, workers, initializer, initargs, limit_seconds):
    """One after the other in this process, as the pool would in others."""
    initializer(*initargs)
    began = time.monotonic()
    for job in jobs:
        if time.monotonic() - began >= limit_seconds:
            return
        try:
            yield job, function(job)
        except ValueError as error:
            yield job, error


def run(folders, monkeypatch, only, *more):
    places = {
        "--data": folders,
        "--weights": folders / "weights",
        "--results": folders / "results",
        "--work": folders / "w",
    }
    arguments = [text for name, path in places.items() for text in (name, str(path))]
    command = ["reproduce.py", *arguments, "--only", only, "--device", "cpu", "--workers", "1", *more]
    monkeypatch.setattr(sys, "argv", command)
    return reproduce.main()


def test_rows_are_run_once_and_written_with_what_they_were_run_with(folders, monkeypatch, capsys):
    assert run(folders, monkeypatch, "digits-*") == 0
    said = capsys.readouterr().out
    assert said.count("digits-mas+") == 5  # two orders x two initialisations, the variant, and no job twice
    assert not (folders / "results" / "other.json").exists()
    two, same = (read_results(folders / "results" / f"digits-{name}.json") for name in ("two", "same"))
    plain, variant = two["records"]
    assert [(o["seed"], o["init"]) for o in plain["orders"]] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    final = plain["final_accuracy"]["values"]
    assert len(set(final)) > 2  # another initialisation is another network
    assert (variant["name"], variant["config"]["lambda_reg"], variant["protocol"]["base"]) == ("λ_reg = 0", 0, 3)
    assert same["records"][0]["orders"] == plain["orders"][:1]  # the same job, not another one
    assert plain["alpha_ideal"]["values"] == [0.8, 1.0]
    inputs = load_features("digits")
    about = two["run"]
    assert about["features_sha256"] == reproduce.hash_of(inputs.train, inputs.test)
    assert about["weights_sha256"] == hashlib.sha256(b"weights").hexdigest()
    assert about["command"] == "make reproduce DATA=data WEIGHTS=weights ONLY=digits-two"
    environment = (folders / "results" / about["environment"]).read_text()
    assert f"torch=={about['torch'].split('+')[0]}" in environment

    course = next((folders / "w").rglob(f"digits-mas+{'+'.join(QUICK)}-order1/course.json"))
    content = json.loads(course.read_text())
    content["content"]["tasks"][-1]["alpha_all"] = 0.125
    course.write_text(json.dumps(content))
    next((folders / "w").rglob("*-order0/course.json")).unlink()
    assert run(folders, monkeypatch, "digits-two") == 0
    again = read_results(folders / "results" / "digits-two.json")["records"][0]["final_accuracy"]["values"]
    assert again == [*final[:2], 0.125, final[3]]  # what had ended is kept, what was missing is made again


def test_a_row_may_begin_at_another_class_order(folders, monkeypatch):
    later = rows.Row("digits-mas", "digits", QUICK, orders=2, seeds=1, first=1)
    monkeypatch.setitem(reproduce.GROUPS, "digits-later", [later])
    assert run(folders, monkeypatch, "digits-two,digits-later") == 0
    two, later = (read_results(folders / "results" / f"digits-{name}.json") for name in ("two", "later"))
    assert later["records"][0]["protocol"]["order_seeds"] == [1, 2]
    assert later["records"][0]["orders"][0] == two["records"][0]["orders"][2]  # the same job, not another one


def test_a_bare_machine_goes_on_from_the_courses_that_were_kept(folders, monkeypatch, capsys):
    archive = folders / "kept.tar.gz"
    monkeypatch.setattr(reproduce, "run_jobs", lambda *rest: itertools.islice(run_here(*rest), 4))
    assert run(folders, monkeypatch, "digits-two", "--keep", str(archive)) == 1
    first = next((folders / "w").rglob("course.json")).read_text()
    shutil.rmtree(folders / "w")
    monkeypatch.setattr(reproduce, "run_jobs", run_here)
    assert run(folders, monkeypatch, "digits-two", "--keep", str(archive)) == 0
    assert first in [path.read_text() for path in (folders / "w").rglob("course.json")]  # seconds and all
    with tarfile.open(archive) as tar:
        ended = [Path(name).name for name in tar.getnames()]
    assert sorted(ended) == ["course.json"] * 5 + ["digits.json", "ideal.json"]


def test_courses_that_were_run_on_other_features_are_refused(folders, monkeypatch):
    archive = folders / "kept.tar.gz"
    assert run(folders, monkeypatch, "digits-same", "--keep", str(archive)) == 0
    shutil.rmtree(folders / "w")
    monkeypatch.setattr(reproduce, "hash_of", lambda *parts: "of others")
    with pytest.raises(ValueError, match="digits"):
        run(folders, monkeypatch, "digits-same", "--keep", str(archive))


def test_alpha_ideal_is_that_of_a_results_file_with_the_same_features(folders, monkeypatch):
    """Unless that file is to be made again now."""
    monkeypatch.setattr(reproduce, "LEDGER", reproduce.GROUPS)
    assert run(folders, monkeypatch, "digits-same") == 0
    shutil.rmtree(folders / "w")
    assert run(folders, monkeypatch, "other", "--limit-seconds", "0") == 1
    assert json.loads(ideal_of(folders / "w" / "0123456789ab" / "digits").read_text())["values"] == [0.8, 1.0]
    shutil.rmtree(folders / "w")
    run(folders, monkeypatch, "digits-same", "--limit-seconds", "0")
    assert not ideal_of(folders / "w" / "0123456789ab" / "digits").exists()


def ideal_of(folder):
    return folder / "state" / "ideal.json"


def test_a_row_with_projections_is_given_those_alone(folders, monkeypatch):
    narrow = rows.Row("cub200-ncm", "digits", (), "ncm, 1 MB", 1, 1, projections=5)
    monkeypatch.setitem(
        reproduce.GROUPS, "digits-narrow", [rows.Row("cub200-ncm", "digits", orders=1, seeds=1), narrow]
    )
    assert run(folders, monkeypatch, "digits-narrow") == 0
    plain, projected = read_results(folders / "results" / "digits-narrow.json")["records"]
    kept = [record["orders"][0]["tasks"][-1]["kept_bytes"]["class memory"] for record in (plain, projected)]
    assert kept == [10 * (64 * 4 + 8), 10 * (5 * 4 + 8)]
    assert (plain["preset"], projected["preset"]) == ("cub200-ncm", "cub200-ncm+projections=5")
    assert 0.2 < projected["final_accuracy"]["mean"] < plain["final_accuracy"]["mean"] - 0.1


def test_training_and_test_samples_get_the_same_projections():
    inputs = load_features("digits")
    made = reproduce.project(inputs, 5)
    matrix = torch.from_numpy(projection.signs(64, 5, 0))
    assert torch.equal(made.train.X, inputs.train.X @ matrix)
    assert torch.equal(made.test.X, inputs.test.X @ matrix)
    assert reproduce.project(inputs, None) is inputs


def test_what_found_no_memory_is_run_again_beside_fewer(folders, monkeypatch, capsys):
    workers = []

    def crowded(function, jobs, number, *rest):
        workers.append((number, len(jobs)))
        for job, answer in run_here(function, jobs, number, *rest):
            full = number == 8 and job[1] is not None
            yield job, RuntimeError("CUDA out of memory. Tried to allocate") if full else answer

    monkeypatch.setattr(reproduce, "run_jobs", crowded)
    assert run(folders, monkeypatch, "digits-same", "--workers", "8") == 0
    assert workers == [(8, 2), (2, 1)]
    assert "failed, RuntimeError('CUDA out of memory" in capsys.readouterr().out


def test_what_did_not_end_in_time_leaves_no_results_file(folders, monkeypatch, capsys):
    assert run(folders, monkeypatch, "other", "--limit-seconds", "0") == 1
    assert "other: not all rows have ended; run the same command again" in capsys.readouterr().err
    assert not (folders / "results").exists()


def test_a_results_file_is_written_when_its_last_row_ends(folders, monkeypatch, capsys):
    """And not at the end: a long run that is stopped leaves what is whole."""

    def stopped(function, jobs, *rest):
        for number, answer in enumerate(run_here(function, jobs, *rest), 1):
            yield answer
            if number == 2:  # α_ideal and the one course of digits-same
                assert (folders / "results" / "digits-same.json").exists()
                return

    monkeypatch.setattr(reproduce, "GROUPS", dict(reversed(reproduce.GROUPS.items())))
    monkeypatch.setattr(reproduce, "run_jobs", stopped)
    assert run(folders, monkeypatch, "digits-*") == 1
    assert capsys.readouterr().err == "digits-two: not all rows have ended; run the same command again\n"
    assert not (folders / "results" / "digits-two.json").exists()


def test_a_name_that_is_none_is_one_line(folders, monkeypatch, capsys):
    assert run(folders, monkeypatch, "cub201-*") == 2
    assert capsys.readouterr().err == "no results file is called cub201-*; there are digits-two, digits-same, other\n"


def test_a_working_copy_with_changes_is_refused(tmp_path, monkeypatch):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True)

    monkeypatch.setattr(reproduce, "ROOT", tmp_path)
    with pytest.raises(ValueError, match="no git working copy"):
        reproduce.clean_revision()
    git("init", "--quiet")
    (tmp_path / "a.py").write_text("1")
    with pytest.raises(ValueError, match=r"has changes; commit or stash them first:\n\?\? a.py"):
        reproduce.clean_revision()
    git("add", "a.py")
    git("commit", "--quiet", "--message", "a")
    for made in ("results/new.json", "docs/reproduction.md", "docs/tables/a.png", "README.md"):  # by the run itself
        (tmp_path / made).parent.mkdir(exist_ok=True)
        (tmp_path / made).write_text("{}")
    (tmp_path / "docs" / "record.py").write_text("1")
    with pytest.raises(ValueError, match=r"first:\n\?\? docs/"):
        reproduce.clean_revision()
    (tmp_path / "docs" / "record.py").unlink()
    assert len(reproduce.clean_revision()) == 40


def test_every_row_of_the_ledger_can_be_run():
    for name, group in reproduce.GROUPS.items():
        assert len({row.features for row in group}) == 1, name
        for row in group:
            preset = reproduce.preset_of(row)
            assert preset.dataset == rows.FEATURES[row.features].dataset == name.split("-")[0]
            assert preset.config == load_preset(row.preset, row.settings).config
