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
import segno
from conftest import ended, form, wait_for
from drawings import draw, drawings
from PIL import Image

from engram import cli
from engram.cli.serve import _draw
from engram.files import model_file
from engram.learners.trying import blobs
from engram.model import Model
from engram.names import similar_name
from engram.store import ImageBytes
from engram.web.addresses import PublicUrl, host_check, is_loopback, own_names, page_addresses
from engram.web.limits import Limits, RefusedError
from engram.web.routes import page
from engram.web.security import Guard
from engram.web.token import kept_token
from engram.web.uploads import class_name

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
        ({"asked_at_once": 2}, {"files": [("picture", ("x", b"1"))] * 3}, 413, "more than 2 files in one request"),
        ({"pixels": 1_000_000}, one(png(1001, 1000)), 413, "1001×1000 pixels, more than 1 million"),
        ({"asked_pixels": 1_000_000}, {"files": [("picture", ("x", png(800, 800)))] * 2}, 413,
         "these pictures have 1 million pixels, more than 1 million; send fewer at once"),
        ({"pixels_per_client": 10_000}, one(png(200, 200)), 429, "pixels from this address would be under way"),
        ({"bytes_in_flight": 100_000}, one(bytes(100_000)), 429, "too many pictures are being sent at the same time"),
        ({}, one(png(30_000, 30_000)), 413, "picture 1 has 900 million pixels, more than 40 million; make it smaller"),
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
        ({"pictures": 3}, ["square"], 4, 413, "more than 3 files"),
        ({"taught_pixels": 100_000}, ["square"], 4, 413, "send fewer at once, or make them smaller"),
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
    lesson = client.post("/api/lessons", **mixed).json()
    assert [bad["picture"] for bad in lesson["unreadable"]] == [1]
    broken = draw("square", 9)[:300]  # begins like a picture: found out only when it is decoded
    lesson = client.post("/api/lessons", **form({"square": [*drawings("square", 4), broken]})).json()
    assert [bad["picture"] for bad in ended(client, lesson["number"])["unreadable"]] == [5]


@pytest.mark.parametrize(
    ("bound", "host", "accepted"),
    [
        ("127.0.0.1", "127.0.0.1:8000", True), ("127.0.0.1", "localhost:1", True), ("127.0.0.1", "[::1]:8000", True),
        ("127.0.0.1", "LOCALHOST", True), ("127.0.0.1", "evil.example:8000", False), ("127.0.0.1", "", False),
        ("127.0.0.1", "192.168.0.7:8000", False), ("127.0.0.1", "127.0.0.1.evil.example", False),
        ("127.0.0.1", "[", False), ("0.0.0.0", "192.168.0.7:8000", True), ("0.0.0.0", "evil.example", False),
        ("box.example", "box.example:80", True), ("box.example", "other.example", False),
        ("0.0.0.0", "BOX.local:8000", True), ("0.0.0.0", "box.lan", True), ("0.0.0.0", "other.local", False),
        ("127.0.0.1", "box.local", False),
    ],
)  # fmt: skip
def test_names_the_server_answers_to(monkeypatch, bound, host, accepted):
    monkeypatch.setattr("socket.gethostname", lambda: "Box.lan")
    assert host_check(bound)(host) is accepted


