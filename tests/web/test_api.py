"""The HTTP API: what it answers, and that the answers are the library's."""

import asyncio
import json
import multiprocessing
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import numpy as np
import pytest
from conftest import PLAN, TRAINED, ended, form, wait_for
from drawings import SHAPES, draw, drawings

import engram.web.export
from engram.encoders.onnx import open_graph
from engram.learners.trying import blobs
from engram.model import Model
from engram.store import ImageBytes, ModelStore, Plan, examine, learn_classes, model_card, new_model, predict_images
from engram.store.lock import model_lock
from engram.web.connections import PageServer
from engram.web.limits import Limits
from engram.web.neighbours import nearest_classes
from engram.web.predictor import Predictor
from engram.web.queue import Lesson

SLDA = Plan(method="slda")


def ask(client, *pictures: bytes):
    return client.post("/api/predict", files=[("picture", ("x", content)) for content in pictures])


def test_from_nothing_to_a_model_that_learns_forgets_and_remembers(open_client, tmp_path):
    client = open_client(tmp_path / "new.engram", plan=TRAINED)
    model = client.get("/api/model").json()
    assert (model["exists"], model["trains"]) == (False, True)
    assert ask(client, draw("dots", 0)).status_code == 409
    alone = client.post("/api/lessons", **form({"circle": drawings("circle", 6)}))
    assert (alone.status_code, alone.json()["detail"]) == (
        422,
        "the first lesson needs pictures of at least two classes",
    )

    base = client.post("/api/lessons", **form({name: drawings(name, 10) for name in ("circle", "dots")}))
    assert base.status_code == 202
    assert [base.json()[field] for field in ("classes", "base")] == [{"circle": 10, "dots": 10}, True]
    early = client.post("/api/lessons", **form({"square": drawings("square", 5), "stripes": drawings("stripes", 5)}))
    assert early.status_code == 409
    done = ended(client, 1)
    assert done["state"] == "done"

    two = client.post("/api/lessons", **form({name: drawings(name, 10) for name in ("stripes", "square")}))
    assert two.json()["number"] == 2  # one lesson, however many classes
    busy = client.post("/api/forget", json={"name": "dots"})
    assert (busy.status_code, "being learned" in busy.json()["detail"]) == (409, True)
    last = ended(client, 2)
    assert last["state"] == "done"
    model = client.get("/api/model").json()
    assert [one["name"] for one in model["classes"]] == ["circle", "dots", "stripes", "square"]
    assert [change["what"] for change in model["history"]] == ["base", "learn"]
    assert model["history"][1]["bytes"] == sum(map(len, drawings("stripes", 10) + drawings("square", 10)))
    assert (model["accuracy"], model["unknown"]) == (None, None)  # this method is not calibrated
    assert [one["health"] for one in model["classes"]] == [None] * 4
    assert client.get("/api/confusion").status_code == 409
    assert ask(client, draw("stripes", 50)).json()["answers"][0]["top"][0]["label"] == "stripes"

    again = client.post("/api/lessons", **form({"square": drawings("square", 10)}))
    assert ended(client, again.json()["number"])["message"] == "these pictures have been learned already"
    more = client.post("/api/lessons", **form({"square": drawings("square", 10, first=20)}))
    assert ended(client, more.json()["number"])["state"] == "done"

    assert client.post("/api/rename", json={"name": "dots", "new_name": "points"}).status_code == 200
    forgotten = client.post("/api/forget", json={"name": "points"}).json()
    assert [one["name"] for one in forgotten["classes"]] == ["circle", "stripes", "square"]
    stale = client.post("/api/undo", json={"version": model["version"]})
    assert (stale.status_code, stale.json()["detail"][:27]) == (409, "the model has changed since")
    undone = client.post("/api/undo", json={"version": forgotten["version"]}).json()
    assert [one["name"] for one in undone["classes"]] == ["circle", "points", "stripes", "square"]
    assert (undone["can_undo"], undone["can_redo"]) == (True, True)
    assert client.post("/api/redo", json={"version": forgotten["version"]}).status_code == 409  # not the newest now
    redone = client.post("/api/redo", json={"version": undone["version"]}).json()
    assert [one["name"] for one in redone["classes"]] == ["circle", "stripes", "square"]
    assert (redone["version"], redone["can_redo"]) == (forgotten["version"], False)
    undone = client.post("/api/undo", json={"version": redone["version"]}).json()
    final = client.post("/api/lessons", **form({"triangle": drawings("triangle", 10)})).json()
    assert [one["name"] for one in ended(client, final["number"])["result"]["learned"]] == ["triangle"]


