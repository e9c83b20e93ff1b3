"""Every answer of the page's API in JSON is as before: the same fields, types and values. One story, told once."""

import json
import re
from pathlib import Path

import pytest
from conftest import ended, form
from drawings import draw, drawings
from fastapi.testclient import TestClient
from snapshots import Snapshots

from engram.store import ImageBytes, ModelStore, Plan, learn_classes
from engram.web.app import create_app
from engram.web.label_studio import create_backend
from engram.web.label_studio_files import LabelStudioFiles

SNAPSHOTS = Snapshots(Path(__file__).parent / "http_snapshots.json")
PLAN = Plan(more=True)
ASKED = [("picture", ("x", draw(shape, 40))) for shape in ("circle", "dots")] + [("picture", ("x", b"no picture"))]
OTHER = "circle", "triangle"
STORY = {
    "nothing": ("GET", "new", "/api/model"),
    "predict with nothing": ("POST", "new", "/api/predict", {"files": ASKED}),
    "model": ("GET", "shapes", "/api/model"),
    "state": ("GET", "shapes", "/api/state"),
    "predict": ("POST", "shapes", "/api/predict", {"files": ASKED}),
    "predict among": ("POST", "shapes", "/api/predict", {"files": ASKED[:1], "data": {"among": "dots"}}),
    "predict among others": ("POST", "shapes", "/api/predict", {"files": ASKED[:1], "data": {"among": "griffin"}}),
    "confusion": ("GET", "shapes", "/api/confusion"),
    "lesson of a similar name": ("POST", "shapes", "/api/lessons", form({"Dots": drawings("dots", 2)})),
    "lesson without labels": ("POST", "shapes", "/api/lessons", {"files": ASKED}),
    "lesson": ("POST", "shapes", "/api/lessons", form({"square": [*drawings("square", 4), b"no picture"]})),
    "lessons": ("GET", "shapes", "/api/lessons"),
    "cancel": ("DELETE", "shapes", "/api/lessons/1"),
    "cancel none": ("DELETE", "shapes", "/api/lessons/9"),
    "rename": ("POST", "shapes", "/api/rename", {"json": {"name": "dots", "new_name": "points"}}),
    "forget": ("POST", "shapes", "/api/forget", {"json": {"name": "stripes"}}),
    "forget none": ("POST", "shapes", "/api/forget", {"json": {"name": "griffin"}}),
    "unknown": ("POST", "shapes", "/api/unknown", {"json": {"share": 0.2}}),
    "undo": ("POST", "shapes", "/api/undo", {"json": {"version": 5}}),
    "undo what is old": ("POST", "shapes", "/api/undo", {"json": {"version": 1}}),
    "redo": ("POST", "shapes", "/api/redo", {"json": {"version": 4}}),
    "merge": ("POST", "shapes", "/api/merge", {"files": {"model": "other"}}),
    "merge at last": ("POST", "shapes", "/api/merge", {"files": {"model": "other"}, "data": {"commit": "true"}}),
    "merge with nothing": ("POST", "shapes", "/api/merge", {"files": {"model": b"no model"}}),
    "not a path": ("GET", "shapes", "/api/nothing"),
    "label studio is up": ("GET", "studio", "/health"),
    "label studio sets up": ("POST", "studio", "/setup", {"json": "setup"}),
    "label studio predicts": ("POST", "studio", "/predict", {"json": "predict"}),
}


def teach(path: Path, *shapes: str, first: int = 0) -> bytes:
    classes = {shape: [ImageBytes(one) for one in drawings(shape, 6, first)] for shape in shapes}
    learn_classes(ModelStore(path, device="cpu"), classes, PLAN)
    return path.read_bytes()


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    folder = tmp_path_factory.mktemp("story")
    teach(folder / "shapes.engram", "circle", "stripes", "dots")
    files = {"other": teach(folder / "other.engram", *OTHER, first=20)}
    for shape in ("circle", "dots"):
        (folder / f"{shape}-9.png").write_bytes(draw(shape, 9))
    recorded = {name: json.loads((Path(__file__).parent / f"label_studio/{name}.json").read_text()) for name in ("setup", "predict")}  # fmt: skip # noqa: E501
    recorded["predict"] = json.loads(json.dumps(recorded["predict"]).replace("d=cards/", "d="))

    def store(name):
        return ModelStore(folder / f"{name}.engram", device="cpu", wait=0.2)

    address, answers = "http://127.0.0.1:8000", {}
    studio = TestClient(create_backend(store("other"), PLAN, LabelStudioFiles(folder=folder)), base_url=address)
    with (
        TestClient(create_app(store("new"), PLAN), base_url=address) as new,
        TestClient(create_app(store("shapes"), PLAN), base_url=address) as shapes,
    ):
        clients = {"new": new, "shapes": shapes, "studio": studio}
        for name, (method, to, path, *more) in STORY.items():
            sent = dict(more[0]) if more else {}
            if "model" in sent.get("files", ()):
                content = sent["files"]["model"]
                sent["files"] = {"model": ("m", files.get(content, content))}
            if isinstance(sent.get("json"), str):
                sent["json"] = recorded[sent["json"]]
            if name == "lessons":
                ended(shapes, 1)
            answers[name] = clients[to].request(method, path, **sent)
    return folder, answers


@pytest.mark.parametrize("name", STORY)
def test_an_answer_over_http_is_as_before(told, name):
    folder, answers = told
    answer = answers[name]
    content = answer.json()
    if name == "lesson":  # it may have begun already
        content |= dict.fromkeys(("state", "stage", "current", "done", "total"))
    SNAPSHOTS.check(
        name, {"status": answer.status_code, "type": answer.headers["content-type"], "json": content}, folder
    )


def test_every_route_is_in_the_story_or_answers_no_json(tmp_path):
    app = create_app(ModelStore(tmp_path / "m.engram", device="cpu"), PLAN)
    routes = {(method.upper(), path) for path, one in app.openapi()["paths"].items() for method in one}
    asked = {(method, re.sub(r"/\d+$", "/{number}", path)) for method, to, path, *_ in STORY.values() if to != "studio"}
    assert {path for _, path in routes - asked} == {
        "/api/events", "/api/model/file", "/api/model/onnx", "/api/model/card",
    }  # fmt: skip
