"""Trials of settings: the same number for every method, resumable, chosen by one rule."""

import json
import math
import os
import random
import sys
import time
from concurrent.futures import BrokenExecutor
from dataclasses import asdict
from pathlib import Path

import pytest

from engram.bench.inputs import load_features
from engram.bench.learners import METHODS
from engram.bench.presets import load_preset, preset_for
from engram.bench.results import method_title

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

base_split, pool, spaces, trials, trials_table = (
    pytest.importorskip(name) for name in ("base_split", "pool", "spaces", "trials", "trials_table")
)
DATASETS = ("cifar100", "cub200")
NOTHING_TO_SET = {"ncm", "1nn", "whitened"}


# --- which settings are tried -----------------------------------------------------------------------------------------


def test_every_method_of_the_tables_has_a_space():
    assert set(METHODS) - {"prototypes", "imagenet"} <= set(spaces.SPACES)


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("method", spaces.SPACES)
def test_every_method_has_as_many_trials_the_preset_first(method, dataset):
    drawn = spaces.draw(dataset, method)
    assert drawn == spaces.draw(dataset, method)
    assert drawn[0] == {}
    assert len(drawn) == (1 if method in NOTHING_TO_SET else 12)
    assert len({json.dumps(settings) for settings in drawn}) == len(drawn)
    planned = trials.plan(dataset, method)
    assert planned[0].preset == load_preset(preset_for(dataset, method))
    for trial, settings in zip(planned, drawn, strict=True):
        assert {name: trial.config[name] for name in settings} == settings
        rest = asdict(planned[0].preset.config) | settings
        assert trial.config == json.loads(json.dumps(rest))


@pytest.mark.parametrize("dataset", DATASETS)
@pytest.mark.parametrize("method", sorted(set(spaces.SPACES) - NOTHING_TO_SET))
def test_the_preset_lies_inside_what_is_tried(method, dataset):
    """Inside its range, or, where it was chosen at the end of that, inside the wider one."""
    preset = asdict(load_preset(preset_for(dataset, method)).config)

    def inside(axis: object, had: tuple) -> bool:
        if isinstance(axis, spaces.OneOf):
            return (had if len(had) > 1 else had[0]) in axis.values
        return axis.low < had[0] < axis.high

    for names, axis in spaces.SPACES[method].items():
        axis = axis[dataset] if isinstance(axis, dict) else axis
        had = tuple(preset[name] for name in names.split(","))
        assert inside(axis, had) or inside(spaces.WIDER[dataset][method][names], had), names


@pytest.mark.parametrize(("dataset", "method"), [(d, m) for d, some in spaces.WIDER.items() for m in some])
def test_wider_trials_go_on_counting_and_further(method, dataset):
    drawn, planned = spaces.draw_wider(dataset, method), trials.plan(dataset, method, wider=True)
    assert [trial.number for trial in planned] == list(range(13, 25))
    assert [trial.settings for trial in planned] == drawn
    assert len({json.dumps(settings) for settings in drawn}) == 12

    def numbers(settings: list[dict], name: str) -> list[float]:
        return [one[name] for one in settings if name in one and not isinstance(one[name], str)]

    before = spaces.draw(dataset, method)
    names = [name for name in drawn[0] if name != "optimizer"]
    if method == "gem":
        before = [settings for settings in before if settings.get("optimizer") == "sgd"]
    assert any(
        min(numbers(drawn, name)) < min(numbers(before, name)) or max(numbers(drawn, name)) > max(numbers(before, name))
        for name in names
    )


def test_where_no_choice_lay_at_an_end_more_is_drawn_from_the_same_range():
    first, more = spaces.draw("cub200", "icarl")[1:], spaces.draw_wider("cub200", "icarl")
    assert len(more) == 12
    assert not any(settings in first for settings in more)
    assert all(
        3 <= settings["increment_epochs"] <= 60 and 2e-5 <= settings["increment_rate"] <= 2e-3 for settings in more
    )
    assert spaces.draw_wider("cub200", "ncm") == []  # nothing to set


def test_draws_cover_a_range_evenly():
    """One value in each of eleven pieces of the range, and whole numbers where the ends are."""
    tried = sorted(settings["shrinkage"] for settings in spaces.draw("cub200", "slda")[1:])
    pieces = [int(11 * math.log(value / 1e-4) / math.log(0.9 / 1e-4)) for value in tried]
    assert pieces == list(range(11))
    assert spaces.Between(2, 40).at(0.0) == 2
    assert spaces.Between(2, 40).at(0.999) == 40
    assert isinstance(spaces.Between(2, 40).at(0.5), int)
    assert [spaces.OneOf((1, 2)).at(share) for share in (0.0, 0.49, 0.5, 1.0)] == [1, 1, 2, 2]


def test_a_rate_of_gem_goes_with_its_optimizer():
    for settings in spaces.draw("cub200", "gem")[1:]:
        assert (settings["increment_rate"] >= 1e-3) is (settings["optimizer"] == "sgd")


# --- which are chosen -------------------------------------------------------------------------------------------------