def test_answers_are_the_librarys(open_client, model):
    client = open_client(model)
    pictures = [draw("circle", 40), draw("dots", 41), draw("triangle", 42), b"no picture"]
    said = ask(client, *pictures).json()
    place = ModelStore(model, device="cpu").read()
    expected = list(predict_images(place, pictures[:3], top=5, unknown=place.unknown_above(), device="cpu"))
    for name in ("similarity", "probability", "familiarity"):
        assert [(one["label"], one[name]) for one in said["answers"][:3]] == [
            (one.label, pytest.approx(getattr(one, name), rel=1e-3, abs=1e-3)) for one in expected
        ]
    assert [one["label"] for one in said["answers"][0]["top"]] == [one.label for one in expected[0].top]
    assert said["answers"][0]["top"][0]["probability"] == said["answers"][0]["probability"]
    assert said["answers"][3]["problem"].startswith("not a picture this page reads")
    assert said["milliseconds"] > 0
    assert said["unknown_below"] == -place.unknown_above()
    assert client.get("/api/model").json()["unknown"] == place.describe_unknown()


def test_only_these_answers(open_client, model):
    client, picture = open_client(model), draw("circle", 40)
    among = lambda text: client.post("/api/predict", files=[("picture", ("x", picture))], data={"among": text})  # noqa: E731
    (said,) = among("dots\n\n stripes \n").json()["answers"]
    assert {one["label"] for one in said["top"]} == {"dots", "stripes"}
    assert sum(one["probability"] for one in said["top"]) == pytest.approx(1, abs=1e-3)
    assert len(among("\n").json()["answers"][0]["top"]) == 3  # none chosen: all of them
    refused = among("dots\ngriffin")
    assert (refused.status_code, refused.json()["detail"]) == (
        422, "the model knows no class 'griffin' that could be an answer",
    )  # fmt: skip


def test_one_class_is_enough_where_nothing_is_trained(open_client, tmp_path):
    client = open_client(tmp_path / "new.engram")
    assert client.get("/api/model").json()["trains"] is False
    client.post("/api/lessons", **form({"circle": drawings("circle", 6)}))
    assert ended(client, 1)["state"] == "done"
    said = ask(client, draw("circle", 50)).json()
    assert (said["answers"][0]["label"], said["answers"][0]["probability"]) == ("circle", 1)
    assert said["unknown_below"] is None  # nothing to compare with yet
    assert client.get("/api/model").json()["unknown"] is None


def test_pictures_that_may_have_the_wrong_name_are_told_by_their_number(open_client, model):
    client = open_client(model)
    pictures = [*drawings("square", 11), *drawings("stripes", 3, first=30), *drawings("square", 4, first=11)]
    numbered = client.post("/api/lessons", **form({"square": pictures})).json()["number"]
    misfits = ended(client, numbered)["result"]["misfits"]
    odd = {(one["picture"], one["name"], one["answer"]) for one in misfits if one["probability"] > 0.5}
    assert odd
    assert odd <= {(number, "square", "stripes") for number in (12, 13, 14)}


