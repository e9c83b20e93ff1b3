"""What the tests of the page have in common."""

import io
import os
import shutil
import time
from pathlib import Path
from typing import Any

from drawings import drawings
from PIL import Image

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = ["--no-sandbox", "--use-fake-device-for-media-stream=device-count=2", "--use-fake-ui-for-media-stream"]
SHOTS = os.environ.get("ENGRAM_SHOTS")  # the folder for the screenshots of docs/page.md, if they are wanted
WIDTHS = (360, 800, 1440)


def watch(page: Any, address: str, wrong: list[str]) -> None:
    """Note what goes wrong in a page, and what it asks of anybody else."""

    def hear(message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            wrong.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda r: None if r.url.startswith((address, "blob:")) else wrong.append(r.url))


def png(name: str, content: bytes) -> dict[str, Any]:
    """A picture as Playwright chooses it."""
    return {"name": name, "mimeType": "image/png", "buffer": content}


def other_file(name: str, kind: str = "text/plain", content: bytes = b"no picture") -> dict[str, Any]:
    return {"name": name, "mimeType": kind, "buffer": content}


def files(shape: str, n: int, first: int = 0) -> list[dict[str, Any]]:
    return [png(f"{shape}-{i}.png", content) for i, content in enumerate(drawings(shape, n, first))]


def fill(page: Any, name: str, n: int, which: int = 0, shape: str | None = None) -> None:
    """Name a class in the form, and give it pictures."""
    group = page.locator(".group").nth(which)
    group.get_by_label("Name of the class").fill(name)
    group.locator("input[type=file]").set_input_files(files(shape or name, n))
    group.locator(".thumbs li button").nth(n - 1).wait_for()


def names(page: Any) -> list[str]:
    return page.locator(".card h3").all_inner_texts()


def accessible(page: Any) -> None:
    """axe-core finds nothing serious, in light and in dark; and nothing is wider than the window."""
    from axe_playwright_python.sync_playwright import Axe

    for scheme, options in (("light", None), ("dark", {"runOnly": ["color-contrast"]})):  # all else is the same there
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page, options=options).response["violations"]
        serious = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
        assert serious == [], scheme
    page.emulate_media(color_scheme="light")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 1280, "height": 900})


def shoot(page: Any, name: str, width: int, scheme: str = "light") -> None:
    """Take a screenshot for the docs, if they are wanted."""
    if not SHOTS:
        return
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=scheme)
    page.evaluate("scrollTo(0, 0)")
    until = time.monotonic() + 20
    while page.locator(".toast").count() and time.monotonic() < until:
        page.wait_for_timeout(100)
    taken = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
    small = taken.quantize(256, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    small.save(Path(SHOTS) / f"{name}.png", optimize=True)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