def test_addresses_that_other_devices_can_open(monkeypatch):
    monkeypatch.setattr("socket.gethostname", lambda: "Box.lan")
    assert own_names() == ["box.local", "box.lan"]
    assert page_addresses("127.0.0.1", 80) == ["http://127.0.0.1:80/"]
    assert page_addresses("::1", 80) == ["http://[::1]:80/"]
    assert page_addresses("box.example", 80) == ["http://box.example:80/"]
    everywhere = page_addresses("0.0.0.0", 80)
    assert everywhere[-1] == "http://box.local:80/"
    assert not any("0.0.0.0" in address for address in everywhere)
    monkeypatch.setattr("socket.socket.connect", lambda self, address: (_ for _ in ()).throw(OSError("no network")))
    assert page_addresses("0.0.0.0", 80) == ["http://127.0.0.1:80/", "http://box.local:80/"]
    assert page_addresses("::", 80) == ["http://[::1]:80/", "http://box.local:80/"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://Birds.example", "https://birds.example/"), ("http://b.example:8080/x", "http://b.example:8080/x/"),
        ("https://b.example:443/", "https://b.example/"), ("https://[::1]:8443", "https://[::1]:8443/"),
        ("b.example", None), ("ftp://b.example", None), ("https://", None), ("https://b.example?x=1", None),
        ("https://me@b.example", None), ("https://b.example:port", None), ("https://b.example#x", None),
    ],
)  # fmt: skip
def test_the_public_address_is_an_address(text, shown):
    if shown is None:
        with pytest.raises(ValueError, match="not the address of a page"):
            PublicUrl.parse(text)
    else:
        assert str(PublicUrl.parse(text)) == shown


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
        for path in ("/api/model", "/api/model/onnx", "/api/model/file", "/api/events", "/api/openapi.json"):
            assert client.get(path, headers=headers).status_code == 403, (path, headers)
        assert client.get("/", headers=headers).status_code == 200  # whoever follows a link sees the page
        assert client.delete("/api/lessons/1", headers=headers).status_code == 403
    own = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/rename", json={"name": "dots", "new_name": "points"}, headers=own).status_code == 200


def test_nothing_without_the_token(open_client, model, monkeypatch):
    client = open_client(model, bound="0.0.0.0", token=TOKEN)
    paths = [path for path in client.app.openapi()["paths"] if "{" not in path]
    assert len(paths) > 8
    drawn_with = {"/style.css", "/icon.svg"}  # the page that asks for the token is
    for path in {*paths, *(route.path for route in page.router.routes), "/app.js", "/api/openapi.json"} - drawn_with:
        refused = client.get(path)
        assert (refused.status_code, "the address with the token" in refused.json()["detail"]) == (401, True), path
    assert [client.get(path).status_code for path in drawn_with] == [200, 200]
    for wrong in ("", "x", TOKEN[:-1], TOKEN + "x", "é"):
        assert client.get("/api/model", headers={"Authorization": f"Bearer {wrong}".encode()}).status_code == 401
        assert client.get("/", params={"token": wrong}).status_code == 401
        assert client.get("/api/model", headers={"Cookie": f"engram_token_8000={wrong}".encode()}).status_code == 401
    assert client.get("/api/model", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda a, b: compared.append((a, b)) or a == b)
    entered = client.get("/", params={"token": TOKEN}, follow_redirects=False)
    assert (entered.status_code, entered.headers["location"]) == (303, "./")
    assert compared == [(TOKEN.encode(), TOKEN.encode())]
    # Lax, so that it is there when a link elsewhere is followed; gone with the browser, as the token with the server.
    assert entered.headers["set-cookie"] == f"engram_token_8000={TOKEN}; HttpOnly; Path=/; SameSite=lax"
    assert client.get("/api/model").status_code == 200  # the cookie
    assert client.get("/api/model", headers={"Host": "evil.example"}).status_code == 403