def measured(trial: int, new: float, overall: float, **more: object) -> dict:
    return {
        "trial": trial,
        "settings": {"x": trial},
        "config": {"x": trial},
        "base": 0.5,
        "new": new,
        "all": overall,
        **more,
    }


def test_the_rule_takes_the_one_that_knows_new_classes_best_of_those_close_to_the_best():
    records = [measured(1, 0.9, 0.68), measured(2, 0.4, 0.7), measured(3, 0.6, 0.6901), measured(4, 0.99, 0.1)]
    assert trials.choose(records)["trial"] == 3
    assert trials.choose([*records, {"trial": 5, "failed": "ValueError: NaN"}])["trial"] == 3
    assert trials.choose([{"trial": 1, "failed": "ValueError: NaN"}]) is None
    assert trials.choose([]) is None


def test_wider_trials_replace_a_choice_only_if_one_is_better_by_more_than_what_counts_as_close():
    first = [measured(1, 0.5, 0.69), measured(12, 0.2, 0.7)]
    assert trials.choose([*first, measured(13, 0.51, 0.6999)])["trial"] == 1  # not on new classes, either
    assert trials.choose([*first, measured(13, 0.9, 0.6899)])["trial"] == 1  # less on all
    assert trials.choose([*first, measured(13, 0.511, 0.69)])["trial"] == 13
    assert trials.choose([*first, measured(13, 0.6, 0.699), measured(14, 0.8, 0.69)])["trial"] == 14
    assert trials.choose([*first, measured(13, 0.1, 0.7001), measured(14, 0.9, 0.695)])["trial"] == 14
    assert trials.choose([*first, measured(13, 0.1, 0.7001)])["trial"] == 12  # then all are looked at alike
    assert trials.choose([measured(13, 0.1, 0.7), {"trial": 1, "failed": "ValueError: NaN"}])["trial"] == 13


