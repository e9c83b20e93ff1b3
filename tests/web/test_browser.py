"""The page in a real browser: Debian's chromium, with a camera that is none.

ENGRAM_SHOTS=FOLDER also puts the screenshots of docs/page.md there.
"""

import io
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import QUICK, Server, wait_for
from drawings import draw, drawings
from PIL import Image

playwright = pytest.importorskip("playwright.sync_api")
from axe_playwright_python.sync_playwright import Axe  # noqa: E402
from playwright.sync_api import Browser, Page, expect  # noqa: E402

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SHOTS = os.environ.get("ENGRAM_SHOTS")
SLOW = {**QUICK, "increment_epochs": 1_000_000}
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine (apt-get install chromium)")
expect.set_options(timeout=60_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as running:
        flags = ["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
        yield running.chromium.launch(executable_path=CHROMIUM, args=flags)


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[[Server], Page]]:
    """Opens pages, and notices whatever goes wrong in them or is asked of somebody else."""
    contexts, wrong = [], []

    def watch(page: Page, address: str) -> None:
        def said(message) -> None:
            if message.type == "error" and "Failed to load resource" not in message.text:
                wrong.append(message.text)

        page.on("console", said)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda r: None if r.url.startswith((address, "blob:")) else wrong.append(r.url))

    def open_page(server: Server) -> Page:
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce"))
        page = contexts[-1].new_page()
        watch(page, server.address)
        page.goto(server.address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def files(shape: str, n: int, first: int = 0) -> list[dict[str, object]]:
    return [
        {"name": f"{shape}-{i}.png", "mimeType": "image/png", "buffer": content}
        for i, content in enumerate(drawings(shape, n, first))
    ]


def fill(page: Page, name: str, n: int, which: int = 0) -> None:
    group = page.locator(".group").nth(which)
    group.get_by_label("Name of the class").fill(name)
    group.locator("input[type=file]").set_input_files(files(name, n))
    expect(group.locator(".thumbs li")).to_have_count(n)


def names(page: Page) -> list[str]:
    return page.locator(".card h3").all_inner_texts()


def accessible(page: Page) -> None:
    """axe-core finds nothing serious, in light and in dark; and nothing is wider than the window."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = Axe().run(page).response["violations"]
        serious = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
        assert serious == [], scheme
    page.emulate_media(color_scheme="light")
    for width in (360, 768, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def shoot(page: Page, name: str, width: int, scheme: str = "light") -> None:
    if SHOTS:
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        page.evaluate("scrollTo(0, 0)")
        wait_for(lambda: page.locator(".toast").count() == 0, 20)
        taken = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
        taken.quantize(128, dither=Image.Dither.NONE).save(Path(SHOTS) / f"{name}.png", optimize=True)
        page.set_viewport_size({"width": 1280, "height": 900})
        page.emulate_media(color_scheme="light")


def test_the_whole_story(serve, visit, tmp_path):
    """From nothing: teach, try, teach by camera, rename, forget, undo, take away."""
    server = serve(tmp_path / "shapes.engram")
    page = visit(server)
    expect(page.get_by_role("heading", name="Teach it something")).to_be_visible()
    expect(page.locator("#try")).to_be_hidden()
    accessible(page)
    learn = page.get_by_role("button", name="Learn these classes")
    expect(learn).to_be_disabled()
    fill(page, "circle", 10)
    expect(learn).to_be_enabled()  # one class is enough
    fill(page, "dots", 10, which=1)
    page.get_by_role("button", name="Add a class").click()
    fill(page, "stripes", 10, which=2)
    shoot(page, "page-start", 1280)
    page.get_by_role("button", name="Remove circle-3.png").click()
    expect(page.locator(".group").first).to_contain_text("9 pictures")
    learn.click()
    expect(page.locator(".lesson progress")).to_be_visible()
    expect(page.locator(".lesson.done")).to_contain_text("Learned circle, dots, stripes")
    expect(page.locator(".lesson.done")).to_contain_text("6 of 6")
    wait_for(lambda: names(page) == ["circle", "dots", "stripes"])

    page.locator("#try input[type=file]").set_input_files(files("dots", 1, first=50))
    answer = page.locator("#answers .answer").first
    expect(answer.locator("strong")).to_have_text("dots")
    expect(answer).to_contain_text(re.compile(r"\d+ ms"))
    expect(answer.locator(".bars li")).to_have_count(3)
    expect(answer.locator(".bars .best")).to_contain_text(re.compile(r"dots\s*\d+ %"))
    expect(page.locator("#unknown-note")).to_contain_text("about 5 % of pictures of known classes")

    # A class from the camera; and the picture of a shape is none of what the camera shows, nor the other way round.
    page.locator(".group").get_by_label("Name of the class").fill("test pattern")
    page.locator("#teach").get_by_role("button", name="Camera", exact=True).click()
    page.get_by_role("button", name="Take a picture").click()
    page.get_by_role("button", name="Take many").click()
    expect(page.locator(".group .thumbs li").nth(7)).to_be_visible()
    page.locator("#teach").get_by_role("button", name="Stop").click()
    page.get_by_role("button", name="Close the camera").click()
    page.get_by_role("button", name="Learn", exact=True).click()
    expect(page.locator(".lesson.done", has_text="test pattern")).to_contain_text("Earlier classes")
    wait_for(lambda: names(page)[-1:] == ["test pattern"])
    page.locator("#try").get_by_role("button", name="Camera").click()
    expect(page.locator(".live-answer .bars li").first).to_contain_text("test pattern")
    page.get_by_role("button", name="Close the camera").click()
    page.locator("#try input[type=file]").set_input_files(files("triangle", 1, first=50))
    expect(page.locator("#answers .answer").first.locator("strong")).to_have_text("Unknown")
    expect(page.locator("#answers .answer").first).to_contain_text("looks like nothing that was taught")

    for number in range(2):
        page.locator(".dot").nth(number).focus()
        expect(page.locator("#map-names")).to_contain_text("nearest are")
    expect(page.locator("#accuracy")).to_be_visible()
    expect(page.locator("#bytes")).to_contain_text("Kept per class")
    accessible(page)
    for name, width, scheme in (("page", 1280, "light"), ("page-dark", 1280, "dark"), ("page-tablet", 768, "light"),
                                ("page-tablet-dark", 768, "dark"), ("page-phone", 360, "light"),
                                ("page-phone-dark", 360, "dark")):  # fmt: skip
        shoot(page, name, width, scheme)

    forget = page.get_by_role("button", name="Forget dots")
    forget.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Forget dots?")
    accessible(page)
    dialog.get_by_role("button", name="Keep it").click()
    assert "dots" in names(page)
    forget.click()
    dialog.get_by_role("button", name="Forget").click()
    expect(page.locator(".card")).to_have_count(3)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".card")).to_have_count(4)

    with page.expect_download() as taken:
        page.get_by_role("link", name="The model file").click()
    assert Path(taken.value.path()).read_bytes() == server.model.read_bytes()
    assert taken.value.suggested_filename == "shapes.engram"
    with page.expect_download() as taken:
        page.get_by_role("link", name="A report").click()
    assert "test pattern" in Path(taken.value.path()).read_text()


@pytest.mark.slow
def test_with_the_keyboard_alone(serve, visit, model):
    page = visit(serve(model))
    expect(page.locator(".card")).to_have_count(3)

    def tab_to(name: str) -> None:
        for _ in range(60):
            page.keyboard.press("Tab")
            label = page.evaluate(
                "(e => e.ariaLabel || e.labels?.[0]?.innerText || e.innerText)(document.activeElement)"
            )
            if (label or "").strip().startswith(name):
                return
        raise AssertionError(f"{name} cannot be reached")

    tab_to("Skip to the page")
    tab_to("Name of the class")
    page.keyboard.type("square")
    tab_to("Choose pictures")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Space")
    chooser.value.set_files(files("square", 6))
    expect(page.locator(".thumbs li")).to_have_count(6)
    tab_to("Learn")
    page.keyboard.press("Enter")
    expect(page.locator(".card")).to_have_count(4)
    tab_to("Rename square")
    page.keyboard.press("Enter")
    page.keyboard.type("box")
    page.keyboard.press("Enter")
    expect(page.locator(".card h3", has_text="box")).to_be_visible()
    tab_to("Undo renaming square to box")
    page.keyboard.press("Enter")
    expect(page.locator(".card h3", has_text="square")).to_be_visible()


def test_a_reload_and_a_second_tab_show_the_lesson_and_either_can_cancel_it(serve, visit, tmp_path):
    server = serve(tmp_path / "shapes.engram", settings=SLOW)
    page = visit(server)
    fill(page, "circle", 5)
    expect(page.locator("#send")).to_be_disabled()  # this method trains: two classes, to be told apart
    fill(page, "dots", 5, which=1)
    page.locator("#send").click()
    expect(page.locator(".card")).to_have_count(2)
    before = server.model.read_bytes()
    for name in ("square", "triangle"):
        fill(page, name, 4)
        page.get_by_role("button", name="Learn", exact=True).click()
    expect(page.locator(".lesson.learning", has_text="square")).to_contain_text("epoch")
    expect(page.locator(".lesson.waiting", has_text="triangle")).to_contain_text("another lesson comes first")
    expect(page.get_by_role("button", name="Forget dots")).to_be_disabled()
    page.reload()
    second = visit(server)
    for tab in (page, second):
        expect(tab.locator(".lesson.learning", has_text="square")).to_contain_text("epoch")
        expect(tab.locator(".lesson.waiting", has_text="triangle")).to_be_visible()
        assert names(tab) == ["circle", "dots"]
    second.locator(".lesson.waiting").get_by_role("button", name="Cancel").click()
    second.locator(".lesson.learning").get_by_role("button", name="Cancel").click()
    for tab in (page, second):
        expect(tab.locator(".lesson.cancelled")).to_have_count(2)
        expect(tab.get_by_role("button", name="Forget dots")).to_be_enabled()
    assert server.model.read_bytes() == before
    page.get_by_role("button", name="Forget dots").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    expect(second.locator(".card")).to_have_count(1)  # told to the other tab


@pytest.mark.slow
def test_a_server_restart_while_learning_is_told_and_the_pictures_are_still_there(serve, visit, tmp_path):
    server = serve(tmp_path / "shapes.engram", settings=SLOW)
    page = visit(server)
    fill(page, "circle", 5)
    fill(page, "dots", 5, which=1)
    page.locator("#send").click()
    expect(page.locator(".card")).to_have_count(2)
    fill(page, "square", 6)
    page.get_by_role("button", name="Learn", exact=True).click()
    expect(page.locator(".lesson.learning", has_text="square")).to_contain_text("epoch")
    before, port = server.model.read_bytes(), server.address.split(":")[2].strip("/")
    server.stop(signal.SIGKILL)
    expect(page.locator("#lost")).to_be_visible()
    again = serve(server.model, "--port", port, settings=SLOW)
    expect(page.locator("#lost")).to_be_hidden()
    expect(page.locator(".lesson.failed")).to_contain_text("The server was restarted")
    assert again.model.read_bytes() == before
    assert names(page) == ["circle", "dots"]
    page.get_by_role("button", name="Back to the form").click()
    expect(page.locator(".group .thumbs li")).to_have_count(6)
    page.get_by_role("button", name="Learn", exact=True).click()
    expect(page.locator(".lesson.learning", has_text="square")).to_contain_text("epoch")


def test_folders_become_classes_and_what_the_server_refuses_is_said(serve, visit, tmp_path):
    for shape in ("circle", "dots"):
        (tmp_path / "shapes" / shape).mkdir(parents=True)
        for i in range(3):
            (tmp_path / "shapes" / shape / f"{i}.png").write_bytes(draw(shape, i))
    (tmp_path / "shapes" / "notes.txt").write_text("no picture")
    page = visit(serve(tmp_path / "new.engram"))
    page.locator("#folder").set_input_files(tmp_path / "shapes")
    expect(page.locator(".group .thumbs li")).to_have_count(6)
    assert [box.input_value() for box in page.get_by_label("Name of the class").all()] == ["circle", "dots"]
    page.get_by_label("Name of the class").first.fill("unknown")
    page.locator("#send").click()
    expect(page.locator("#teach-problem")).to_contain_text("a class cannot be called 'unknown'")
    expect(page.locator(".group .thumbs li")).to_have_count(6)  # nothing is lost


def test_a_picture_with_the_wrong_name_is_shown_after_its_lesson(serve, visit, model):
    page = visit(serve(model))
    group = page.locator(".group")
    group.get_by_label("Name of the class").fill("square")
    group.locator("input[type=file]").set_input_files([*files("square", 12), *files("stripes", 3, first=30)])
    page.get_by_role("button", name="Learn", exact=True).click()
    wrong = page.locator(".lesson.done .misfits li").first
    expect(wrong).to_contain_text(re.compile(r"square, picture 1[345]: looks like stripes \(\d+ %\)"))
    expect(wrong.locator("canvas")).to_be_visible()
    accessible(page)
    page.reload()
    expect(wrong).to_contain_text("looks like stripes")  # and no picture of it: that was this tab's alone
    expect(wrong.locator("canvas")).to_have_count(0)


def test_a_method_without_class_vectors_has_no_map_and_no_figures(serve, visit, tmp_path):
    page = visit(serve(tmp_path / "new.engram", "--method", "1nn"))
    fill(page, "circle", 5)
    fill(page, "dots", 5, which=1)
    page.locator("#send").click()
    expect(page.locator(".card")).to_have_count(2)
    for hidden in ("#map-view", "#figure-note"):
        expect(page.locator(hidden)).to_be_hidden()
    expect(page.locator(".card .figure")).to_have_count(0)
    assert "null" not in page.locator("main").inner_text()
    expect(page.locator("#bytes")).to_contain_text("Feature vectors of pictures")
    page.locator("#try input[type=file]").set_input_files(files("dots", 1, first=50))
    answer = page.locator("#answers .answer").first
    expect(answer.locator("strong")).to_be_visible()
    shares = "bars => bars.map((bar) => bar.style.getPropertyValue('--share'))"
    widths = answer.locator(".bars .fill").evaluate_all(shares)
    near, far = map(float, widths)
    assert 1 >= near > far >= 0
    accessible(page)