def test_predictions_go_on_from_the_last_committed_model_while_a_class_is_learned(open_client, tmp_path, taught_bytes):
    path = tmp_path / "m.engram"
    path.write_bytes(taught_bytes)
    client = open_client(path)
    number = client.post("/api/lessons", **form({"square": drawings("square", 12)})).json()["number"]
    versions = []
    while client.get("/api/lessons").json()[-1]["state"] not in ("done", "failed"):
        answer = ask(client, draw("circle", 60))
        assert answer.status_code == 200
        versions.append(answer.json()["version"])
        time.sleep(0.2)  # the worker only has what predictions leave it
    assert ended(client, number)["state"] == "done"
    assert versions[0] == 1
    wait_for(lambda: ask(client, draw("circle", 60)).json()["version"] == 2, 10)


def test_cancelling_leaves_the_model_as_it_was(open_client, model, taught_bytes):
    client = open_client(model)
    first, second = (
        client.post("/api/lessons", **form({name: drawings(name, 60)})).json() for name in ("square", "triangle")
    )
    assert client.delete(f"/api/lessons/{second['number']}").json()["state"] == "cancelled"  # out of the queue
    wait_for(lambda: client.get("/api/lessons").json()[0]["stage"] == "look")
    client.delete(f"/api/lessons/{first['number']}")
    stopped = ended(client, first["number"])
    assert (stopped["state"], stopped["message"]) == ("cancelled", "stopped; the model is as it was")
    assert model.read_bytes() == taught_bytes
    assert client.delete("/api/lessons/99").status_code == 404
    # The worker is there for the next one.
    again = client.post("/api/lessons", **form({"square": drawings("square", 5)})).json()
    assert ended(client, again["number"])["state"] == "done"


@pytest.mark.slow
def test_a_worker_that_dies_fails_its_lesson_and_no_other(open_client, model, taught_bytes):
    client = open_client(model)
    number = client.post("/api/lessons", **form({"square": drawings("square", 60)})).json()["number"]
    wait_for(lambda: client.get("/api/lessons").json()[0]["stage"] == "look")
    next(child for child in multiprocessing.active_children() if child.name == "engram-worker").kill()
    assert ended(client, number)["message"] == "the learning process ended; the model is as it was"
    assert model.read_bytes() == taught_bytes
    again = client.post("/api/lessons", **form({"square": drawings("square", 5)})).json()
    assert ended(client, again["number"])["state"] == "done"