@pytest.mark.parametrize("path", sorted(trials_table.FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_presets_are_what_the_rule_chose(path):
    dataset, _, method = path.stem.partition("-")
    chosen = trials.choose(json.loads(path.read_text())["trials"])["config"]
    config = json.loads(json.dumps(asdict(load_preset(preset_for(dataset, method)).config)))
    assert config == {name: value for name, value in chosen.items() if name in config}
    assert not any(value for name, value in chosen.items() if name not in config), "of rows of their own"


# --- where they are measured ------------------------------------------------------------------------------------------


def test_trials_see_training_data_of_base_classes_alone():
    data = load_features("digits", device="cpu")
    split = base_split.split_base(data.train)
    base = set(base_split.class_order(data.train.y.tolist(), 0)[:5])
    assert set(split.shown.y) == set(split.held.y) == base
    rows = {row.tobytes() for row in data.train.X.numpy()}
    shown, held = ({row.tobytes() for row in part.X.numpy()} for part in (split.shown, split.held))
    assert shown | held <= rows
    assert not shown & held
    assert len(split.held.y) == pytest.approx(len(split.shown.y) / 3, rel=0.02)


def run(monkeypatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["trials.py", *map(str, arguments)])
    return trials.main()


def test_trials_from_the_command_line_to_the_table(tmp_path, monkeypatch, capsys):
    common = ("digits", "--device", "cpu", "--out", tmp_path, "--method", "slda", "--method", "ncm")
    assert run(monkeypatch, *common, "--trials", 3) == 0
    out = capsys.readouterr().out
    assert out.startswith("4 trials to run\n")
    assert out.count("digits slda ") == 3
    content = json.loads((tmp_path / "digits-slda.json").read_text())
    assert content["dataset"] == "digits"
    assert content["features"]["backbone"] == "pixels"
    assert [record["trial"] for record in content["trials"]] == [1, 2, 3]
    for record, settings in zip(content["trials"], spaces.draw("digits", "slda", 3), strict=True):
        assert record["settings"] == settings
        assert 0.5 < record["all"] <= 1
        assert record["device"] == "cpu"
        assert {"base", "new", "seconds", "git_revision", "config"} <= set(record)
    # Again: nothing is left to do, and what was recorded stays.
    assert run(monkeypatch, *common, "--trials", 3) == 0
    assert capsys.readouterr().out == "0 trials to run\n"
    assert json.loads((tmp_path / "digits-slda.json").read_text()) == content
    assert run(monkeypatch, *common, "--best") == 0
    chosen, best = trials.choose(content["trials"]), capsys.readouterr().out
    assert f"# cub200-slda: trial {chosen['trial']} of 3" in best
    assert all(f"{name} = {value}" in best for name, value in chosen["settings"].items())
    lines = trials_table.table("digits", tmp_path).splitlines()
    assert [line.split(" | ")[:2] for line in lines[2:]] == [["| SLDA", "3"], ["| Nearest class mean", "1"]]


def test_a_book_goes_on_with_what_is_missing_or_was_out_of_memory(tmp_path):
    about = {"dataset": "cub200", "features": {"sha256": "a"}}
    planned = trials.plan("cub200", "slda", 5)
    book = trials.Book(tmp_path, "cub200", "slda")
    assert book.begin(about, planned) == planned
    book.add(planned[2], {"failed": "OutOfMemoryError: CUDA out of memory."})
    book.add(planned[1], {"failed": "ValueError: not finite"})
    book.add(planned[0], {"base": 0.1, "new": 0.2, "all": 0.3})
    again = trials.Book(tmp_path, "cub200", "slda")
    assert again.begin(about, planned) == planned[2:]
    assert [record["trial"] for record in again.content["trials"]] == [1, 2]
    with pytest.raises(SystemExit, match="other features"):
        trials.Book(tmp_path, "cub200", "slda").begin({**about, "features": {"sha256": "b"}}, planned)


def test_a_book_keeps_trials_of_other_numbers(tmp_path):
    about = {"dataset": "cifar100", "features": {"sha256": "a"}}
    book, usual = trials.Book(tmp_path, "cifar100", "lwf"), trials.plan("cifar100", "lwf")[1:]
    wider = trials.plan("cifar100", "lwf", wider=True)
    book.begin(about, usual)
    for trial in (*usual, wider[0]):
        book.add(trial, {"all": trial.number / 100})
    again = trials.Book(tmp_path, "cifar100", "lwf")
    assert again.begin(about, wider) == wider[1:]
    assert [record["all"] for record in again.content["trials"]] == [number / 100 for number in range(2, 14)]
    assert trials.Book(tmp_path, "cifar100", "lwf").begin(about, usual) == []
    # One that was tried under another number is not tried twice, nor told twice; what is no longer planned goes.
    book.content["trials"] = [{"trial": 30, "config": usual[1].config}, {"trial": 3, "config": {"old": 1}}]
    assert book.begin(about, usual) == [usual[0], *usual[2:]]
    assert [record["trial"] for record in book.content["trials"]] == [3]


def test_a_book_keeps_the_preset_as_it_was_when_another_was_chosen(tmp_path):
    """The first trial of a plan is then that other, which is on record already, and not tried twice."""
    about = {"dataset": "cub200", "features": {"sha256": "a"}}
    book, planned = trials.Book(tmp_path, "cub200", "slda"), trials.plan("cub200", "slda", 4)
    was = {"trial": 1, "config": {"shrinkage": 0.1}, "all": 0.1}
    book.content = about | {"trials": [was, {"trial": 3, "config": planned[2].config, "all": 0.3}]}
    assert book.begin(about, [trials.Trial("slda", 1, {}, planned[2].preset), *planned[1:]]) == [planned[1], planned[3]]
    assert [(record["trial"], record["all"]) for record in book.content["trials"]] == [(1, 0.1), (3, 0.3)]


# --- the pool ---------------------------------------------------------------------------------------------------------


def test_a_pool_gives_answers_and_errors_and_goes_on():
    found = dict(pool.run_jobs(math.sqrt, [4.0, -1.0, 9.0], 1, random.seed, (0,)))
    assert found[4.0] == 2.0
    assert found[9.0] == 3.0
    assert isinstance(found[-1.0], ValueError)


def test_workers_are_told_how_to_share_a_gpus_memory(monkeypatch):
    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF", raising=False)
    ((_, found),) = pool.run_jobs(os.getenv, ["PYTORCH_CUDA_ALLOC_CONF"], 1, random.seed, (0,))
    assert found == "expandable_segments:True"


def test_a_pool_ends_at_its_limit_and_with_a_worker_that_died():
    assert list(pool.run_jobs(time.sleep, [600, 600], 1, random.seed, (0,), limit_seconds=1)) == []
    with pytest.raises(BrokenExecutor):
        list(pool.run_jobs(os._exit, [1], 1, random.seed, (0,)))


# --- the page ---------------------------------------------------------------------------------------------------------


def test_the_tables_have_every_method_that_was_tried(tmp_path):
    """That docs/peers.md has these tables is what test_reproduction.py looks at."""
    for path in trials_table.FOLDER.glob("*.json"):
        dataset, _, method = path.stem.partition("-")
        assert dataset in DATASETS
        told = " (told the task)" if method == "hat" else ""
        assert f"| {method_title(method)}{told} |" in trials_table.table(dataset)
    records = [
        measured(1, 0.4, 0.6),
        measured(2, 0.5, 0.695),
        {"trial": 3, "config": {"x": 3}, "settings": {}, "failed": "ValueError"},
    ]
    (tmp_path / "cub200-slda.json").write_text(json.dumps({"trials": records}))
    row = "| SLDA | 3, 1 failed | .500 / .400 / .600 | .500 / .500 / .695 | .600 to .695 | `x` 2 |"
    assert trials_table.table("cub200", tmp_path) == "\n".join([*trials_table.HEAD, row])


def test_the_table_says_where_nothing_beyond_was_tried():
    """The preset as it was counts as tried."""
    records = [{"config": {"rate": rate, "by": "sgd"}} for rate in (0.2, 0.1, 0.3)]
    assert [trials_table.edge("rate", rate, records) for rate in (0.1, 0.2, 0.3)] == [" (lowest)", "", " (highest)"]
    assert trials_table.edge("rate", 0.3, [*records, {"config": {"rate": 0.4}}]) == ""
    assert trials_table.edge("by", "sgd", records) == ""