def test_a_browser_without_the_token_is_asked_for_it(open_client, model):
    client = open_client(model, bound="0.0.0.0", token=TOKEN)
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Site": "cross-site"}
    asked = client.get("/", headers=browser)
    assert (asked.status_code, asked.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert '<form method="get" action="./">' in asked.text
    assert "form-action 'self'" in asked.headers["content-security-policy"]
    assert not re.search(r"<script|<style| style=| on[a-z]+=|https?:|\{|not the token", asked.text)
    again = client.get("/", params={"token": "<b>wrong"}, headers=browser)
    assert (again.status_code, "not the token of this server" in again.text, "wrong" in again.text) == (
        401,
        True,
        False,
    )
    assert client.get("/api/model", headers={"Accept": "text/html"}).json()["detail"].startswith("open the address")
    entered = client.get("/", params={"token": TOKEN}, headers=browser)
    assert (entered.status_code, "<main" in entered.text, "needs a token" in entered.text) == (200, True, False)


def test_two_servers_of_one_host_do_not_log_each_other_out(open_client, model):
    """Browsers know no ports when they send cookies."""
    jar, tokens = {}, {8000: TOKEN, 9000: "another-token-of-some-length"}
    for port, token in tokens.items():
        client = open_client(model, bound="0.0.0.0", token=token)
        host = {"Host": f"127.0.0.1:{port}"}
        entered = client.get("/", params={"token": token}, headers=host, follow_redirects=False)
        name, _, value = entered.headers["set-cookie"].partition(";")[0].partition("=")
        jar[name] = value
    for port, token in tokens.items():
        client = open_client(model, bound="0.0.0.0", token=token)
        both = "; ".join(f"{name}={value}" for name, value in jar.items())
        headers = {"Host": f"127.0.0.1:{port}", "Cookie": f"odd[name]=x; {both}"}
        assert client.get("/api/model", headers=headers).status_code == 200


def test_behind_a_proxy(open_client, model):
    public = PublicUrl.parse("https://birds.example/page")
    client = open_client(model, token=TOKEN, public=public, token_is_kept=True)
    entered = client.get("/", params={"token": TOKEN}, headers={"Host": "birds.example"}, follow_redirects=False)
    assert entered.headers["set-cookie"] == (
        f"engram_token_={TOKEN}; HttpOnly; Max-Age=2592000; Path=/page/; SameSite=lax; Secure"
    )
    sent = {"Authorization": f"Bearer {TOKEN}", "Origin": "https://birds.example"}
    wanted = {"json": {"name": "nobody"}}  # is let in, and not found
    for host in ("birds.example", "127.0.0.1:8000"):  # as the proxy passes it on
        assert client.post("/api/forget", headers=sent | {"Host": host}, **wanted).status_code == 404
    assert client.post("/api/forget", headers=sent | {"Host": "evil.example"}, **wanted).status_code == 403
    for origin in ("https://evil.example", "http://birds.example.evil", "https://birds.example:8443"):
        assert client.post("/api/forget", headers=sent | {"Origin": origin}, **wanted).status_code == 403


def test_encrypted_connections_get_a_secure_cookie(open_client, model):
    client = open_client(model, bound="0.0.0.0", token=TOKEN)
    for scheme, secure in (("http", False), ("https", True)):
        entered = client.get(f"{scheme}://127.0.0.1:8000/", params={"token": TOKEN}, follow_redirects=False)
        assert ("Secure" in entered.headers["set-cookie"]) is secure


def test_a_token_is_kept_in_a_file(tmp_path):
    path = tmp_path / "token"
    token = kept_token(path)
    assert re.fullmatch(r"[\w-]{32}", token)
    assert (kept_token(path), path.stat().st_mode & 0o777) == (token, 0o600)
    assert [each.name for each in tmp_path.iterdir()] == ["token"]
    for content in ("", "too-short", "with spaces in it, and long", "ünïcödé-and-long-enough"):
        path.write_text(content)
        with pytest.raises(ValueError, match="holds no token"):
            kept_token(path)
    path.write_text("a-token-of-my-own-choice\n")
    assert kept_token(path) == "a-token-of-my-own-choice"
    for mode in (0o640, 0o604):
        path.chmod(mode)
        with pytest.raises(ValueError, match="others on this machine may read"):
            kept_token(path)
    with pytest.raises(ValueError, match=r"cannot use .*No such file"):
        kept_token(tmp_path / "no" / "token")
    with pytest.raises(ValueError, match="cannot use"):
        kept_token(tmp_path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("  Great   tit ", "Great tit"), ("cafe\u0301", "caf\u00e9"), ("\U0001f469\u200d\U0001f33e", None),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", None), ("\u2764\ufe0f", None),
        ("e\u0301" * 80, "\u00e9" * 80),
    ],
)  # fmt: skip
def test_names_of_all_scripts(text, name):
    assert class_name(text, Limits()) == (name or text)