def test_what_others_do_to_the_file_is_seen(open_client, model):
    client = open_client(model)
    assert len(client.get("/api/model").json()["classes"]) == 3
    ModelStore(model, device="cpu").forget("dots")
    assert len(client.get("/api/model").json()["classes"]) == 2
    with model_lock(model, "learn"):
        held = client.post("/api/rename", json={"name": "circle", "new_name": "ring"})
    assert (held.status_code, "another process" in held.json()["detail"]) == (409, True)
    content = bytearray(model.read_bytes())
    content[-3] ^= 1
    model.write_bytes(content)
    damaged = client.get("/api/model").json()
    assert (damaged["exists"], damaged["can_learn"], damaged["can_undo"]) == (True, False, True)
    assert "does not match its checksum" in damaged["problem"]
    assert ask(client, draw("dots", 0)).status_code == 503
    whole = client.post("/api/undo", json={"version": 0}).json()  # the version that was kept takes its place
    assert (whole["problem"], len(whole["classes"])) == (None, 3)
    model.unlink()
    assert client.get("/api/model").json()["exists"] is False


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("forget", {"name": "nobody"}, 404, "knows no class 'nobody'"),
        ("forget", {}, 422, "body.name: Field required"),
        ("rename", {"name": "circle", "new_name": "dots"}, 409, "a class of that name exists"),
        ("rename", {"name": "nobody", "new_name": "x"}, 404, "knows no class 'nobody'"),
        ("rename", {"name": "circle", "new_name": "circle"}, 409, "called 'circle' already"),
        ("rename", {"name": "circle", "new_name": " "}, 422, "1 to 80 printable characters"),
        ("rename", {"name": "circle", "new_name": "a\x00b"}, 422, "1 to 80 printable characters"),
        ("rename", {"name": "circle", "new_name": "Unknown"}, 422, "what pictures of no class are called"),
        ("undo", {"version": 1}, 409, "there is nothing to go back to"),
        ("undo", {"version": 0}, 409, "the model has changed since"),
        ("redo", {"version": 1}, 409, "nothing to redo"),
        ("unknown", {"share": 0.7}, 422, "less than or equal to 0.5"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line_and_changes_nothing(
    open_client, model, taught_bytes, path, body, status, message
):
    answer = open_client(model).post(f"/api/{path}", json=body)
    assert answer.status_code == status
    assert message in answer.json()["detail"]
    assert model.read_bytes() == taught_bytes


def test_downloads(open_client, model, taught_bytes):
    client = open_client(model)
    file = client.get("/api/model/file")
    assert file.content == taught_bytes
    assert file.headers["content-disposition"] == "attachment; filename*=UTF-8''shapes.engram"
    card = client.get("/api/model/card")
    assert card.text == model_card(ModelStore(model, device="cpu"))
    assert card.headers["content-disposition"] == "attachment; filename*=UTF-8''shapes.md"


def test_the_onnx_file_answers_like_the_model(open_client, model):
    session = open_graph(open_client(model).get("/api/model/onnx").content)
    noise = np.random.default_rng(0).integers(0, 255, (1, 224, 224, 3), dtype=np.uint8)
    read = ModelStore(model, device="cpu").read()
    (expected,) = predict_images(read, noise, unknown=read.unknown_above(), device="cpu")
    scores, label, novelty, unknown = session.run(["scores", "label", "novelty", "unknown"], {"pictures": noise})
    assert (label.tolist(), unknown.tolist()) == ([expected.top[0].label], [expected.label == "unknown"])
    assert (scores.max(), -novelty[0]) == pytest.approx((expected.similarity, expected.familiarity), abs=1e-3)


def test_the_onnx_file_is_made_once_for_a_version_whoever_asks(open_client, model, monkeypatch):
    made, export = [], engram.web.export.export_model
    monkeypatch.setattr("engram.web.export.export_model", lambda *given: made.append(given) or export(*given))
    client = open_client(model)
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(client.get, "/api/model/onnx") for _ in range(3)]
    assert len({one.result().content for one in asked}) == len(made) == 1
    client.post("/api/rename", json={"name": "dots", "new_name": "points"})
    assert b"points" in client.get("/api/model/onnx").content


def test_an_export_that_fails_says_why(open_client, tmp_path):
    client = open_client(tmp_path / "new.engram", plan=TRAINED)
    client.post("/api/lessons", **form({name: drawings(name, 3) for name in ("circle", "dots")}))
    assert ended(client, 1)["state"] == "done"
    refused = client.get("/api/model/onnx")
    assert (refused.status_code, "drilled" in refused.json()["detail"]) == (409, True)


def test_events_tell_every_change(run, tmp_path):
    server = run(plan=replace(TRAINED, settings={"epochs": 150}), path=tmp_path / "new.engram")
    with httpx.Client(base_url=server.address, timeout=180) as client, client.stream("GET", "/api/events") as stream:
        told = (json.loads(line.removeprefix("data: ")) for line in stream.iter_lines() if line.startswith("data: "))
        first = next(told)
        assert (first["lessons"], first["model"]) == ([], "0")
        assert client.get("/api/state").json() == first
        client.post("/api/lessons", **form({name: drawings(name, 6) for name in ("circle", "dots")}))
        states = [next(told)]
        while states[-1]["lessons"][0]["state"] != "done":
            states.append(next(told))
        client.post("/api/rename", json={"name": "dots", "new_name": "points"})
        assert next(told)["model"] != states[-1]["model"]
    seen = [state["lessons"][0] for state in states]
    assert [one["state"] for one in seen] == sorted(
        (one["state"] for one in seen), key=["waiting", "learning", "done"].index
    )
    training = [one for one in seen if one["stage"] == "train" and one["state"] == "learning"]
    assert len(training) > 3
    assert [one["done"] for one in training] == sorted(one["done"] for one in training)
    assert all(one["total"] == 150 and one["loss"] > 0 for one in training)
    assert training[-1]["loss"] < training[0]["loss"]
    assert {state["server"] for state in states} == {first["server"]}


