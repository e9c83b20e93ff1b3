"""Any method runs in the benchmark and resumes; the tables hold what was measured, published, kept and given."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from PIL import Image

from engram.bench import drawing, published, tables, units
from engram.bench.drawing import move_apart
from engram.bench.figures import curves
from engram.bench.inputs import load_features
from engram.bench.learners import METHODS
from engram.bench.presets import Preset, load_preset
from engram.bench.results import MARKS, group, judge, load, verdict
from engram.bench.results_file import read_results, write_json
from engram.bench.runner import Bench, run_bench
from engram.bench.schema import PSI
from engram.bench.tables import comparable, in_order, write_tables

SMALL = {
    "1nn": (),
    "slda": (),
    "icarl": ("base_epochs=3", "increment_epochs=2", "width=32", "exemplars=100"),
    "fearnet": (
        *("base_epochs=4", "sleep_epochs=2", "bla_epochs=2", "sleep_every=3", "layers=[32, 16]"),
        "sleep_trains=all",
    ),
    "hat": ("base_epochs=3", "increment_epochs=2", "width=32"),
}


def presets() -> list[Preset]:
    return [load_preset(f"cub200-{name}", changes) for name, changes in SMALL.items()]


def plan(out: Path) -> Bench:
    data = load_features("digits", device="cpu")
    ideal = {"accuracy": 0.97, "recipe": {}, "validation": {}}
    write_json(out / "state" / "ideal.json", {"backbone": data.backbone, **ideal})  # measured elsewhere
    return Bench("digits", data.backbone, data.train, data.test, out, 5, order_seeds=(0, 1), device="cpu")


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("peers") / "run"
    run_bench(plan(out), presets())
    return out


def numbers(content: dict) -> list[dict]:
    for record in content["records"]:
        for order in record["orders"]:
            for task in order["tasks"]:
                del task["seconds"], task["peak_memory_bytes"]
    return content["records"]


def test_every_row_names_its_learner_and_counts_its_samples(finished):
    records = {r["method"]: r for r in read_results(finished / "results.json")["records"]}
    assert {name: record["learner"] for name, record in records.items()} == {name: name for name in SMALL}
    kept = {
        name: [task["kept_bytes"]["stored samples"] for task in record["orders"][0]["tasks"]]
        for name, record in records.items()
    }
    one = 64 * 4 + 8  # a sample and whose it is
    assert all(later > earlier for earlier, later in zip(kept["1nn"], kept["1nn"][1:], strict=False))
    assert kept["1nn"][-1] == 1347 * one
    assert max(kept["icarl"]) <= 100 * one
    assert kept["slda"] == [0] * 6
    assert [size > 0 for size in kept["fearnet"]] == [False, True, True, False, True, True]  # asleep after three
    assert records["slda"]["final_accuracy"]["mean"] > 0.9
    assert records["icarl"]["memory"]["as_the_paper_counts"] == {"100": 2000 * 256, "1000": 20000 * 256}


def test_hat_is_told_the_task(finished):
    records = {r["method"]: r for r in read_results(finished / "results.json")["records"]}
    assert records["hat"]["psi_new"]["mean"] == 1.0
    counts = records["hat"]["confusion"]["counts"]
    assert all(counts[i][j] == 0 for i in range(5, 10) for j in range(10) if i != j)


def test_an_interrupted_run_ends_with_the_same_numbers(finished, tmp_path):
    def stop_after(tasks: int):
        def progress(name, seed, task, total, epoch, done):
            nonlocal tasks
            tasks -= epoch is None
            if not tasks:
                raise KeyboardInterrupt

        return progress

    for tasks in (3, 5, 9):  # tasks of all rows
        with pytest.raises(KeyboardInterrupt):
            run_bench(plan(tmp_path), presets(), stop_after(tasks))
    results = run_bench(plan(tmp_path), presets())
    again = json.loads(json.dumps(results))
    assert numbers(again) == numbers(read_results(finished / "results.json"))


def test_progress_ends_where_the_work_does(tmp_path):
    bench = replace(plan(tmp_path), order_seeds=(0,))
    rows = [presets()[1], presets()[2]]
    told = []
    run_bench(bench, rows, lambda *all_of_it: told.append(all_of_it[-1]))
    assert told == sorted(told)
    assert told[-1] == pytest.approx(bench.work(rows), rel=0.02)  # classes are taken to be of one size


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def table_after(text: str, heading: str) -> dict[str, list[str]]:
    part = text[text.index(heading) :].split("\n| ", 1)[1].split("\n\n")[0]
    return {row[0]: row[1:] for row in map(cells, ("| " + part).splitlines()[2:])}


@pytest.fixture(scope="module")
def results(finished) -> dict:
    """The same numbers, said to be of a data set the paper has."""
    content = read_results(finished / "results.json")
    for record in content["records"]:
        record["dataset"] = "cub200"
        theirs = {field: {"mean": record[field]["mean"] * 0.97 / 0.598, "values": [0.0]} for field in PSI}
        record["paper_ideal"] = {"alpha_ideal": 0.598, **theirs}
    return content


def test_the_tables_hold_what_was_measured_beside_what_was_published(results, tmp_path):
    text = write_tables([results], tmp_path)
    assert (tmp_path / "tables.md").read_text() == text
    psi = table_after(text, "## Table 5: CUB-200-2011")
    records = {record["method"]: record for record in results["records"]}
    row = psi["iCaRL"]
    spread = records["icarl"]["psi_base"]
    assert row[1] == f"{spread['mean']:.3f} ± {spread['std']:.3f}"
    assert (row[2], row[6], row[9]) == ("0.942", "0.547", "0.864")
    theirs = spread["mean"] * 0.97 / 0.598  # with the paper's α_ideal
    assert row[4] == f"{MARKS[verdict('icarl', theirs, 0.942)]} {theirs:.3f}".strip()
    assert row[12:] == ["yes", "2,000 old samples"]
    assert psi["SLDA"][2:4] == ["–", "–"]
    assert psi["SLDA"][12] == "no"
    assert "task of every test sample" in psi["HAT (told the task)"][13]
    assert psi["GeppNet"][1:5] == ["–", "0.727", "–", "–"]  # published, not run
    assert psi["MAS"][2] == "0.837"
    marks = {"reproduced": "", "higher": "▲ ", "lower": "▼ "}
    seen = []
    for method in ("1nn", "icarl", "fearnet"):
        for field, at in zip(PSI, (1, 5, 8), strict=True):
            _, published, difference = psi[METHODS[method].about.title][at : at + 3]
            mean = records[method][field]["mean"]
            seen.append(verdict(method, mean, float(published)))
            assert difference == marks[seen[-1]] + f"{mean - float(published):+.3f}".replace("-", "−"), method
    assert {"higher", "lower"} <= set(seen)
    assert f" {judge(group(load([results]))[0].rows)} α_ideal as measured" in text
    memory = table_after(text, "## Table 4")
    assert memory["1-NN"][0] == "CUB-200-2011"
    assert memory["1-NN"][2:4] == ["4.1 GB", "40.9 GB"]
    assert memory["iCaRL"][4:6] == ["512 kB", "5.12 MB"]
    further = table_after(text, "### What a further class costs")
    told = {"hat": " (told the task)"}
    assert set(further) == {METHODS[name].about.title + told.get(name, "") for name in SMALL}
    assert further["1-NN"][3].endswith("kB")


def test_fearnet_is_counted_after_a_sleep_and_at_its_peak(results):
    record = next(record for record in results["records"] if record["method"] == "fearnet")
    order = record["orders"][0]
    asleep = {**record, "orders": [{**order, "tasks": order["tasks"][:4]}]}  # the task after the base wakes it
    rows = group(load([{**results, "records": [asleep]}]))[0].rows
    samples = max(task["kept_bytes"]["stored samples"] for task in asleep["orders"][0]["tasks"])
    assert tables.samples_gone(rows[0]) == samples > 0
    memory = table_after("## T4\n\n" + tables.memory_table(in_order(rows)), "## T4")
    after, peak = memory["FearNet"], memory["FearNet, at its peak"]
    kept = record["memory"]["as_the_paper_counts"]["100"]
    assert after[2:5] == ["3.3 MB", "18 MB", units.size(kept)]
    assert peak[:5] == [*after[:2], "–", "–", units.size(kept + samples)]
    assert peak[7] == units.size(record["memory"]["all_the_next_increment_needs"]["1000"] + samples)
    keeping = [record for record in results["records"] if record["method"] in ("1nn", "slda")]  # all, and none
    others = group(load([{**results, "records": keeping}]))[0].rows
    assert [tables.samples_gone(row) for row in others] == [0, 0]
    assert "at its peak |" not in tables.memory_table(others)


def test_what_published_figures_are_inferred_from_gives_them():
    found = table_after("## F\n\n" + tables.formula_table(), "## F")
    assert found["1-NN"][0:2] == ["4.1 GB", "40.9 GB"]
    assert found["FearNet"][3:] == ["–", "–"]
    assert found["MAS, SI, MAS+LOF, SI+LOF"][3:] == ["819 kB", "8.19 MB"]
    for method, (_, sizes) in published.MEMORY_FORMULAS.items():
        for n, amount in published.MEMORY[method].items():
            if sizes:
                given = n * sizes[0] + sizes[1]
                digit = 10 ** (len(str(int(amount))) - len(str(int(amount)).rstrip("0")))  # the last one published
                assert abs(given - amount) <= digit * (1 if method == "1nn" else 0.5), (method, n)
    assert published.MEMORY_FORMULAS.keys() == published.MEMORY.keys()


def test_the_figures_are_pictures(results, tmp_path):
    text = write_tables([results], tmp_path)
    for name in re.findall(r"\]\((.*?)\)", text):
        with Image.open(tmp_path / name) as image:
            assert image.width > 800
            assert len(image.convert("RGB").getcolors(1 << 24)) > 50


def test_curves_have_a_panel_for_every_method_the_best_at_the_end_first(results):
    elsewhere = {**next(r for r in results["records"] if r["method"] == "1nn"), "backbone": "vgg19:conv4_1@32:abc"}
    changed = {**results, "records": [*results["records"][1:], elsewhere]}
    figure = curves(in_order([row for found in group(load([changed])) for row in found.rows]))
    ends = [float(re.search(r"at the end (\d\.\d+)", panel.alt)[1]) for panel in figure.panels]
    assert len(ends) == len(SMALL)
    assert ends == sorted(ends, reverse=True)
    assert any(panel.title == "HAT (told the task)" for panel in figure.panels)
    (other,) = (panel for panel in figure.panels if panel.title == "1-NN")
    assert other.alt.endswith("on vgg19:conv4_1.")
    record = next(r for r in results["records"] if r["method"] == "slda")
    (slda,) = (panel for panel in figure.panels if panel.title == "SLDA")
    assert f"at the end {record['final_accuracy']['mean']:.3f}." in slda.alt


def test_a_method_on_several_features_has_a_line_for_each_and_is_drawn_on_those_most_ran_on(results, tmp_path):
    elsewhere = {**next(r for r in results["records"] if r["method"] == "slda"), "backbone": "vgg19:conv4_1@32:abc"}
    more = {**results, "records": [*results["records"], elsewhere]}
    rows = [row for found in group(load([more])) for row in found.rows]
    named = in_order(rows)
    usual = rows[0].record["backbone"].split("@")[0].split(",")[0]
    titles = [row.label for row in named if row.method == "slda"]
    assert titles == [f"SLDA · {usual.split(':')[0]}", "SLDA · vgg19"]
    assert sum(row.label == "iCaRL" for row in named) == 1
    shown, note = comparable(named)
    assert usual in note
    assert [row.label for row in shown if row.method == "slda"] == titles[:1]
    assert not comparable(in_order(rows[:-1]))[1]
    assert set(titles) < set(table_after(write_tables([more], tmp_path), "## Table 5"))


def test_names_at_the_ends_of_lines_keep_apart_and_on_the_axis():
    places = move_apart([0.0, 0.85, 0.87, 0.977, 0.989], 0.1)
    assert places[0] == 0.0  # nothing is near, so it stays
    gaps = [above - below for below, above in pairwise(places)]
    assert min(gaps) >= 0.1 - 1e-9
    assert max(places) <= 1


def test_without_matplotlib_there_are_all_tables_and_no_picture(finished, engram, tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "can_draw", lambda: False)
    monkeypatch.setattr(tables, "can_draw", lambda: False)
    monkeypatch.setattr(tables, "save_png", None)
    done = engram("tables", finished, "--out", "t")
    assert done.code == 0, done.err
    assert "What a further class costs" in done.out
    assert "![" not in done.out
    assert (tmp_path / "t" / "tables.md").read_text() + "\n" == done.out
    assert "no picture was drawn: that needs matplotlib" in done.err
    assert "tables in t" in done.err
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["tables.md"]
