"""Whoever means harm: half-open connections, pictures that take long, uploads without end, clients that hang up."""

import asyncio
import contextlib
import errno
import io
import logging
import os
import resource
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from conftest import PLAN, ended, form, wait_for
from drawings import draw, drawings
from PIL import Image

from engram.encoders.base import Preprocess
from engram.store import ModelStore, Plan, predict_images, prepare
from engram.web.connections import FewLines
from engram.web.decoder import Decoder, may_take_long
from engram.web.limits import Limits
from engram.web.worker import Learn, Worker

HALF = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
UPLOAD = (
    b"POST /api/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n"
    b'Content-Length: 90000\r\n\r\n--x\r\nContent-Disposition: form-data; name="picture"; filename="x"\r\n\r\n'
)


def question(*pictures: bytes) -> bytes:
    """A request about pictures, as it is sent."""
    request = httpx.Request("POST", "http://localhost/api/predict", files=[("picture", each) for each in pictures])
    lines = ["POST /api/predict HTTP/1.1", "Host: localhost"]
    lines += [f"{name}: {request.headers[name]}" for name in ("Content-Type", "Content-Length")]
    return "\r\n".join([*lines, "\r\n"]).encode() + request.read()


def is_closed(connection: socket.socket) -> bool:
    """Waits until the server has closed it."""
    with contextlib.suppress(ConnectionError):
        while connection.recv(1000):
            pass
    return True


# --- connections ------------------------------------------------------------------------------------------------------


def test_half_open_connections_do_not_keep_others_out(run):
    server = run(Limits(connections_per_address=20, header_seconds=60))
    for _ in range(60):
        server.connect(HALF)
    assert server.get().status_code == 200
    wait_for(lambda: server.connections() <= 20)
    assert is_closed(server.sockets[0])  # the oldest had to go
    server.sockets[-1].sendall(b"\r\n\r\n")
    assert server.sockets[-1].recv(12) == b"HTTP/1.1 200"  # the newest did not


def test_connections_are_limited_in_all(run):
    server = run(Limits(connections=6, connections_per_address=4, header_seconds=60))
    for number in range(20):
        server.connect(HALF, f"127.0.0.{1 + number % 5}")
    assert is_closed(server.sockets[0])
    wait_for(lambda: server.connections() <= 6)
    assert server.get().status_code == 200


def test_connections_that_are_used_stay_and_a_new_one_is_closed(run):
    server = run(Limits(connections_per_address=3))
    streams = [server.connect(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(3)]
    assert [stream.recv(12) for stream in streams] == [b"HTTP/1.1 200"] * 3
    with pytest.raises(httpx.TransportError):
        server.get()
    assert server.connections() == 3


@pytest.mark.parametrize(
    "before",
    [
        b"",
        HALF,
        b"GET /icon.svg HTTP/1.1\r\nHost: localhost\r\n\r\nGET /",  # a request, and the beginning of another
        b"POST /api/predict HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 90000\r\n\r\n",  # refused, and goes on
    ],
)
def test_headers_have_to_come_in_time_however_slowly_they_drip(run, before):
    connection = run(Limits(header_seconds=0.3)).connect(before)
    with contextlib.suppress(ConnectionError):
        while True:
            connection.sendall(b"x")
            connection.settimeout(0.1)
            with contextlib.suppress(TimeoutError):
                if not connection.recv(10_000):
                    break
    connection.settimeout(20)
    assert is_closed(connection)


def test_what_is_answered_may_take_longer_than_headers(run):
    server = run(Limits(header_seconds=0.2))
    connection = server.connect(UPLOAD)
    time.sleep(0.6)
    connection.sendall(bytes(90_000))
    assert connection.recv(12) == b"HTTP/1.1 422"  # a form that does not end


def test_log_lines_of_a_kind_are_few():
    written, rate = [], FewLines(3, minute=0.2)
    logger = logging.Logger("test")
    logger.addFilter(rate)
    handler = logging.Handler()
    handler.emit = lambda record: written.append(record.getMessage())
    logger.addHandler(handler)
    for number in range(50):
        logger.error(f"flood {number}")
    logger.error("something else")
    assert written == ["flood 0", "flood 1", "flood 2", "something else"]
    time.sleep(0.3)
    logger.error("later")
    assert written[-1] == "later\n(47 lines like those before were left out)"


def test_a_server_out_of_file_descriptors_writes_little_and_recovers(serve, model, tmp_path):
    with (tmp_path / "stderr").open("w+") as stderr:
        server = serve(model, stderr=stderr)
        used = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (used + 10, used + 10))
        port = server.client.base_url.port
        flood = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        wait_for(lambda: (tmp_path / "stderr").stat().st_size)
        time.sleep(1.5)  # asyncio tries again every second
        for each in flood:
            each.close()
        assert wait_for(lambda: server.client.get("/").status_code) == 200
        assert len((tmp_path / "stderr").read_text().splitlines()) < 150