def test_answers_do_not_wait_in_the_network(engram, model, monkeypatch):
    """Sent in two parts with Nagle's algorithm they would, for 40 ms each."""
    at_once = []

    def run(server, sockets):
        async def accept(reader, writer):
            connection = writer.get_extra_info("socket")
            at_once.append(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0)
            writer.close()

        async def connect():
            async with await asyncio.start_server(accept, sock=sockets[0]):
                reader, writer = await asyncio.open_connection(*sockets[0].getsockname())
                await reader.read()
                writer.close()

        asyncio.run(connect())

    monkeypatch.setattr(PageServer, "run", run)
    assert engram("serve", model, "--no-open", "--port", "0").code == 0
    assert at_once == [True]


def test_the_nearest_classes_come_first_and_the_opposite_last():
    assert nearest_classes(np.ones((1, 8))) == [[]]
    vectors = np.array([[1.0, 0, 0], [0.9, 0.1, 0], [0, 0, 1], [0, 0, -2], [0, 0, 0]])
    near = nearest_classes(vectors)
    assert near[0][0] == (1, pytest.approx(0.9 / np.hypot(0.9, 0.1), abs=1e-4))
    assert [[j for j, _ in near[row]] for row in (2, 3)] == [[0, 1, 4], [0, 1, 4]]


def test_a_slim_model_answers_but_cannot_learn(open_client, model):
    store = ModelStore(model, device="cpu")
    model.unlink()
    learn_classes(store, {shape: [ImageBytes(each) for each in drawings(shape, 4)] for shape in SHAPES[:3]}, SLDA)
    taught = store.read()
    slim = replace(taught.learner, slim=(taught.learner.labels, *taught.learner.readout), sums=None)
    replace(taught, learner=slim).save(model)  # as versions before could
    client = open_client(model)
    assert client.get("/api/model").json()["can_learn"] is False
    assert ask(client, draw("dots", 70)).json()["answers"][0]["top"][0]["label"] == "dots"
    refused = client.post("/api/lessons", **form({"square": drawings("square", 2)}))
    assert (refused.status_code, "saved slim" in refused.json()["detail"]) == (409, True)


@pytest.mark.parametrize(("method", "leaves_out"), [("1nn", True), ("drilled", False)])
def test_a_method_without_class_vectors_has_no_neighbours(open_client, tmp_path, method, leaves_out):
    """Nor does it count pictures: nothing is made up instead."""
    store, plan = ModelStore(tmp_path / "m.engram", device="cpu"), Plan(method=method)
    learn_classes(
        store, {shape: [ImageBytes(content) for content in drawings(shape, 6)] for shape in ("circle", "dots")}, plan
    )
    client = open_client(store.path, plan=plan)
    model = client.get("/api/model").json()
    for one in model["classes"]:
        assert one["pictures"] is None
        assert (one["health"] is not None, one["neighbours"]) == (leaves_out, [])
        assert 0 <= one["hue"] < 360
    number = client.post("/api/lessons", **form({"stripes": drawings("stripes", 6)})).json()["number"]
    assert ended(client, number)["state"] == "done"
    said = ask(client, draw("stripes", 50)).json()["answers"][0]
    (expected,) = predict_images(store.read(), [draw("stripes", 50)], top=5, device="cpu")
    assert [one["label"] for one in said["top"]] == [one.label for one in expected.top]
    assert said["similarity"] == pytest.approx(expected.similarity, abs=2e-2)


def test_a_plan_that_cannot_work_fails_its_lesson(open_client, tmp_path):
    client = open_client(tmp_path / "new.engram", plan=Plan(backbone="vgg99"))
    client.post("/api/lessons", **form({name: drawings(name, 2) for name in ("circle", "dots")}))
    failed = ended(client, 1)
    assert (failed["state"], "vgg99" in failed["message"]) == ("failed", True)
    assert not (tmp_path / "new.engram").exists()


