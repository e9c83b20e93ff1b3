"""Who is let in, how much is taken, and that pictures are nowhere when a lesson is over."""

import asyncio
import gc
import io
import os
import re
import signal
import time
from pathlib import Path

import pytest
from conftest import ended, form, wait_for
from drawings import draw, drawings
from PIL import Image

from engram import IncrementalClassifier, cli
from engram.store import ImageBytes
from engram.testing import blobs
from engram.web.limits import Limits
from engram.web.routes import page
from engram.web.security import Guard, host_check, is_loopback

TOKEN = "a-token-of-some-length"


def png(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("1", (width, height)).save(file, "PNG")
    return file.getvalue()


def one(content: bytes = b"", **more):
    return {"files": [("picture", ("x", content or draw("dots", 0)))], **more}


@pytest.mark.parametrize(
    ("limits", "request_", "status", "message"),
    [
        ({"upload_bytes": 2_000_000}, one(bytes(2_100_000)), 413, "larger than 2 MB"),
        ({"asked_at_once": 2}, {"files": [("picture", ("x", b"1"))] * 3}, 413, "more than 2 pictures in one request"),
        ({"pixels": 1_000_000}, one(png(1001, 1000)), 413, "1001×1000 pixels, more than 1 million"),
        ({"predictions": 0}, one(), 429, "questions are waiting already"),
        ({}, {"json": {}}, 415, "multipart/form-data"),
        ({}, {"data": {"label": "x"}, "files": [("other", ("x", b"1"))]}, 422, "holds no pictures"),
        ({}, {"content": b"nonsense", "headers": {"Content-Type": "multipart/form-data"}}, 400, "cannot be read"),
        ({}, {"content": b"--x\r\n", "headers": {"Content-Type": "multipart/form-data; boundary=x"}}, 422, "no pict"),
    ],
)  # fmt: skip
def test_limits_of_a_question(open_client, model, limits, request_, status, message):
    answer = open_client(model, Limits(**limits)).post("/api/predict", **request_)
    assert (answer.status_code, message in answer.json()["detail"]) == (status, True), answer.text


def test_limits_hold_where_no_length_is_announced(open_client, model):
    def chunks():
        yield b'--x\r\nContent-Disposition: form-data; name="picture"; filename="x"\r\n\r\n'
        for _ in range(30):
            yield bytes(100_000)

    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    client = open_client(model, Limits(upload_bytes=1_000_000))
    assert client.post("/api/predict", content=chunks(), headers=headers).status_code == 413


@pytest.mark.parametrize(
    ("limits", "labels", "n", "status", "message"),
    [
        ({"pictures": 3}, ["square"], 4, 413, "more than 3 pictures"),
        ({}, ["square", "dots"], 3, 422, "3 pictures, but 2 labels"),
        ({}, [], 2, 422, "says nowhere what the pictures show"),
        ({}, ["x" * 81], 1, 422, "1 to 80 printable characters"),
        ({"lessons": 0}, ["square"], 1, 429, "lessons are waiting already"),
        ({"waiting_bytes": 100}, ["square"], 1, 429, "hold too many pictures already"),
    ],
)
def test_limits_of_a_lesson(open_client, model, taught_bytes, limits, labels, n, status, message):
    client = open_client(model, Limits(**limits))
    files = [("picture", ("x", content)) for content in drawings("square", n)]
    answer = client.post("/api/lessons", data={"label": labels}, files=files)
    assert (answer.status_code, message in answer.json()["detail"]) == (status, True), answer.text
    assert client.get("/api/lessons").json() == []
    assert model.read_bytes() == taught_bytes


async def never():
    await asyncio.sleep(60)


def send_without_end(app, path: str, headers: dict[str, str]) -> int:
    """The status of the answer to a body of which nothing arrives."""
    sent = []

    async def send(message):
        sent.append(message)

    headers = [(name.encode(), value.encode()) for name, value in {"host": "localhost", **headers}.items()]
    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
    asyncio.run(Guard(app, "127.0.0.1", None, Limits(seconds=0.1))(scope, never, send))
    assert b"longer than 0.1 seconds" in sent[1]["body"]
    return sent[0]["status"]


def test_an_upload_that_does_not_end_is_ended(open_client, model):
    app = open_client(model).app
    headers = {"content-type": "multipart/form-data; boundary=x"}
    for path in ("/api/predict", "/api/lessons"):
        assert send_without_end(app, path, headers) == 408


def test_a_request_without_pictures_is_small_and_quick(open_client, model, taught_bytes):
    def chunks():
        for _ in range(20):
            yield b" " * 10_000

    client = open_client(model)
    json_type = {"Content-Type": "application/json"}
    for body in (b" " * 70_000, chunks()):
        answer = client.post("/api/forget", content=body, headers=json_type)
        assert (answer.status_code, "more than 64 kB" in answer.json()["detail"]) == (413, True)
    assert model.read_bytes() == taught_bytes
    padded = b" " * 60_000 + b'{"name": "dots"}'
    assert client.post("/api/forget", content=padded, headers=json_type).status_code == 200

    assert send_without_end(client.app, "/api/undo", {}) == 408


def test_only_formats_of_cameras_and_browsers_are_opened(open_client, model):
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "EPS")  # Pillow would run another program for it
    client = open_client(model)
    assert "JPEG, PNG" in client.post("/api/predict", **one(file.getvalue())).json()["answers"][0]["problem"]
    mixed = form({"square": [file.getvalue(), *drawings("square", 5)]})
    lesson = client.post("/api/lessons", **mixed).json()[0]
    assert [bad["picture"] for bad in lesson["unreadable"]] == [1]
    broken = draw("square", 9)[:300]  # begins like a picture: found out only when it is decoded
    lesson = client.post("/api/lessons", **form({"square": [*drawings("square", 4), broken]})).json()[0]
    assert [bad["picture"] for bad in ended(client, lesson["number"])["unreadable"]] == [5]


@pytest.mark.parametrize(
    ("bound", "host", "accepted"),
    [
        ("127.0.0.1", "127.0.0.1:8000", True), ("127.0.0.1", "localhost:1", True), ("127.0.0.1", "[::1]:8000", True),
        ("127.0.0.1", "LOCALHOST", True), ("127.0.0.1", "evil.example:8000", False), ("127.0.0.1", "", False),
        ("127.0.0.1", "192.168.0.7:8000", False), ("127.0.0.1", "127.0.0.1.evil.example", False),
        ("127.0.0.1", "[", False), ("0.0.0.0", "192.168.0.7:8000", True), ("0.0.0.0", "evil.example", False),
        ("box.example", "box.example:80", True), ("box.example", "other.example", False),
    ],
)  # fmt: skip
def test_names_the_server_answers_to(bound, host, accepted):
    assert host_check(bound)(host) is accepted


def test_loopback():
    assert [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "127.3.2.1")] == [True] * 4
    assert [is_loopback(host) for host in ("0.0.0.0", "::", "192.168.0.7", "box.example")] == [False] * 4


def test_other_sites_cannot_reach_it(open_client, model):
    client = open_client(model)
    assert client.get("/api/model", headers={"Host": "evil.example"}).status_code == 403
    for headers in (
        {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
    ):  # fmt: skip
        for path in ("/api/predict", "/api/forget", "/api/undo", "/api/lessons"):
            assert client.post(path, headers=headers).status_code == 403, (path, headers)
        assert client.delete("/api/lessons/1", headers=headers).status_code == 403
    own = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/rename", json={"name": "dots", "new_name": "points"}, headers=own).status_code == 200


def test_nothing_without_the_token(open_client, model, monkeypatch):
    client = open_client(model, bound="0.0.0.0", token=TOKEN)
    paths = [path for path in client.app.openapi()["paths"] if "{" not in path]
    assert len(paths) > 8
    for path in [*paths, *(route.path for route in page.router.routes), "/app.js", "/api/openapi.json"]:
        refused = client.get(path)
        assert (refused.status_code, "the address with the token" in refused.json()["detail"]) == (401, True), path
    for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", "é"):
        assert client.get("/api/model", headers={"Authorization": f"Bearer {wrong}".encode()}).status_code == 401
        assert client.get("/", params={"token": wrong}).status_code == 401
    assert client.get("/api/model", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda a, b: compared.append((a, b)) or a == b)
    entered = client.get("/", params={"token": TOKEN}, follow_redirects=False)
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert compared == [(TOKEN.encode(), TOKEN.encode())]
    assert re.search(r"HttpOnly;.*SameSite=strict", entered.headers["set-cookie"])
    assert client.get("/api/model").status_code == 200  # the cookie
    assert client.get("/api/model", headers={"Host": "evil.example"}).status_code == 403


def test_every_answer_carries_the_headers(open_client, model):
    client = open_client(model)
    for path in ("/", "/app.js", "/api/model", "/nowhere", "/api/nowhere", "/../../etc/passwd"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"
    assert client.get("/nowhere").status_code == 404


def test_the_page_asks_nobody_else():
    """No address of elsewhere in the assets, and nothing inline that the policy would have to allow."""
    static = Path(__file__).parents[2] / "src" / "engram" / "web" / "static"
    for path in static.iterdir():
        text = path.read_text()
        assert set(re.findall(r"https?://[^\"'\s)]*", text)) <= {"http://www.w3.org/2000/svg"}, path
        assert not re.search(r"innerHTML|insertAdjacentHTML|eval\(|document\.write", text), path
    page = (static / "index.html").read_text()
    assert not re.search(r"<script(?! type=\"module\" src)|<style| style=| on[a-z]+=", page)


def needles(pictures: list[bytes]) -> list[bytes]:
    return [content[len(content) // 2 :][:48] for content in pictures]


def holds(path: Path, wanted: list[bytes]) -> bool:
    try:
        content = path.read_bytes()
    except OSError:  # closed meanwhile
        return False
    return any(needle in content for needle in wanted)


def open_files(pid: int) -> list[Path]:
    """Regular files a process has open, deleted ones included."""
    found = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(link)
        except OSError:  # closed meanwhile
            continue
        if target.startswith("/") and not target.startswith(("/dev/", "/proc/", "/sys/")):
            found.append(link)
    return found


def noisy_picture() -> bytes:
    """Noise, so that nothing of it can be anywhere by chance; 2 MB, which Starlette by itself puts on the disk."""
    file = io.BytesIO()
    Image.frombytes("RGB", (900, 800), os.urandom(900 * 800 * 3)).save(file, "PNG", compress_level=0)
    return file.getvalue()


def test_no_temporary_file_is_made_for_an_upload(open_client, model, monkeypatch):
    def made(*args, **kwargs):
        raise AssertionError("a temporary file")

    client = open_client(model)
    client.get("/api/model")
    monkeypatch.setattr("tempfile.TemporaryFile", made)
    monkeypatch.setattr("tempfile.NamedTemporaryFile", made)
    assert client.post("/api/predict", **one(noisy_picture())).status_code == 200
    assert client.post("/api/lessons", **form({"noise": [noisy_picture()]})).status_code == 202


def test_pictures_are_in_memory_only_and_gone_after_the_lesson(serve, tmp_path, model):
    noise = [noisy_picture() for _ in range(4)]
    wanted = needles(noise)
    temporary, cwd = tmp_path / "tmp", Path.cwd()
    temporary.mkdir()
    server = serve(model, TMPDIR=str(temporary))
    before = set(cwd.iterdir())
    number = server.client.post("/api/lessons", **form({"noise": noise})).json()[0]["number"]
    looked = 0
    while server.client.get("/api/lessons").json()[0]["state"] in ("waiting", "learning"):
        for pid in (server.process.pid, server.worker()):
            assert not any(holds(path, wanted) for path in open_files(pid))
        assert list(temporary.rglob("*")) == []
        looked += 1
        time.sleep(0.1)  # the worker only has what is left to it
    assert looked
    assert ended(server.client, number)["state"] == "done"
    server.client.post("/api/predict", files=[("picture", ("../../x.png", noise[0]))])
    assert set(cwd.iterdir()) == before
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or not holds(path, wanted), path
    assert {path.name for path in tmp_path.iterdir()} == {"tmp", "shapes.engram", "shapes.engram.versions"}
    for pid in (server.process.pid, server.worker()):
        assert not any(holds(path, wanted) for path in open_files(pid))


def test_no_picture_is_left_in_the_servers_memory(open_client, model):
    def pictures() -> int:
        gc.collect()
        return sum(type(one) is ImageBytes for one in gc.get_objects())

    before = pictures()
    held = ImageBytes(b"so that it is known that they would be found")
    assert (held.name, pictures()) == (held.name, before + 1)
    del held
    client = open_client(model)
    for name in ("square", "triangle"):
        number = client.post("/api/lessons", **form({name: drawings(name, 6)})).json()[0]["number"]
        assert ended(client, number)["state"] == "done"
        client.post("/api/predict", **one())
        wait_for(lambda: pictures() == before, 5)


@pytest.mark.slow
def test_a_server_that_is_killed_while_it_learns_leaves_the_model_and_no_worker(serve, model, taught_bytes):
    server = serve(model)
    worker = server.worker()
    server.client.post("/api/lessons", **form({"square": drawings("square", 100)}))
    wait_for(lambda: server.client.get("/api/lessons").json()[0]["stage"] == "look")
    server.stop(signal.SIGKILL)
    wait_for(
        lambda: not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text().split()[2], 20
    )
    assert model.read_bytes() == taught_bytes
    again = serve(model)
    assert again.client.get("/api/lessons").json() == []
    assert len(again.client.get("/api/model").json()["classes"]) == 3
    number = again.client.post("/api/lessons", **form({"square": drawings("square", 5)})).json()[0]["number"]
    assert ended(again.client, number)["state"] == "done"  # no lock is left behind
    again.stop()
    assert again.process.returncode in (0, 130, -signal.SIGINT)


def test_beyond_this_machine_a_token_is_printed_once(serve, model):
    server = serve(model, "--host", "0.0.0.0")
    assert re.fullmatch(r"http://0\.0\.0\.0:\d+/\?token=[\w-]{32}", server.address)
    port = server.address.split(":")[2].split("/")[0]
    assert server.client.get(f"http://127.0.0.1:{port}/api/model").status_code == 401
    entered = server.client.get(server.address.replace("0.0.0.0", "127.0.0.1"), follow_redirects=True)
    assert (entered.status_code, "engram" in entered.text) == (200, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no/m.engram"], "is not a folder; make it first"),
        (["vectors.engram"], "was taught feature vectors, and the page is about pictures"),
        (["m.engram", "--backbone", "vgg99"], "no backbone is called 'vgg99'"),
        (["m.engram", "--host", "192.0.2.1"], "cannot listen on 192.0.2.1, port 8000"),
        (["m.engram", "--host", "no such host"], "cannot listen on no such host"),
        (["m.engram", "--set", "epochs"], "is not NAME=VALUE"),
        (["m.engram", "--set", "epochs=3"], "has no setting 'epochs'"),
    ],
)
def test_what_cannot_be_served_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    IncrementalClassifier("ncm", device="cpu").fit(*blobs(["a", "b"])).save("vectors.engram")
    monkeypatch.setattr("sys.argv", ["engram", "serve", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err
    assert (end.value.code, message in said) == (2, True), said
    assert len(said.strip().splitlines()) == 1
