import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import drilled
import httpx
import pytest
from browsing import CHROMIUM, FLAGS, watch
from drawings import drawings
from fake import Fake, FakeServer
from fastapi.testclient import TestClient

from engram.store import ImageBytes, ModelStore, Plan, learn_classes
from engram.web.app import create_app
from engram.web.connections import PageServer
from engram.web.limits import Limits

PLAN = Plan(more=True)
TRAINED = Plan(more=True, method="drilled")  # a method that trains
ENDLESS = {"more_epochs": 100_000}  # its settings, for a lesson that does not end by itself


@pytest.fixture(scope="session", autouse=True)
def quick_workers(processes: Any) -> Iterator[None]:
    """Workers of servers in this process need not import everything each. Those of `serve` do, as everywhere."""
    quick = SimpleNamespace(get_context=lambda method: processes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("engram.web.worker.multiprocessing", quick)
        patch.setattr("engram.web.decoder.multiprocessing", quick)
        yield


@pytest.fixture(scope="session", autouse=True)
def drilled_methods(tmp_path_factory) -> Iterator[None]:
    """Two methods that tests need, as if a package had brought them."""
    folder = tmp_path_factory.mktemp("packages")
    drilled.install(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        paths = [str(folder), str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
        yield


@pytest.fixture(scope="session")
def taught_bytes(tmp_path_factory) -> bytes:
    """A model that knows circles, stripes and dots."""
    place = ModelStore(tmp_path_factory.mktemp("taught") / "shapes.engram", device="cpu")
    learn_classes(
        place, {shape: [ImageBytes(p) for p in drawings(shape, 8)] for shape in ("circle", "stripes", "dots")}, PLAN
    )
    return place.path.read_bytes()


@pytest.fixture
def model(tmp_path, taught_bytes) -> Path:
    path = tmp_path / "shapes.engram"
    path.write_bytes(taught_bytes)
    return path


@pytest.fixture
def open_client() -> Iterator[Callable[..., TestClient]]:
    """Makes clients of servers in this process; their workers end with the test."""
    with contextlib.ExitStack() as stack:

        def make(path: Path, limits: Limits | None = None, plan: Plan = PLAN, **settings: Any) -> TestClient:
            app = create_app(ModelStore(path, device="cpu", wait=0.2), plan, limits=limits, **settings)
            client = TestClient(app, base_url="http://127.0.0.1:8000", raise_server_exceptions=True)
            return stack.enter_context(client)

        yield make


def form(pictures: dict[str, list[bytes]]) -> dict[str, Any]:
    """What httpx sends as a lesson."""
    labels = [name for name, each in pictures.items() for _ in each]
    files = [("picture", ("x", content)) for each in pictures.values() for content in each]
    return {"data": {"label": labels}, "files": files}


def wait_for(get: Callable[[], Any], seconds: float = 90.0) -> Any:
    """The first true thing that `get` returns."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := get():
            return found
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def ended(client: Any, number: int) -> Any:
    """A lesson, when it has ended."""

    def look() -> Any:
        one = next(one for one in client.get("/api/lessons").json() if one["number"] == number)
        return one if one["state"] in ("done", "failed", "cancelled") else None

    return wait_for(look)


class Running:
    """A server in this process, on a real port."""

    def __init__(self, model: Path, limits: Limits, plan: Plan, **settings: Any) -> None:
        self.model = model
        self.app = create_app(ModelStore(model, device="cpu"), plan, limits=limits, **settings)
        self.page = self.app.state.server
        self.listening = socket.create_server(("0.0.0.0", 0))
        self.port = self.listening.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}/"
        self.server = PageServer(self.app, limits, self.page.begin_closing)
        self.thread = threading.Thread(target=self.server.run, args=([self.listening],))
        self.thread.start()
        self.sockets: list[socket.socket] = []
        wait_for(lambda: self.server.started)

    def connect(self, sent: bytes, source: str = "127.0.0.1") -> socket.socket:
        opened = socket.create_connection(("127.0.0.1", self.port), timeout=20, source_address=(source, 0))
        self.sockets.append(opened)
        opened.sendall(sent)
        return opened

    def get(self, path: str = "/") -> httpx.Response:
        return httpx.get(self.address.rstrip("/") + path, timeout=20)

    def ask(self, *pictures: bytes) -> httpx.Response:
        files = [("picture", ("x", content)) for content in pictures]
        return httpx.post(f"{self.address}api/predict", files=files, timeout=60)

    def connections(self) -> int:
        return len(self.server.server_state.connections)

    def stop(self) -> None:
        for each in self.sockets:
            each.close()
        self.server.should_exit = True
        self.thread.join()
        self.listening.close()


@pytest.fixture
def run(model: Path) -> Iterator[Callable[..., Running]]:
    running: list[Running] = []

    def start(limits: Limits | None = None, plan: Plan = PLAN, path: Path = model, **settings: Any) -> Running:
        running.append(Running(path, limits or Limits(), plan, **settings))
        return running[-1]

    yield start
    for each in running:
        each.stop()


class Server:
    """`engram serve`, as it is typed."""

    def __init__(
        self,
        model: Path,
        *options: str,
        settings: dict[str, Any] | None = None,
        stderr: Any = None,
        **environment: str,
    ) -> None:
        self.model = model
        sets = ["--method", "drilled"] if settings else []
        sets += [text for name, value in (settings or {}).items() for text in ("--set", f"{name}={json.dumps(value)}")]
        # What a shell starts in the background ignores Ctrl+C, and so would all that these tests start in turn.
        heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
        command = heed + "import sys; sys.argv[0] = 'engram'; from engram.cli import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", command, "serve", str(model), "--no-open", "--port", "0", *sets, *options],
            stdout=subprocess.PIPE, stderr=stderr, text=True, env={**os.environ, **environment},
        )  # fmt: skip
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        self.client = httpx.Client(base_url=self.address.split("?")[0], timeout=180)
        wait_for(lambda: self._answers())

    def _answers(self) -> bool:
        assert self.process.poll() is None
        with contextlib.suppress(httpx.TransportError):
            return bool(self.client.get("/").status_code)
        return False

    def worker(self) -> int:
        """The process that learns."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = [int(child) for child in children.read_text().split()]
        return next(pid for pid in found if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes())

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        self.client.close()
        self.process.send_signal(how)
        self.process.wait(timeout=20)
        assert self.process.stdout is not None
        self.process.stdout.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def start(*arguments: Any, **settings: Any) -> Server:
        servers.append(Server(*arguments, **settings))
        return servers[-1]

    yield start
    for server in servers:
        if server.process.poll() is None:
            server.stop(signal.SIGKILL)


@pytest.fixture(scope="session")
def fake_server() -> Iterator[FakeServer]:
    server = FakeServer()
    yield server
    server.stop()


@pytest.fixture
def fake(fake_server: FakeServer) -> Fake:
    """The page's server as a test wants it to be."""
    fake_server.fake.reset()
    return fake_server.fake


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Debian's chromium, with two cameras that are none."""
    playwright = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine (apt-get install chromium)")
    playwright.expect.set_options(timeout=20_000)
    with playwright.sync_playwright() as running:
        yield running.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages, and notices whatever goes wrong in them or is asked of somebody else."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def open_page(server: Any, **settings: Any) -> Any:
        wanted = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", "locale": "en-US"}
        contexts.append(browser.new_context(**wanted | settings))
        page = contexts[-1].new_page()
        watch(page, server.address, wrong)
        page.goto(server.address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []
