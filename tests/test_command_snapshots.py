"""Every command that answers in JSON or CSV answers as before: one story, told once.

`bench`, `tables` and `report` take their time; tests/bench has them.
"""

import csv
import json
from pathlib import Path

import pytest
from snapshots import Snapshots
from toys import missing, paint

from engram.learners.registry import BUILT_IN

SNAPSHOTS = Snapshots(Path(__file__).parent / "command_snapshots.json")
NEW = ("--backbone", "averages")
SI = ("--method", "si", "--set", "layers=[8,6]", "--set", "base_epochs=2")
STORY = {
    "learn": ("learn", "m.engram", "pictures", *NEW),
    "learn another": ("learn", "m.engram", "second"),
    "learn more": ("learn", "m.engram", "third", "--more"),
    "learn with a network": ("learn", "si.engram", "pictures", "--backbone", "averages", *SI),
    "learn from a list": ("learn", "list.engram", "list.csv", *NEW),
    "statistics": ("learn", "s.engram", "other", "--statistics", "--backbone", "averages"),
    "info": ("info", "m.engram"),
    "info of a network": ("info", "si.engram"),
    "history": ("history", "m.engram"),
    "predict": ("predict", "m.engram", "asked", "no.png"),
    "predict the unknown": ("predict", "m.engram", "asked", "--unknown", "0.2", "--top", "1"),
    "predict among": ("predict", "m.engram", "asked", "--among", "red,green"),
    "predict families": ("predict", "m.engram", "asked", "--taxonomy", "families.csv", "--sure", "0.9"),
    "predict boxes": ("predict", "m.engram", "--detections", "md.json", "--out", "named.json"),
    "evaluate": ("evaluate", "m.engram", "asked"),
    "merge": ("merge", "both.engram", "m.engram", "s.engram"),
    "rename": ("rename", "m.engram", "red", "rot"),
    "forget": ("forget", "m.engram", "green", "--yes"),
    "undo": ("undo", "m.engram", "--yes"),
    "redo": ("redo", "m.engram"),
    "history at the end": ("history", "m.engram"),
    "doctor of a model": ("doctor", "m.engram"),
    "methods": ("methods",),
    "new": ("new", "i.engram", "--imagenet"),
    "info of imagenet": ("info", "i.engram"),
}  # fmt: skip
WITH_TORCH = {"learn with a network", "info of a network", "methods"}
TABLES = {
    "csv": ("predict", "both.engram", "asked", "--csv", "--top", "2"),
    "csv of families": ("predict", "both.engram", "asked", "--csv", "--top", "1", "--taxonomy", "families.csv"),
    "csv of boxes": ("predict", "both.engram", "--csv", "--top", "1", "--detections", "md.json"),
}


def left_out() -> set[str]:
    """Commands that nobody can give here."""
    return WITH_TORCH if missing("si", teaching=True) else set()


@pytest.fixture(scope="module")
def told(engram_in, tmp_path_factory):
    """What each command said."""
    folder = tmp_path_factory.mktemp("story")
    paint(folder / "pictures", "red", "green", "blue", n=6, spread=30)
    paint(folder / "second", "cyan", n=5)
    paint(folder / "third", "red", n=4, seed=3)
    paint(folder / "other", "red", "white", n=5, seed=4)
    paint(folder / "asked", "red", "cyan", "black", n=2, seed=9)
    (folder / "asked" / "red" / "broken.png").write_bytes(b"")
    (folder / "families.csv").write_text("red,warm\ngreen,cold\nblue,cold\ncyan,cold\nwhite,grey\n")
    (folder / "list.csv").write_text("".join(f"pictures/{name}/0-{i}.png,{name}\n" for name in ("red", "blue") for i in (1, 2, 3)))  # fmt: skip # noqa: E501
    boxes = [{"category": "1", "conf": 0.9, "bbox": [0.0, 0.0, 0.5, 1.0]}, {"category": "2", "conf": 0.9, "bbox": [0, 0, 1, 1]}]  # fmt: skip # noqa: E501
    images = [{"file": "asked/red/9-0.png", "detections": boxes}, {"file": "asked/red/broken.png", "detections": boxes}]
    about = {"info": {"format_version": "1.3"}, "detection_categories": {"1": "animal", "2": "person"}}
    (folder / "md.json").write_text(json.dumps(about | {"images": images}))
    return folder, {
        **{name: engram_in(folder, *command, "--json") for name, command in STORY.items() if name not in left_out()},
        **{name: engram_in(folder, *command) for name, command in TABLES.items()},
    }


@pytest.mark.parametrize("name", STORY)
def test_a_command_answers_in_json_as_before(told, name):
    if name in left_out():
        pytest.skip("the paper's method needs its extra")
    folder, outcomes = told
    assert outcomes[name].out, outcomes[name].err
    found = outcomes[name].json
    if name == "methods":  # the product's; research has its own tests
        found = {method: found[method] for method in BUILT_IN}
    SNAPSHOTS.check(name, {"code": outcomes[name].code, "json": found}, folder)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_columns_and_rows_of_before(told, name):
    folder, outcomes = told
    rows = [[_number(cell) for cell in row] for row in csv.reader(outcomes[name].out.splitlines())]
    SNAPSHOTS.check(name, {"code": outcomes[name].code, "rows": rows}, folder)


def test_boxes_are_written_down_as_before(told):
    content = json.loads((told[0] / "named.json").read_text())
    content["info"]["classification_completion_time"] = "now"
    SNAPSHOTS.check("boxes", content)


def test_the_state_of_the_machine_has_the_fields_of_before(engram):
    found = engram("doctor", "--json").json
    SNAPSHOTS.check("doctor", {key: sorted(one) if isinstance(one, dict) else "" for key, one in found.items()})


def test_an_exported_file_is_described_as_before(engram, told):
    found = engram("export", told[0] / "both.engram", "both.onnx", "--json")
    SNAPSHOTS.check("export", found.json, told[0])


def _number(cell):
    try:
        return float(cell)
    except ValueError:
        return cell
