"""The ML backend for Label Studio, asked as its documentation says that it asks.

The requests in `label_studio/` have the fields of https://labelstud.io/guide/webhook_reference and of the example in
the server of HumanSignal/label-studio-ml-backend.
"""

import copy
import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drawings import draw
from fastapi.testclient import TestClient

from engram.store import ModelStore, Plan
from engram.web import label_studio_files
from engram.web.label_studio import Choices, create_backend
from engram.web.label_studio_files import LabelStudioFiles
from engram.web.limits import RefusedError

RECORDED = Path(__file__).parent / "label_studio"


def recorded(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.json").read_text())


@pytest.fixture
def cards(tmp_path) -> Path:
    """A folder that Label Studio serves as local files."""
    (tmp_path / "files" / "cards").mkdir(parents=True)
    for shape in ("circle", "dots", "square"):
        for i in (0, 9):
            (tmp_path / "files" / "cards" / f"{shape}-{i}.png").write_bytes(draw(shape, i))
    (tmp_path / "secret.png").write_bytes(draw("dots", 1))
    return tmp_path / "files"


def backend(path: Path, files: LabelStudioFiles, **settings: Any) -> TestClient:
    """Which learns only inside `with`: that starts a process."""
    app = create_backend(ModelStore(path, device="cpu", wait=0.2), Plan(more=True), files, **settings)
    return TestClient(app, base_url="http://127.0.0.1:9090")


@pytest.fixture
def client(model, cards) -> TestClient:
    return backend(model, LabelStudioFiles(folder=cards))


def wait_until_learned(client: TestClient) -> list[Any]:
    queue = client.app.state.server.queue  # type: ignore[attr-defined]
    for _ in range(600):
        if not queue.busy():
            return list(queue.lessons())
        time.sleep(0.1)
    raise AssertionError("it is still learning after a minute")


def test_connecting_a_project(client):
    assert client.get("/health").json() == client.get("/").json() == {"status": "UP", "model_class": "engram"}
    assert client.post("/setup", json=recorded("setup")).json() == {"model_version": "shapes-1"}
    for schema, why in (
        ("<View><Text name='t' value='$t'/><Choices name='c' toName='t'/></View>", "no <Choices> for an <Image"),
        ("<View>", "not XML"),
        ("<!DOCTYPE v [<!ENTITY a 'b'>]><View>&a;</View>", "document type"),
    ):
        refused = client.post("/setup", json={"schema": schema})
        assert (refused.status_code, why in refused.json()["detail"]) == (422, True)


def test_predictions_are_the_models_own_answers_among_the_choices(client):
    found = client.post("/predict", json=recorded("predict")).json()["results"]
    assert [one["result"][0]["value"] for one in found] == [{"choices": ["circle"]}, {"choices": ["dots"]}]
    for one in found:
        assert one["model_version"] == "shapes-1"
        assert {key: one["result"][0][key] for key in ("from_name", "to_name", "type")} == {
            "from_name": "choice", "to_name": "image", "type": "choices",
        }  # fmt: skip
        assert 0.5 < one["score"] == one["result"][0]["score"] <= 1
    asked = recorded("predict")
    asked["label_config"] = asked["label_config"].replace('"circle"', '"stripes"')
    assert client.post("/predict", json=asked).json()["results"][0]["result"][0]["value"]["choices"] != ["circle"]


def test_what_cannot_be_answered_is_an_empty_prediction(client):
    asked = recorded("predict")
    for at, address in enumerate(("/data/local-files/?d=../secret.png", "/data/local-files/?d=cards/none.png")):
        asked["tasks"][at]["data"]["image"] = address
    asked["tasks"] += [{"id": 3, "data": {}}, recorded("predict")["tasks"][0]]
    found = client.post("/predict", json=asked).json()["results"]
    empty = {"result": [], "score": 0.0, "model_version": "shapes-1"}
    assert found[:3] == [empty] * 3
    assert found[3]["result"][0]["value"] == {"choices": ["circle"]}
    for choice in ("circle", "dots"):
        asked["label_config"] = asked["label_config"].replace(f'"{choice}"', f'"no {choice}"')
    assert client.post("/predict", json=asked).json()["results"] == [empty] * 4
    assert client.post("/predict", json={"tasks": "all"}).status_code == 422


def test_annotations_are_learned_as_they_come(model, cards, studio):
    event, url = recorded("annotation_created"), f"http://127.0.0.1:{studio.server_address[1]}"
    with backend(model, LabelStudioFiles(url, "9105a1", cards)) as client:
        told = client.post("/webhook", json=event)
        assert (told.status_code, told.json()) == (201, {"status": "ok", "result": "learning, number 1"})
        wait_until_learned(client)
        assert ModelStore(model, device="cpu").read().pictures()["hexagon"] == 1
        older = copy.deepcopy(event)
        del older["task"]  # which is asked for then, and is the same
        client.post("/webhook", json=older)
        event["task"]["data"]["image"] = "/data/local-files/?d=cards/square-9.png"
        client.post("/webhook", json=event | {"action": "ANNOTATION_UPDATED"})
        assert [lesson.classes for lesson in wait_until_learned(client)] == [{"hexagon": 1}] * 3
        assert ModelStore(model, device="cpu").read().pictures()["hexagon"] == 2
        found = client.post("/predict", json=recorded("predict")).json()["results"]
        assert found[0]["model_version"] == "shapes-3"
    assert studio.asked == [("/api/tasks/43/", "Token 9105a1")]


def test_a_first_annotation_makes_the_model(tmp_path, cards):
    with backend(tmp_path / "new.engram", LabelStudioFiles(folder=cards)) as client:
        empty = client.post("/predict", json=recorded("predict")).json()["results"]
        assert empty == [{"result": [], "score": 0.0, "model_version": "new-0"}] * 2
        client.post("/webhook", json=recorded("annotation_created"))
        assert wait_until_learned(client)[0].state == "done"
        assert ModelStore(tmp_path / "new.engram", device="cpu").read().names == ["hexagon"]


def test_what_is_no_annotation_of_one_choice_teaches_nothing(client):
    event, result = recorded("annotation_created"), recorded("annotation_created")["annotation"]["result"][0]
    skipped = copy.deepcopy(event)
    skipped["annotation"]["was_cancelled"] = True
    several = copy.deepcopy(event)
    several["annotation"]["result"][0]["value"]["choices"] = ["circle", "dots"]
    boxes = copy.deepcopy(event)
    boxes["annotation"]["result"] = [result | {"type": "rectanglelabels"}]
    for one in (skipped, several, boxes, event | {"action": "ANNOTATIONS_DELETED"}, {"action": "START_TRAINING"}):
        assert client.post("/webhook", json=one).json()["result"].startswith("nothing to learn")
    unreadable = copy.deepcopy(event)
    unreadable["task"]["data"]["image"] = "/data/local-files/?d=../secret.png"
    refused = client.post("/webhook", json=unreadable)
    assert (refused.status_code, "task 43: '../secret.png' is no file" in refused.json()["detail"]) == (422, True)
    bad = copy.deepcopy(event)
    bad["annotation"]["result"][0]["value"]["choices"] = ["unknown"]
    assert client.post("/webhook", json=bad).status_code == 422
    assert client.app.state.server.queue.lessons() == []


def test_only_label_studio_is_let_in(model, cards, client):
    guarded = backend(model, LabelStudioFiles(folder=cards), bound="0.0.0.0", login=("studio", "secret"))
    assert guarded.get("/health").status_code == 401
    assert guarded.get("/health", auth=("studio", "wrong")).status_code == 401
    assert guarded.get("/health", auth=("studio", "secret")).status_code == 200
    event = recorded("annotation_created")
    assert client.post("/webhook", json=event, headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post("/webhook", json=event, headers={"Host": "evil.example"}).status_code == 403
    assert client.post("/predict", json={"tasks": [], "label_config": " " * 16_000_000}).status_code == 413


# --- where pictures come from ----------------------------------------------------------------------------------------


@pytest.fixture
def studio() -> Iterator[Any]:
    """Something that answers like Label Studio, and remembers what it was asked."""
    asked: list[tuple[str, str | None]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            if self.path.startswith("/data/upload/"):
                self._send(200, draw("circle", 3))
            elif self.path == "/api/tasks/43/":
                self._send(200, json.dumps(recorded("annotation_created")["task"]).encode())
            elif self.path.startswith("/storage-data/"):
                self._send(302, b"", {"Location": f"http://127.0.0.1:{self.server.server_address[1]}/data/upload/1/a"})
            else:
                self._send(404, b"")

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, json.loads(body)["refresh"]))
            self._send(200, b'{"access": "short"}')

        def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = asked  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_pictures_are_fetched_from_label_studio_with_its_token(studio):
    url = f"http://127.0.0.1:{studio.server_address[1]}"
    files = LabelStudioFiles(url, "9105a1")
    for address in ("/data/upload/2/a.png", f"{url}/data/upload/2/a.png"):
        assert files.read(address) == draw("circle", 3)
    assert studio.asked == [("/data/upload/2/a.png", "Token 9105a1")] * 2
    assert files.task(43)["data"] == {"image": "/data/local-files/?d=cards/square-0.png"}
    newer = LabelStudioFiles(url, "head.body.signature")
    newer.read("/data/upload/2/a.png")
    newer.read("/data/upload/2/b.png")
    assert studio.asked[3:] == [
        ("/api/token/refresh", "head.body.signature"),
        ("/data/upload/2/a.png", "Bearer short"),
        ("/data/upload/2/b.png", "Bearer short"),
    ]


def test_nothing_is_fetched_from_elsewhere(studio, cards):
    url = f"http://127.0.0.1:{studio.server_address[1]}"
    files = LabelStudioFiles(url, "9105a1", cards)
    for address in (
        "http://169.254.169.254/latest/meta-data/",
        f"http://127.0.0.1:{studio.server_address[1] + 1}/data/upload/2/a.png",
        f"{url}@evil.example/data/upload/2/a.png",
        "//evil.example/data/upload/2/a.png",
        "s3://bucket/a.png",
        "file:///etc/passwd",
        "/etc/passwd",
        "/data/../api/users",
        "/api/users",
        "",
    ):
        with pytest.raises(ValueError, match=r"own host|no address of a picture"):
            files.read(address)
    for name in ("../secret.png", "/etc/passwd", "cards", "cards/../../secret.png", "x" * 300):
        with pytest.raises(ValueError, match="is no file in"):
            files.read(f"/data/local-files/?d={name}")
    (cards / "link.png").symlink_to(cards.parent / "secret.png")
    with pytest.raises(ValueError, match="is no file in"):
        files.read("/data/local-files/?d=link.png")
    assert studio.asked == []
    with pytest.raises(ValueError, match="answers 302 for /storage-data/uploaded/"):
        files.read("/storage-data/uploaded/?filepath=upload/2/a.png")
    with pytest.raises(ValueError, match="answers 404 for /data/none"):
        files.read("/data/none")
    with pytest.raises(ValueError, match="give its address with --label-studio-url"):
        LabelStudioFiles(folder=cards).read("/data/upload/2/a.png")


def test_what_is_too_large_is_not_read(studio, cards, monkeypatch):
    monkeypatch.setattr(label_studio_files, "MOST", 100)
    files = LabelStudioFiles(f"http://127.0.0.1:{studio.server_address[1]}", "9105a1", cards)
    for address in ("/data/upload/2/a.png", "/data/local-files/?d=cards/dots-0.png"):
        with pytest.raises(ValueError, match="is larger than"):
            files.read(address)


def test_a_task_that_cannot_be_had_is_told(model, studio, cards):
    event = recorded("annotation_created")
    del event["task"]
    event["annotation"]["task"] = "../users"
    asking = backend(model, LabelStudioFiles(f"http://127.0.0.1:{studio.server_address[1]}", "9105a1", cards))
    refused = asking.post("/webhook", json=event)
    assert (refused.status_code, "answers 404 for /api/tasks/..%2Fusers/" in refused.json()["detail"]) == (422, True)
    alone = backend(model, LabelStudioFiles(folder=cards))
    assert "LABEL_STUDIO_API_KEY" in alone.post("/webhook", json=event).json()["detail"]


def test_reading_a_labelling_interface():
    choices = Choices.parse(
        "<View><Image name='i' value='$photo'/><!-- a note --><Choices name='c' toName='other'/>"
        "<Choices name='d' toName='i'><Choice value='Wren' alias='wren'/><Choice value='robin'/></Choices></View>"
    )
    assert choices == Choices("d", "i", "photo", ("wren", "robin"))
    with pytest.raises(RefusedError, match="no <Choices>"):
        Choices.parse("<View><Image name='i' value='fixed.png'/><Choices name='c' toName='i'/></View>")


def test_what_cannot_work_is_told_at_once(engram, monkeypatch, tmp_path):
    monkeypatch.delenv("BASIC_AUTH_USER", raising=False)
    (tmp_path / "bad.engram").write_bytes(b"no model")
    for arguments, code, why in (
        (["--model", "m.engram", "--host", "0.0.0.0"], 2, "a login is needed: set BASIC_AUTH_USER"),
        (["--model", "m.engram", "--files", "nowhere"], 2, "nowhere is not a folder"),
        (["--model", "m.engram", "--label-studio-url", "localhost"], 2, "is not the address of a page"),
        (["--model", "bad.engram"], 3, "not an engram model"),
        ([], 2, "--model"),
    ):
        told = engram("label-studio", *arguments)
        assert (told.code, why in told.err) == (code, True), told.err