def test_ctrl_c_ends_open_pages_and_with_a_kept_token_they_go_on_after_it(serve, model, tmp_path):
    kept = ("--token-file", str(tmp_path / "token"))
    with (tmp_path / "stderr").open("w+") as stderr:
        server = serve(model, "--quiet", *kept, stderr=stderr)
        port = server.client.base_url.port
        assert server.client.get("/api/model").status_code == 401  # although it is this machine
        assert server.client.get(server.address, follow_redirects=True).status_code == 200
        with socket.create_connection(("127.0.0.1", port)) as half, server.client.stream("GET", "/api/events") as page:
            half.sendall(HALF)
            told = page.iter_lines()
            assert next(told).startswith("data: ")
            server.process.send_signal(signal.SIGINT)
            assert list(told) in ([], [""])  # it ends as it should, and is not cut off
        assert server.process.wait(timeout=20) in (130, -signal.SIGINT)
        assert (tmp_path / "stderr").read_text() == ""
    again = serve(model, "--port", str(port), *kept)
    again.client.cookies.update(server.client.cookies)
    assert again.client.get("/api/model").status_code == 200


# --- pictures ---------------------------------------------------------------------------------------------------------


def deep_grey(side: int) -> bytes:
    file = io.BytesIO()
    Image.new("I;16", (side, side), 7000).save(file, "PNG", compress_level=1)
    return file.getvalue()


def jpeg_of_many_passes(side: int, passes: int) -> bytes:
    file = io.BytesIO()
    Image.new("L", (side, side)).save(file, "JPEG", progressive=True)
    content = file.getvalue()
    last = content[content.rindex(b"\xff\xda") : -2]
    return content[:-2] + last * passes + content[-2:]


def children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def most_megabytes(pid: int) -> float:
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1000
    return 0.0


def test_large_pictures_that_nobody_waits_for_stall_nobody_and_take_no_gigabytes(serve, model):
    server = serve(model)
    usual = server.client.post("/api/predict", files=[("picture", ("x", draw("dots", 1)))]).json()
    before = most_megabytes(server.process.pid)
    large = deep_grey(4200)  # just enough to be decoded in the other process
    for _ in range(2):
        with socket.create_connection(("127.0.0.1", server.client.base_url.port)) as abandoned:
            abandoned.sendall(question(*[large] * 6))
    again = server.client.post("/api/predict", files=[("picture", ("x", draw("dots", 1)))]).json()
    assert again["answers"] == usual["answers"]
    one = server.client.post("/api/predict", files=[("picture", ("x", large))])  # behind what is left of the others
    assert one.json()["answers"][0]["problem"] is None
    broken = server.client.post("/api/predict", files=[("picture", ("x", large[:-1000]))])
    assert "truncated" in broken.json()["answers"][0]["problem"]
    assert most_megabytes(server.process.pid) < before + 100
    assert max(map(most_megabytes, children(server.process.pid))) < 1000
    together = server.client.post("/api/predict", files=[("picture", large)] * 15)
    assert (together.status_code, "264 million pixels, more than 256" in together.json()["detail"]) == (413, True)


