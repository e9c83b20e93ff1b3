"""The page with a real server behind it, which the whole story has in a process of its own.

ENGRAM_SHOTS=FOLDER also puts the screenshots of docs/page.md there.
"""

import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from browsing import accessible, files, fill, names, shoot
from conftest import ENDLESS, PLAN, TRAINED, wait_for

from engram.encoders.onnx import open_graph

expect = pytest.importorskip("playwright.sync_api").expect


@pytest.fixture(autouse=True)
def patience():
    """A real model takes its time, and a lesson lets other processes go first: the mutants' tests, for one."""
    expect.set_options(timeout=180_000)
    yield
    expect.set_options(timeout=20_000)


def test_the_whole_story(serve, visit, tmp_path, taught_bytes):
    """From nothing: teach, try, put right, teach by camera, rename, forget, undo, redo, merge, download."""
    server = serve(tmp_path / "shapes.engram")
    page = visit(server)
    expect(page.get_by_role("heading", name="Teach it something")).to_be_visible()
    learn = page.get_by_role("button", name="Learn these classes")
    expect(learn).to_have_attribute("aria-disabled", "true")
    fill(page, "circle", 10)
    expect(learn).to_have_attribute("aria-disabled", "false")  # one class is enough
    fill(page, "dots", 10, which=1)
    for which, shape in enumerate(("stripes", "square"), start=2):
        page.get_by_role("button", name="Add a class").click()
        fill(page, shape, 10, which=which)
    shoot(page, "page-start", 1440)
    page.get_by_role("button", name="Remove circle-3.png").click()
    expect(page.locator(".group").first).to_contain_text("9 pictures")
    learn.click()
    expect(page.locator(".lesson.done")).to_contain_text("Learned 4 classes")
    expect(page.locator(".lesson.done h3")).to_be_focused()
    wait_for(lambda: sorted(names(page)) == ["circle", "dots", "square", "stripes"])
    for card in page.locator(".card").all():
        expect(card.locator(".health")).to_contain_text(re.compile(r"\d+% right.*estimated from (9|10) pictures"))
    expect(page.locator("#accuracy")).to_contain_text("Estimated from 39 learned pictures")

    page.locator("#try input[type=file]").set_input_files(files("dots", 1, first=50))
    answer = page.locator("#answers .answer").first
    expect(answer.locator("strong")).to_have_text("dots")
    expect(answer).to_contain_text(re.compile(r"\d+ ms"))
    expect(answer.locator(".bars li")).to_have_count(4)
    expect(answer.locator(".bars .best")).to_contain_text(re.compile(r"dots\s*\d+%"))

    # A class from the camera; and the picture of a shape is none of what the camera shows, nor the other way round.
    page.get_by_label("Name of the class").fill("test pattern")
    page.locator("#teach").get_by_role("button", name="Camera", exact=True).click()
    page.get_by_role("button", name="Take a picture").hover()
    page.mouse.down()
    expect(page.locator(".group .thumbs li").nth(7)).to_be_visible()
    page.mouse.up()
    page.get_by_role("button", name="Close the camera").click()
    page.get_by_label("Name of the class").press("Enter")
    expect(page.locator(".lesson.done", has_text="test pattern")).to_be_visible()
    wait_for(lambda: names(page)[-1:] == ["test pattern"])
    page.locator("#try").get_by_role("button", name="Camera").click()
    expect(page.locator(".live-answer .bars li").first).to_contain_text("test pattern")
    page.get_by_role("button", name="Close the camera").click()
    page.locator("#try input[type=file]").set_input_files(files("triangle", 1, first=50))
    unknown = page.locator("#answers .answer").first
    expect(unknown.locator("strong")).to_have_text("Unknown")
    expect(page.locator("#bytes")).to_contain_text("For the classes")
    page.get_by_role("button", name="What is taken for what").click()
    expect(page.locator("#confusion tbody tr")).to_have_count(5)
    page.keyboard.press("Escape")
    accessible(page)
    for name, width, scheme in (("page", 1440, "light"), ("page-dark", 800, "dark"), ("page-phone", 360, "light")):
        shoot(page, name, width, scheme)

    unknown.get_by_role("button", name="Wrong?").click()
    unknown.get_by_label("It is").fill("triangle")
    unknown.get_by_role("button", name="Teach it").click()
    wait_for(lambda: names(page)[-1:] == ["triangle"])
    page.get_by_role("button", name="Forget dots").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Leave it").click()
    assert "dots" in names(page)
    page.get_by_role("button", name="Forget dots").click()
    dialog.get_by_role("button", name="Forget").click()
    expect(page.locator(".card")).to_have_count(5)
    page.locator(".toast").get_by_role("button", name="Undo").click()
    expect(page.locator(".card")).to_have_count(6)
    page.get_by_role("button", name="Redo").click()
    expect(page.locator(".card")).to_have_count(5)

    share = page.get_by_label("Pictures of known classes that may be called unknown")
    share.select_option("0.2")
    expect(page.locator("#undo")).to_have_text("Undo the change of what is unknown")
    (tmp_path / "other.engram").write_bytes(taught_bytes)
    page.locator("#merge").set_input_files(tmp_path / "other.engram")
    expect(dialog).to_contain_text("New: dots.")
    dialog.get_by_role("button", name="Add it").click()
    expect(page.locator(".card")).to_have_count(6)

    with page.expect_download() as taken:
        page.get_by_role("button", name="ONNX file").click()
    assert open_graph(Path(taken.value.path()).read_bytes())
    with page.expect_download() as taken:
        page.get_by_role("link", name="Model file").click()
    assert Path(taken.value.path()).read_bytes() == server.model.read_bytes()
    assert taken.value.suggested_filename == "shapes.engram"
    with page.expect_download() as taken:
        page.get_by_role("link", name="Model card").click()
    assert "test pattern" in Path(taken.value.path()).read_text()
    page.get_by_label("Language").select_option("fa")
    expect(page.locator("html")).to_have_attribute("dir", "rtl")
    expect(page.locator(".card")).to_have_count(6)
    accessible(page)
    shoot(page, "page-persian", 800)


