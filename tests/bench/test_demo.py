"""engram demo, its act on handwritten digits."""

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image


@pytest.fixture(scope="module")
def demo(tmp_path_factory, engram_in) -> tuple[Path, Any]:
    folder = tmp_path_factory.mktemp("demo")
    return folder, engram_in(folder, "demo", "--json", "-", "--device", "cpu")


def test_demo_writes_its_numbers(demo):
    _, done = demo
    assert done.code == 0, done.err
    result = done.json["digits"]
    assert result["dataset"] == "digits"
    assert 0.9 < result["alpha_ideal"] <= 1
    assert [row["method"] for row in result["rows"]] == ["whitened", "mas", "si", "mas-lof", "si-lof", "unconsolidated"]
    for row in result["rows"]:
        assert set(row) == {"method", "psi_base", "psi_new", "psi_all", "seconds"}
        assert row["seconds"] > 0
        assert 0 <= row["psi_new"] <= 1
        assert f"{row['psi_all']:.3f}" in done.err  # the table


def test_the_first_act_teaches_pictures_one_class_at_a_time_and_forgets_one(demo):
    *learned, forgot = demo[1].json["pictures"]
    assert [row["classes"] for row in learned] == [3, 4, 5, 6]
    assert min(row["right"] for row in (*learned, forgot)) > 0.9
    assert forgot["classes"] == 5


def test_demo_shows_forgetting_and_remembering(demo):
    rows = {row["method"]: row for row in demo[1].json["digits"]["rows"]}
    assert rows["unconsolidated"]["psi_base"] < 0.4
    for method in ("mas", "si", "mas-lof", "si-lof"):
        assert rows[method]["psi_base"] > 0.85, method
        assert rows[method]["psi_all"] > 0.85, method


def test_demo_draws_a_picture(demo):
    folder, _ = demo
    with Image.open(folder / "engram-demo.png") as picture:
        assert picture.width > 800
        assert len(picture.convert("RGB").getcolors(1 << 24)) > 100


def test_without_matplotlib_all_but_the_picture(engram, tmp_path, monkeypatch):
    from engram.bench import drawing
    from engram.bench.commands import demo

    row = dict.fromkeys(("psi_base", "psi_new", "psi_all", "seconds"), 0.5)

    class Found:
        alpha_ideal = 0.9

        def as_json(self):
            return {"rows": [{"method": "whitened", **row}]}

    monkeypatch.setattr(demo, "demonstrate", lambda **_: Found())
    monkeypatch.setattr(drawing, "can_draw", lambda: False)
    done = engram("demo", "--json", "numbers.json")
    assert done.code == 0, done.err
    assert "whitened" in done.out
    assert json.loads((tmp_path / "numbers.json").read_text())["digits"]["rows"][0]["psi_all"] == 0.5
    assert "no picture was drawn: that needs matplotlib" in done.err
    assert not (tmp_path / "engram-demo.png").exists()