def test_the_work_ends_when_the_client_hangs_up(run):
    server = run()
    predictor, looked, go_on = server.page.predictor, [], threading.Event()
    look = predictor._look

    def look_slowly(snapshot, pictures, among):
        looked.append(len(pictures))
        go_on.wait(20)
        return look(snapshot, pictures, among)

    predictor._look = look_slowly
    connection = server.connect(question(*[draw("dots", 1)] * 20))
    wait_for(lambda: looked)
    connection.close()
    wait_for(lambda: predictor._waiting == 0)
    go_on.set()
    assert server.ask(draw("dots", 1)).status_code == 200
    assert looked == [2, 1]  # two of the twenty, and the one asked about after that
    assert not predictor._pixels


def test_pictures_of_one_client_at_a_time_are_limited_by_their_pixels(run):
    server = run(Limits(pixels_per_client=250 * 250 + 1))
    server.page.predictor._pixels["127.0.0.9"] = 10**9  # somebody else
    small = np.zeros((250, 250), np.uint8)
    file = io.BytesIO()
    Image.fromarray(small).save(file, "PNG")
    assert server.ask(file.getvalue()).status_code == 200
    server.page.predictor._pixels["127.0.0.1"] = 2
    assert server.ask(file.getvalue()).status_code == 429
    server.page.predictor._pixels.clear()


def test_which_pictures_may_take_long():
    limits = Limits(easy_pixels=1000)
    assert [may_take_long(b"", pixels, limits) for pixels in (1000, 1001)] == [False, True]
    assert may_take_long(jpeg_of_many_passes(8, 5), 64, limits) is False
    assert may_take_long(jpeg_of_many_passes(8, 100), 64, limits) is True
    assert may_take_long(b"\x89PNG" + b"\xff\xda" * 100, 64, limits) is False  # means nothing there


@pytest.fixture
def decoder() -> Iterator[Decoder]:
    made = Decoder(1.0)
    yield made
    made.close()


def test_a_picture_that_takes_too_long_is_given_up_and_the_next_is_read(decoder):
    preprocess, picture = Preprocess(size=32, resize_to=40), draw("circle", 3)
    slow = jpeg_of_many_passes(3000, 4000)

    async def ask():
        assert await decoder.prepare(slow, preprocess) == "takes longer than 1 seconds to read; make it smaller"
        decoder.seconds = 60
        there = await decoder.prepare(picture, preprocess)
        assert (there == prepare(picture, preprocess)).all()
        decoder._process.kill()  # as the system does for want of memory
        decoder._process.join()
        assert await decoder.prepare(picture, preprocess) == "its decoder has died; make it smaller"

        given_up = asyncio.create_task(decoder.prepare(slow, preprocess))
        waiting = asyncio.create_task(decoder.prepare(slow, preprocess))
        await asyncio.sleep(0.3)
        for task in (waiting, given_up):
            task.cancel()
        # The thread is free again when both are given up: one that was begun, and one that never was.
        await asyncio.get_running_loop().run_in_executor(decoder._thread, time.monotonic)
        assert decoder._process is None

    asyncio.run(ask())


def test_a_picture_decoded_elsewhere_is_answered_like_any_other(model):
    known, pictures = ModelStore(model, device="cpu").read(), [draw("dots", number) for number in range(2)]
    elsewhere = [prepare(picture, known.open_encoder().preprocess) for picture in pictures]
    here, there = (list(predict_images(known, each, device="cpu")) for each in (pictures, elsewhere))
    assert here == there


def test_a_question_is_computed_by_one_thread(open_client, model, monkeypatch):
    """So that several questions take turns, and none takes all cores."""

    def made(*args, **kwargs):
        raise AssertionError("for a single question")

    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    client, files = open_client(model), [("picture", ("x", draw("dots", number))) for number in range(5)]
    before = client.post("/api/predict", files=files).json()
    monkeypatch.setattr("engram.images.stream.ThreadPoolExecutor", made)
    assert client.post("/api/predict", files=files).json()["answers"] == before["answers"]