def test_a_name_written_differently_and_a_file_that_is_damaged(run, visit):
    server = run()
    page = visit(server)
    fill(page, "Circle", 3, shape="circle")
    page.locator("#send").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Is Circle the same as circle?")
    dialog.get_by_role("button", name="Yes, it is circle").click()
    expect(page.locator(".lesson.done")).to_contain_text("Learned circle")
    page.get_by_role("button", name="Rename dots").click()
    page.get_by_label("New name").fill("spots")
    page.keyboard.press("Enter")
    expect(page.locator(".card h3", has_text="spots")).to_be_visible()
    server.model.write_bytes(server.model.read_bytes()[:2000])
    expect(page.locator("#damaged")).to_be_visible()
    page.get_by_role("button", name="Go back to the version before").click()
    expect(page.locator(".card h3", has_text="dots")).to_be_visible()
    assert len(names(page)) == 3


@pytest.mark.slow
def test_with_the_keyboard_alone(serve, visit, model):
    page = visit(serve(model))
    expect(page.locator(".card")).to_have_count(3)

    def tab_to(name: str) -> None:
        for _ in range(80):
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
    page.keyboard.press("Enter")  # to the pictures
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Space")
    chooser.value.set_files(files("square", 6))
    expect(page.locator(".thumbs li")).to_have_count(6)
    expect(page.locator("#send")).to_have_attribute("aria-disabled", "false")  # until then it says what is missing
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


def test_a_reload_and_a_second_tab_show_the_lesson_and_either_can_cancel_it(run, visit, tmp_path):
    server = run(plan=replace(TRAINED, settings=ENDLESS), path=tmp_path / "new.engram")
    page = visit(server)
    fill(page, "circle", 5)
    expect(page.locator("#send-why")).to_have_text("Give it a second class to tell it from.")  # this method trains
    fill(page, "dots", 5, which=1)
    page.locator("#send").click()
    expect(page.locator(".card")).to_have_count(2)
    before = server.model.read_bytes()
    for name in ("square", "triangle"):
        fill(page, name, 4)
        page.get_by_role("button", name="Learn", exact=True).click()
    expect(page.locator(".lesson.learning", has_text="square")).to_contain_text("round")
    expect(page.locator(".lesson.waiting", has_text="triangle")).to_contain_text("another lesson comes first")
    expect(page.get_by_role("button", name="Forget dots")).to_be_disabled()
    page.reload()
    second = page.context.new_page()
    second.goto(server.address)
    for tab in (page, second):
        expect(tab.locator(".lesson.learning", has_text="square")).to_contain_text("round")
        expect(tab.locator(".lesson.waiting", has_text="triangle")).to_be_visible()
        wait_for(lambda tab=tab: names(tab) == ["circle", "dots"])
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
    server = serve(tmp_path / "shapes.engram", settings=ENDLESS)
    page = visit(server)
    fill(page, "circle", 5)
    fill(page, "dots", 5, which=1)
    page.locator("#send").click()
    expect(page.locator(".card")).to_have_count(2)
    fill(page, "square", 6)
    page.get_by_role("button", name="Learn", exact=True).click()
    expect(page.locator(".lesson.learning", has_text="square")).to_contain_text("round")
    before, port = server.model.read_bytes(), server.address.split(":")[2].strip("/")
    server.stop(signal.SIGKILL)
    expect(page.locator("#lost")).to_be_visible()
    again = serve(server.model, "--port", port, settings=ENDLESS)
    expect(page.locator("#lost")).to_be_hidden()
    expect(page.locator(".lesson.lost")).to_contain_text("Not finished: square")
    assert again.model.read_bytes() == before
    assert names(page) == ["circle", "dots"]
    page.get_by_role("button", name="Back to the form").click()
    expect(page.locator(".group .thumbs li")).to_have_count(6)
    page.get_by_role("button", name="Learn", exact=True).click()
    expect(page.locator(".lesson.learning", has_text="square")).to_contain_text("round")


def test_a_method_without_class_vectors_is_taught_and_asked(run, visit, tmp_path):
    page = visit(run(plan=replace(PLAN, method="1nn"), path=tmp_path / "new.engram"))
    fill(page, "circle", 5)
    fill(page, "dots", 5, which=1)
    page.locator("#send").click()
    expect(page.locator(".card")).to_have_count(2)
    expect(page.locator(".alike")).to_have_count(0)
    assert "null" not in page.locator("main").inner_text()
    expect(page.locator("#bytes")).to_contain_text("Numbers of every picture")
    page.locator("#try input[type=file]").set_input_files(files("dots", 1, first=50))
    answer = page.locator("#answers .answer").first
    expect(answer.locator("strong")).to_be_visible()
    shares = "bars => bars.map((bar) => bar.style.getPropertyValue('--share'))"
    near, far = map(float, answer.locator(".bars .fill").evaluate_all(shares))
    assert 1 >= near > far >= 0
    accessible(page)