def test_time_left_is_told_from_the_stage_at_hand():
    lesson = Lesson(1, {}, False, PLAN, {}, [], state="learning", stage="train", done=5, total=20)
    lesson.stage_began = time.monotonic() - 10
    assert lesson.seconds_left == pytest.approx(30, abs=0.5)
    lesson.done = 0
    assert lesson.seconds_left is None


def test_who_asks_for_the_model_waits_for_the_one_being_read_and_an_answer_does_not(model):
    store = ModelStore(model, device="cpu")
    predictor = Predictor(store, Limits())
    assert predictor.current() is not None
    reading, go_on, read = threading.Event(), threading.Event(), predictor._read

    def read_slowly(stamp):
        reading.set()
        go_on.wait()
        return read(stamp)

    predictor._read = read_slowly
    store.forget("dots")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(predictor.current)
        reading.wait()
        told = pool.submit(predictor.current)  # of a change: the model before it would be taken for the one after
        meanwhile = predictor.current(wait=False)
        go_on.set()
        after = [seen.result().model.names for seen in (first, told)]
    assert ("dots" in meanwhile.model.names, after) == (True, [["circle", "stripes"]] * 2)
    predictor.close()


def test_how_classes_are_doing_is_told_by_leave_one_out(open_client, model):
    client = open_client(model)
    taught = drawings("square", 10)
    lesson = ended(client, client.post("/api/lessons", **form({"square": taught})).json()["number"])
    assert [one["pictures"] for one in lesson["result"]["learned"]] == [10]
    seen = client.get("/api/model").json()
    health = {one["name"]: one["health"] for one in seen["classes"]}
    assert health["square"]["pictures"] == 10
    expected = examine(ModelStore(model, device="cpu").read())
    assert health["square"]["share"] == expected.classes["square"].share
    assert seen["accuracy"]["share"] == expected.overall() == seen["history"][-1]["accuracy"]
    table = client.get("/api/confusion").json()
    assert table["names"] == ["circle", "dots", "stripes", "square"]
    rows = {row["name"]: row for row in table["rows"]}
    assert sum(rows["square"]["answers"].values()) == pytest.approx(1)
    assert rows["square"]["pictures"] == 10


def test_more_classes_than_lessons_may_wait_are_one_lesson_all_or_nothing(open_client, model, taught_bytes):
    client = open_client(model, limits=Limits(lessons=1))
    names = [f"shape {i}" for i in range(12)]
    pictures = {name: drawings("square", 1, first=i) for i, name in enumerate(names)}
    damaged = draw("dots", 3)[:200]  # its header can be read, and nothing more
    number = client.post("/api/lessons", **form({**pictures, "odd": [damaged]})).json()["number"]
    failed = ended(client, number)
    assert (failed["state"], failed["message"]) == (
        "failed", "odd: none of its pictures can be read; nothing was learned",
    )  # fmt: skip
    assert model.read_bytes() == taught_bytes
    done = ended(client, client.post("/api/lessons", **form(pictures)).json()["number"])
    assert [one["name"] for one in done["result"]["learned"]] == names
    seen = client.get("/api/model").json()
    assert len(seen["classes"]) == 15
    undone = client.post("/api/undo", json={"version": seen["version"]}).json()
    assert len(undone["classes"]) == 3


def test_a_name_that_looks_like_a_slip_is_asked_about(open_client, model):
    client = open_client(model)
    slip = client.post("/api/lessons", **form({"Circle": drawings("circle", 3, first=30)}))
    assert (slip.status_code, slip.json()["similar"]) == (409, {"Circle": "circle"})
    both = client.post("/api/lessons", **form({"Kite": drawings("square", 2), "kite": drawings("square", 2, first=9)}))
    assert (both.status_code, both.json()["similar"]) == (409, {"Kite": "kite", "kite": "Kite"})
    meant = form({"Circle": drawings("circle", 3, first=30)})
    meant["data"]["distinct"] = "true"
    assert client.post("/api/lessons", **meant).status_code == 202


def test_how_much_is_refused_can_be_set_and_undone(open_client, model):
    client = open_client(model)
    before = client.get("/api/model").json()["unknown"]
    seen = client.post("/api/unknown", json={"share": 0.2}).json()
    place = ModelStore(model, device="cpu").read()
    assert (seen["unknown"]["share"], seen["unknown"]["below"]) == (0.2, -place.unknown_above(0.2))
    assert ask(client, draw("circle", 40)).json()["unknown_below"] == -place.unknown_above(0.2) > before["below"]
    assert (seen["history"][-1]["what"], seen["history"][-1]["share"]) == ("refuse", 0.2)
    assert client.post("/api/undo", json={"version": seen["version"]}).json()["unknown"] == before


def test_another_model_is_shown_then_added_and_undone(open_client, model, taught_bytes, tmp_path):
    elsewhere = ModelStore(tmp_path / "elsewhere.engram", device="cpu")
    shapes = {shape: [ImageBytes(p) for p in drawings(shape, 8, first=50)] for shape in ("circle", "square")}
    learn_classes(elsewhere, shapes, PLAN)
    client = open_client(model)

    def add(content: bytes, **fields: str):
        return client.post("/api/merge", data=fields, files={"model": ("x", content)})

    plan = add(elsewhere.path.read_bytes()).json()
    assert (plan["added"], plan["joined"], plan["twice"], plan["model"]) == ({"square": 8}, {"circle": 8}, [], None)
    assert model.read_bytes() == taught_bytes
    done = add(elsewhere.path.read_bytes(), commit="true").json()["model"]
    assert [one["name"] for one in done["classes"]] == ["circle", "dots", "stripes", "square"]
    assert (done["classes"][0]["pictures"], done["history"][-1]["what"]) == (16, "merge")
    assert done["accuracy"] is None  # how classes of one do among those of the other was never asked
    assert ask(client, draw("square", 90)).json()["answers"][0]["top"][0]["label"] == "square"
    assert add(taught_bytes).json()["twice"] == ["circle", "dots", "stripes"]
    undone = client.post("/api/undo", json={"version": done["version"]}).json()
    assert len(undone["classes"]) == 3
    Model.new("ncm").learn(*blobs(["a", "b"]))[0].save(tmp_path / "vectors.engram")
    for content, status, reason in (
        (b"no model", 422, "the file"),
        ((tmp_path / "vectors.engram").read_bytes(), 409, "cannot merge this model and the other"),
    ):
        refused = add(content, commit="true")
        assert (refused.status_code, refused.json()["detail"].startswith(reason)) == (status, True)
        assert str(tmp_path) not in refused.json()["detail"]
    assert client.post("/api/merge", data={"commit": "true"}, files={"odd": ("x", b"1")}).status_code == 422
    assert model.read_bytes() == taught_bytes


def test_classes_that_came_with_the_backbone_are_one_group(open_client, tmp_path):
    store = ModelStore(tmp_path / "things.engram", device="cpu")
    new_model(store, "efficientnet_lite0:joined")
    client = open_client(store.path)
    model = client.get("/api/model").json()
    assert (model["classes"], model["built_in"]["classes"], model["unknown"]) == ([], 1000, None)
    assert len(ask(client, draw("dots", 0)).json()["answers"][0]["top"]) == 5
    shapes = {name: drawings(shape, 5) for name, shape in (("circle", "circle"), ("dots", "dots"), ("lion", "square"))}
    assert client.post("/api/lessons", **form(shapes)).status_code == 202
    assert ended(client, 1)["state"] == "done"
    model = client.get("/api/model").json()
    assert [one["name"] for one in model["classes"]] == ["circle", "dots", "lion"]
    assert model["built_in"]["classes"] == 999  # the lion that was taught takes the other's place
    assert all(one["neighbours"] and one["health"] for one in model["classes"])
    assert ask(client, draw("dots", 9)).json()["answers"][0]["label"] == "dots"