def test_a_lesson_leaves_a_core_to_questions(open_client, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    client = open_client(tmp_path / "new.engram", plan=Plan(method="counts-cores"))
    client.post("/api/lessons", **form({"circle": drawings("circle", 2)}))
    assert ended(client, 1)["message"] == "3 threads"


# --- uploads ----------------------------------------------------------------------------------------------------------


def test_unfinished_uploads_have_one_budget(run):
    server = run(Limits(bytes_in_flight=100_000))
    first = server.connect(UPLOAD + bytes(60_000))
    guard = wait_for(lambda: server.app.middleware_stack and find_guard(server.app))
    wait_for(lambda: guard.bytes_in_flight > 50_000)
    second = server.connect(UPLOAD + bytes(60_000))
    assert second.recv(12) == b"HTTP/1.1 429"
    wait_for(lambda: guard.bytes_in_flight < 70_000)
    first.close()
    wait_for(lambda: guard.bytes_in_flight == 0)
    assert server.ask(draw("dots", 1)).status_code == 200
    wait_for(lambda: guard.bytes_in_flight == 0)  # which the answer may overtake


def find_guard(app):
    layer = app.middleware_stack
    while not hasattr(layer, "bytes_in_flight"):
        layer = layer.app
    return layer


def test_an_upload_that_falls_silent_is_ended(run):
    connection = run(Limits(silent_seconds=0.2)).connect(UPLOAD)
    answer = connection.recv(10_000)
    while b"detail" not in answer:
        answer += connection.recv(10_000)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"nothing came for 0.2 seconds" in answer


# --- what else went wrong ---------------------------------------------------------------------------------------------


def test_a_full_disk_is_no_damage(open_client, model, taught_bytes, monkeypatch):
    def no_room(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    client = open_client(model)
    client.get("/api/model")
    monkeypatch.setattr("os.fsync", no_room)
    answer = client.post("/api/rename", json={"name": "dots", "new_name": "points"})
    assert answer.status_code == 503
    assert "No space left on device" in answer.json()["detail"]
    assert "undo" not in answer.json()["detail"]
    assert model.read_bytes() == taught_bytes


def test_a_lesson_cancelled_when_its_process_is_dead_raises_nowhere(model):
    worker, cancelled = Worker(model, "cpu"), threading.Event()
    worker.kill()
    cancelled.set()
    assert worker.learn(Learn(1, {}, PLAN), lambda update: None, cancelled) is None


CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (apt-get install chromium)")
def test_a_link_with_the_token_works_from_another_site_and_without_it_a_browser_is_asked(run):
    playwright = pytest.importorskip("playwright.sync_api")
    server = run(bound="0.0.0.0", token="a-token-of-some-length")
    home = f"http://127.0.0.1:{server.port}/"
    link = f'<a href="{home}?token=a-token-of-some-length">the page</a>'
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.route("http://elsewhere.example/", lambda route: route.fulfill(body=link, content_type="text/html"))
        page.goto("http://elsewhere.example/")
        page.get_by_role("link").click()
        playwright.expect(page.get_by_role("heading", name="Teach", exact=True)).to_be_visible()
        assert page.url == home  # the token is not left in the address
        assert page.goto(home).status == 200

        page.context.clear_cookies()
        assert page.goto(home).status == 401
        if shots := os.environ.get("ENGRAM_SHOTS"):
            page.screenshot(path=f"{shots}/page-token.png")
        page.get_by_label("Token").fill("another")
        page.get_by_role("button").click()
        playwright.expect(page.get_by_role("alert")).to_have_text("That is not the token of this server.")
        page.get_by_label("Token").fill("a-token-of-some-length")
        page.get_by_role("button").click()
        playwright.expect(page.get_by_role("heading", name="Teach", exact=True)).to_be_visible()
        browser.close()
