"""The programs in docs/export.md are run as they stand there."""

import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from toys import averages, paint

from engram import IncrementalClassifier

DOCS = Path(__file__).parents[1] / "docs"
TEXT = (DOCS / "export.md").read_text()


def program(language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)
    assert found
    return found[1]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """birds.onnx, which knows colours, and pictures as they come."""
    pytest.importorskip("onnxruntime")
    folder = tmp_path_factory.mktemp("export")
    paths = sorted(paint(folder / "p", "red", "green", "blue", "white", n=12).rglob("*.png"))
    clf = IncrementalClassifier(backbone=averages())
    clf.fit(paths, [path.parent.name for path in paths]).save(folder / "birds.engram")
    clf.export(folder / "birds.onnx")
    pixels = np.asarray(Image.open(paths[0])).repeat(9, 0).repeat(9, 1)
    turned = Image.fromarray(np.concatenate([pixels, 255 - pixels], axis=1))
    exif = turned.getexif()
    exif[0x0112] = 6
    turned.save(folder / "turned.jpg", exif=exif, quality=95)
    Image.fromarray(np.linspace(0, 65535, 60 * 80).astype(np.uint16).reshape(60, 80)).save(folder / "deep.png")
    glass = Image.fromarray(np.dstack([pixels, np.full(pixels.shape[:2], 60, np.uint8)]))
    glass.save(folder / "glass.png")
    Image.fromarray(pixels).convert("P").save(folder / "palette.png")
    return folder


def asked(place: Path, *command: str) -> str:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_python_answers_what_predict_answers(place):
    (place / "ask.py").write_text(program("python"))
    names = ["turned.jpg", "deep.png", "glass.png", "palette.png", *sorted(map(str, place.glob("p/*/0-0.png")))]
    said = asked(place, sys.executable, "ask.py", "birds.onnx", *names).splitlines()
    clf = IncrementalClassifier.load(place / "birds.engram", backbone=averages())
    paths = [place / name for name in names]
    labels, likely = clf.predict(paths), clf.predict_proba(paths).max(axis=1)
    known = clf.familiarity(paths) >= clf.unknown_below()
    for line, name, label, probability, is_known in zip(said, names, labels, likely, known, strict=True):
        found = re.fullmatch(rf"{re.escape(name)}: {label} (\d+)%(.*)", line)
        assert found, line
        assert int(found[1]) == pytest.approx(100 * probability, abs=2)
        assert (found[2] == "") == is_known


def test_the_tutorial_has_the_same_program():
    assert program("python") in (DOCS / "tutorial.md").read_text()


def test_cpp_answers_the_same(place):
    root = Path(os.environ.get("ONNXRUNTIME_ROOT", "/usr"))
    headers = [
        path for path in (root / "include", root / "include/onnxruntime") if (path / "onnxruntime_cxx_api.h").exists()
    ]
    if not headers or not shutil.which("g++"):
        pytest.skip("no g++, or no headers of onnxruntime: ONNXRUNTIME_ROOT names the folder that has include and lib")
    (place / "ask.cpp").write_text(program("cpp"))
    library = root / "lib"
    asked(place, "g++", "-std=c++17", "-Wall", "-Werror", "ask.cpp", "-I", str(headers[0]), "-L", str(library),
          "-lonnxruntime", f"-Wl,-rpath,{library}", "-o", "ask")  # fmt: skip
    for colour in ("red", "white"):
        Image.open(place / f"p/{colour}/0-1.png").save(place / "bird.ppm")
        assert re.fullmatch(rf"{colour} (1|0\.9\d+)\n", asked(place, "./ask", "birds.onnx", "bird.ppm"))


def test_a_browser_answers_the_same(place):
    dist = Path(os.environ.get("ENGRAM_ORT_WEB", "node_modules/onnxruntime-web/dist"))
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None or not (dist / "ort.wasm.min.mjs").exists():
        pytest.skip("no chromium, or no onnxruntime-web: npm install onnxruntime-web, or ENGRAM_ORT_WEB names its dist")
    playwright = pytest.importorskip("playwright.sync_api")
    (place / "index.html").write_text(program("html"))
    (place / "dist").symlink_to(dist.resolve())
    handler = partial(SimpleHTTPRequestHandler, directory=str(place))
    handler.log_message = lambda *args: None  # type: ignore[attr-defined]
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with playwright.sync_playwright() as running:
            page = running.chromium.launch(executable_path=chromium, args=["--no-sandbox"]).new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/index.html", wait_until="networkidle")
            for colour in ("red", "white"):
                page.locator("input").set_input_files(place / f"p/{colour}/0-1.png")
                playwright.expect(page.locator("#said")).to_have_text(
                    re.compile(rf"^{colour} (9\d|100)%$"), timeout=60_000
                )
    finally:
        server.shutdown()
        server.server_close()
