"""The report: numbers as in the file, the paper's beside them, all text escaped, real pictures, errors of one line."""

import copy
import json
import re
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from engram.bench import published
from engram.bench.drawing import COLOURS
from engram.bench.figures import block_share, confusion_rates
from engram.bench.presets import load_preset
from engram.bench.report import write_report
from engram.bench.results import group, load, method_title

NASTY = '<b>&"'
NAMES = ["apple", "bear", "$2 and $3", NASTY, "elm", "fox"]
FIGURES = ("accuracy", "psi", "confusion", "memory", "costs")


def spread(values: list[float]) -> dict[str, Any]:
    return {"mean": float(np.mean(values)), "std": float(np.std(values)), "values": values}


def record(method: str, level: float, dataset: str = "cifar100") -> dict[str, Any]:
    """Three classes first, then three more; two orders that differ by 0.02."""
    orders = []
    for seed in (0, 1):
        tasks = [
            {
                "task": t,
                "classes_seen": 3 + t,
                "alpha_base": level - 0.05 * t + 0.02 * seed,
                "alpha_new": level - 0.1,
                "alpha_all": level - 0.06 * t,
                "seconds": 10.0 if t == 0 else 1.5,
                "peak_memory_bytes": 2_000_000,
                "kept_bytes": {"network": 5000, "class memory": 8 * (3 + t), "consolidation state": 10_000},
            }
            for t in range(4)
        ]
        orders.append({"seed": seed, "classes": NAMES[::-1] if seed == 0 else NAMES, "tasks": tasks})
    psi = {
        "psi_base": spread([level + 0.011, level + 0.035]),
        "psi_new": spread([level - 0.1, level - 0.14]),
        "psi_all": spread([level + 0.017, level + 0.017]),
    }
    return {
        "dataset": dataset,
        "backbone": "vgg16:conv4_1@32:sha256-" + "0123456789abcdef" * 4,
        "method": method,
        "preset": f"{dataset}-{method}",
        "config": {"feature_rms": 0.1},
        "protocol": {"base": 3, "step": 1, "classes": 6, "order_seeds": [0, 1]},
        "alpha_ideal": {"accuracy": 0.667, "recipe": {"hidden": 1024}, "validation": {}},
        **psi,
        "paper_ideal": {"alpha_ideal": 0.699, **{k: spread([v / 1.05 for v in s["values"]]) for k, s in psi.items()}},
        "average_incremental_accuracy": spread([0.612, 0.634]),
        "final_accuracy": spread([0.541, 0.553]),
        "forgetting": spread([0.121, 0.147]),
        "orders": orders,
        "confusion": {"labels": NAMES, "counts": (np.eye(6, dtype=int) * 6 + np.arange(36).reshape(6, 6) % 4).tolist()},
        "memory": {
            "as_the_paper_counts": {"100": 819_200, "1000": 8_192_000},
            "all_the_next_increment_needs": {"100": 252_000_000, "1000": 259_372_800},
        },
    }


def two_methods() -> dict[str, Any]:
    run = {
        "engram": "0.1.0",
        "torch": "2.9.0",
        "git_revision": None,
        "device": "a <fast> one",
        "started": "2026-11-15T08:00:00Z",
        "command": "engram bench cifar100 --method mas --set 'a<b'",
        "seed": 0,
    }
    return {"format": 1, "run": run, "records": [record("mas", 0.85), record("si", 0.80)]}


@pytest.fixture
def results() -> dict[str, Any]:
    return two_methods()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("report") / "new" / "folder"
    write_report([two_methods()], out)
    return out


@pytest.fixture
def html(written: Path) -> str:
    return (written / "report.html").read_text(encoding="utf-8")


class Page(HTMLParser):
    """The rows of all tables, the tags, the ids and the text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.in_cell = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self.in_cell = self.in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.in_cell:
            self.rows[-1][-1] += data

    def row(self, label: str, number: int = 0) -> list[str]:
        return [row for row in self.rows if row and row[0] == label][number]


def test_the_published_numbers():
    assert published.PSI["cifar100"]["mas"] == (0.887, 0.641, 0.850)
    assert published.PSI["cifar100"]["fearnet"] == (0.927, 0.824, 0.947)
    assert published.PSI["cub200"]["si-lof"] == (0.813, 0.639, 0.737)
    assert published.PSI["cub200"]["1nn"] == (0.746, 0.434, 0.694)
    assert published.IDEAL == {"cifar100": 0.699, "cub200": 0.598}
    assert published.MEMORY["icarl"] == {100: 24.8e6, 1000: 247.8e6}
    assert published.MEMORY["si"] == {100: 0.8e6, 1000: 8.2e6}
    for rows in published.PSI.values():
        assert set(rows) == set(published.NAMES) == set(published.MEMORY)


@pytest.mark.parametrize("dataset", ["cifar100", "cub200"])
def test_the_row_called_fearnet_sleeps_as_published_and_ours_is_another(dataset):
    row, ours = load_preset(f"{dataset}-fearnet"), load_preset(f"{dataset}-fearnet-head")
    assert (row.method, row.config.sleep_trains) == ("fearnet", "all")
    assert (ours.method, ours.config.sleep_trains) == ("fearnet-head", "head")
    assert method_title(row.method) == "FearNet"
    assert method_title(ours.method) == "FearNet, head-only sleeps (ours)"
    assert ours.method not in published.PSI[dataset]


def test_psi_table_shows_the_file_s_numbers_beside_the_paper_s(html: str):
    row = Page(html).row("mas")
    # mean ± std, published, difference, with the paper's constant (not for Ψ_new)
    assert row[1:5] == ["0.873 ± 0.012", "0.887", "−0.014", "▼ 0.831 ± 0.011"]
    assert row[5:8] == ["0.730 ± 0.020", "0.641", "▲ +0.089"]
    assert row[8:] == ["0.867 ± 0.000", "0.850", "+0.017", "0.826 ± 0.000"]
    assert Page(html).row("si")[1:4] == ["0.823 ± 0.012", "0.864", "▼ −0.041"]
    assert Page(html).row("FearNet")[1:4] == ["–", "0.927", "–"]
    assert "2 of 6published Ψ reproduced by our α_ideal; 2 higher, 2 lower" in Page(html).text
    assert "2 of 6published Ψ reproduced by the paper's; 1 higher, 3 lower" in Page(html).text


def test_other_tables(html: str):
    page = Page(html)
    assert page.row("mas", 1)[1:] == ["0.667", "0.623 ± 0.011", "0.547 ± 0.006", "0.134 ± 0.013", "10 s", "14.5 s"]
    assert page.row("mas", 2)[1:] == ["819 kB", "8.19 MB", "252 MB", "259 MB", "5 kB", "48 B", "10 kB"]


def test_data_the_paper_does_not_have(results: dict[str, Any], tmp_path: Path):
    only = record("mas", 0.85, "digits")
    only["paper_ideal"] = None
    for name in ("confusion", "memory", "forgetting"):
        del only[name]
    only["orders"] = only["orders"][:1]
    for field in ("psi_base", "psi_new", "psi_all"):
        only[field] = {"mean": 0.9, "std": None, "values": [0.9]}
    write_report([{**results, "records": [only]}], tmp_path)
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.row("mas") == ["mas", "0.900", "0.900", "0.900"]
    assert "published" not in page.text
    assert not (tmp_path / "confusion.png").exists()


def test_everything_is_escaped(html: str):
    page = Page(html)
    assert "<b>&" not in html
    assert NASTY in page.text  # the tick of the confusion matrix
    assert "$2 and $3" in page.text  # and not a formula
    assert "a <fast> one" in page.text
    assert "--set 'a<b'" in page.text
    assert {"fast", "script"}.isdisjoint(tag for tag, _ in page.tags)


def test_page_stands_alone_and_can_be_read_without_eyes(html: str):
    page = Page(html)
    links = [a.get(k) for _, a in page.tags for k in ("src", "href", "xlink:href") if a.get(k)]
    assert all(str(link).startswith(("#", "data:")) for link in links)
    assert "url(http" not in html
    assert "@import" not in html
    assert "prefers-color-scheme: dark" in html
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    for reference in re.findall(r'(?:url\(|href=")#([\w-]+)', html):
        assert reference in ids
    alts = [a["aria-label"] for _, a in page.tags if a.get("role") == "img"]
    assert len(alts) == sum(tag == "figure" for tag, _ in page.tags) == 3 + 3 + 2 + 2 + 2
    assert any("mas 0.873, published 0.887" in str(alt) for alt in alts)
    assert not any(colour.lower() in html for colour in COLOURS if colour.lower() not in STYLE)  # named, for the dark


STYLE = files("engram.bench.html").joinpath("style.css").read_text(encoding="utf-8")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(scheme: int):
    blocks = re.findall(r":root \{(.*?)\}", STYLE, flags=re.DOTALL)
    colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", blocks[scheme]))
    for ground in ("page", "raised"):
        for name, least in [(n, 4.5) for n in ("ink", "soft", "grey", "good", "low", "link")] + [
            (f"c{i}", 3.0) for i in range(6)
        ]:
            light, dark = sorted((luminance(colours[ground]), luminance(colours[name])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= least, (ground, name)


def test_pictures_are_pictures(written: Path):
    for name in FIGURES:
        with Image.open(written / f"{name}.png") as image:
            assert image.width > 600
            assert len(image.convert("RGB").getcolors(image.width * image.height) or []) > 20


def test_confusion_is_in_the_order_of_learning(results: dict[str, Any]):
    row = group(load([results]))[0].rows[0]
    labels, rates = confusion_rates(row)
    assert labels == NAMES[::-1]
    counts = np.array(results["records"][0]["confusion"]["counts"])
    np.testing.assert_allclose(rates, (counts / counts.sum(axis=1, keepdims=True))[::-1, ::-1])
    toy = np.array([[0.7, 0.1, 0.2], [0.0, 1.0, 0.0], [0.3, 0.2, 0.5]])
    assert block_share(toy, 2, "new") == pytest.approx(0.1)
    assert block_share(toy, 2, "base") == pytest.approx(0.5)


def test_the_same_again(html: str, results: dict[str, Any], tmp_path: Path):
    write_report([results], tmp_path)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == html


def test_runs_are_told_apart_by_their_folders(results: dict[str, Any], tmp_path: Path):
    other = copy.deepcopy(results)
    other["records"] = [record("mas", 0.7), record("mas-lof", 0.7), record("mas", 0.7, "cub200")]
    for name, content in (("full", results), ("half", other)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(json.dumps(content), encoding="utf-8")
    first, second = group(load([tmp_path / "full" / "results.json", tmp_path / "half"]))
    assert [row.label for row in first.rows] == ["mas · full", "mas · half", "si", "mas-lof"]
    assert [row.label for row in second.rows] == ["mas"]
    write_report([tmp_path / "full", tmp_path / "half"], tmp_path / "both")
    page = Page((tmp_path / "both" / "report.html").read_text(encoding="utf-8"))
    assert page.row("mas · half")[1].startswith("0.723")
    assert page.row("mas")[2] == "0.837"  # the paper's on CUB-200
    assert (tmp_path / "both" / "accuracy-2.png").exists()


def test_one_run_with_two_settings_of_a_method(results: dict[str, Any]):
    results["records"] = [record("mas", 0.8), {**record("mas", 0.8), "preset": None}, record("mas", 0.8)]
    assert [row.label for row in group(load([results]))[0].rows] == [
        "mas · cifar100-mas #1",
        "mas",
        "mas · cifar100-mas #2",
    ]


def _without(path: str) -> Any:
    def change(content: dict[str, Any]) -> None:
        *way, last = path.split(".")
        at: Any = content
        for step in way:
            at = at[int(step) if step.isdigit() else step]
        del at[last]

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_without("records"), "records is missing"),
        (_without("run"), "run is missing"),
        (_without("records.1.psi_new"), "records[1].psi_new is missing"),
        (_without("records.0.psi_all.mean"), "records[0].psi_all.mean is missing"),
        (_without("records.0.orders.1.tasks.2.alpha_new"), "records[0].orders[1].tasks[2].alpha_new is missing"),
        (_without("records.0.confusion.labels"), "records[0].confusion.labels is missing"),
        (lambda content: content["records"].clear(), "records is empty"),
        (lambda content: content.update(format=3), "format 3 is not known"),
        (lambda content: content["records"][0].update(psi_base="high"), "records[0].psi_base is not an object"),
        (lambda content: content["records"][0]["psi_base"].update(mean=None), "records[0].psi_base.mean is null"),
    ],
)
def test_a_foreign_file_is_one_line(results: dict[str, Any], tmp_path: Path, change: Any, said: str):
    change(results)
    path = tmp_path / "foreign.json"
    path.write_text(json.dumps(results), encoding="utf-8")
    with pytest.raises(ValueError, match=re.escape(said)) as caught:
        write_report([path], tmp_path / "out")
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("text", "said"), [("{", "not JSON"), ("[1]", "the file is not an object"), (None, "exist")])
def test_what_is_no_results_file(tmp_path: Path, text: str | None, said: str):
    if text is not None:
        (tmp_path / "results.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=said) as caught:
        write_report([tmp_path], tmp_path / "out")
    assert str(tmp_path / "results.json") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_results_at_all(tmp_path: Path):
    with pytest.raises(ValueError, match="at least one"):
        write_report([], tmp_path)