@pytest.mark.parametrize(
    "text",
    ["", " ", "\u200d", "\u200c\u200d", "a\x00b", "a\u202eb", "a\u2066b", "a\u200eb", "\ud800", "x" * 81, "\ufeffa"],
)
def test_names_that_would_deceive_are_refused(text):
    with pytest.raises(RefusedError):
        class_name(text, Limits())


@pytest.mark.parametrize("text", ["unknown", "UNKNOWN", "\uff35nknown", "un\u200cknown"])
def test_no_class_is_called_like_no_class(text):
    with pytest.raises(RefusedError):
        class_name(text, Limits())


def test_names_that_differ_in_case_or_form_alone():
    known = ["Robin", "Stra\u00dfe", "caf\u00e9"]
    assert similar_name("robin", known) == "Robin"
    assert similar_name("STRASSE", known) == "Stra\u00dfe"
    assert similar_name("\uff32obin", known) == "Robin"
    assert similar_name("Cafe\u0301", known) == "caf\u00e9"
    assert similar_name("ro\u200cbin", known) == "Robin"
    assert similar_name("Robin", known) is None
    assert similar_name("cafe", known) is None


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
    for path in filter(Path.is_file, static.rglob("*")):
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
    number = server.client.post("/api/lessons", **form({"noise": noise})).json()["number"]
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
    number = client.post("/api/lessons", **form({"square": drawings("square", 6)})).json()["number"]
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
    number = again.client.post("/api/lessons", **form({"square": drawings("square", 5)})).json()["number"]
    assert ended(again.client, number)["state"] == "done"  # no lock is left behind
    again.stop()
    assert again.process.returncode in (0, 130, -signal.SIGINT)


def test_beyond_this_machine_a_token_is_printed_once(serve, model):
    server = serve(model, "--host", "0.0.0.0")
    printed = re.fullmatch(r"http://([\d.]+):(\d+)/\?token=[\w-]{32}", server.address)
    assert printed
    assert printed[1] != "0.0.0.0"  # which is no address to open
    assert server.client.get(f"http://127.0.0.1:{printed[2]}/api/model").status_code == 401
    entered = server.client.get(server.address, follow_redirects=True)
    assert (entered.status_code, "engram" in entered.text) == (200, True)


def test_a_phone_is_shown_the_address(capsys):
    address = "http://192.168.0.7:8000/?token=a-token-of-some-length"
    _draw(address)
    drawn = capsys.readouterr().err.strip("\n").splitlines()
    side = segno.make(address, error="l").symbol_size()[0]
    assert (set("".join(drawn)) <= set("█▀▄ "), {len(line) for line in drawn}) == (True, {side})
    assert len(drawn) == (side + 1) // 2  # two rows of the code in one of text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no/m.engram"], "is not a folder; make it first"),
        (["vectors.engram"], "was taught feature vectors, and the page is about pictures"),
        (["absent.engram"], "no method is called 'absent'"),
        (["m.engram", "--backbone", "vgg99"], "vgg99"),
        (["m.engram", "--host", "192.0.2.1"], "cannot listen on 192.0.2.1, port 8000"),
        (["m.engram", "--host", "no such host"], "cannot listen on no such host"),
        (["m.engram", "--public-url", "birds.example"], "not the address of a page; write https://NAME"),
        (["m.engram", "--token-file", "vectors.engram"], "vectors.engram holds no token"),
        (["m.engram", "--set", "epochs"], "is not NAME=VALUE"),
        (["m.engram", "--set", "epochs=3"], "has no setting 'epochs'"),
    ],
)
def test_what_cannot_be_served_is_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    Model.new("ncm").learn(*blobs(["a", "b"]))[0].save("vectors.engram")
    arrays, header = model_file.read("vectors.engram")
    encoder = {"name": "efficientnet_lite0", "identity": "efficientnet_lite0@224"}
    model_file.write("absent.engram", arrays, {**header, "method": "absent", "backbone": encoder})
    monkeypatch.setattr("sys.argv", ["engram", "serve", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    said = capsys.readouterr().err
    assert (end.value.code, message in said) == (2, True), said
    assert len(said.strip().splitlines()) == 1
