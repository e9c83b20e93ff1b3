"""The page at every size, in every language, for few classes and for many, with a keyboard, and its downloads."""

import itertools
import subprocess
import sys

import pytest
from browsing import WIDTHS, accessible, fill, names
from drawings import draw
from fake import answer_view, class_names, health, lesson_view

expect = pytest.importorskip("playwright.sync_api").expect
LONG = "a name that goes on and on, as nobody would write it but somebody will, to the end"


def test_a_search_finds_cards(fake, visit):
    fake.know(class_names(19))
    page = visit(fake)
    expect(page.locator(".card")).to_have_count(19)
    expect(page.get_by_label("Find a class")).to_be_hidden()
    fake.know([*class_names(60), "Zilpzalp"])
    expect(page.locator(".card")).to_have_count(24)
    page.get_by_role("button", name="Show all 61").click()
    expect(page.locator(".card")).to_have_count(61)
    page.get_by_label("Find a class").fill("zilp")
    assert names(page) == ["Zilpzalp"]
    expect(page.locator("#found")).to_have_text("1 class found")
    page.get_by_label("Find a class").fill("")
    expect(page.locator(".card")).to_have_count(61)


def test_long_names_stay_inside_their_panels(fake, visit):
    fake.know([LONG, "x" * 80, "wren"])
    fake.model["classes"][1]["health"] = health(0.1, "lost", **{LONG: 0.9})
    fake.lessons = [lesson_view(1, {LONG: 3}, done=1, total=3)]
    fake.answer = answer_view(LONG, LONG, "x" * 80, "wren")
    page = visit(fake)
    fill(page, LONG, 1, shape="dots")
    page.locator("#try input[type=file]").set_input_files(
        [{"name": "y" * 80 + ".png", "mimeType": "image/png", "buffer": draw("dots", 1)}]
    )
    expect(page.locator("#answers .said")).to_be_visible()
    outside = """() => [...document.querySelectorAll(".panel, .card, .lesson, .answer, .group")].flatMap((box) =>
        [...box.querySelectorAll("*:not(svg *, option, datalist)")].filter((one) => one.checkVisibility()
            && one.getBoundingClientRect().right > box.getBoundingClientRect().right + 1)
            .map((one) => one.outerHTML.slice(0, 90)))"""
    for width, size in itertools.product(WIDTHS, ("100%", "200%")):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(f"document.documentElement.style.fontSize = '{size}'")
        assert page.evaluate(outside) == [], (width, size)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_targets_are_large_enough_for_a_finger(fake, visit):
    fake.know(class_names(21))
    page = visit(fake, viewport={"width": 360, "height": 800}, has_touch=True)
    fill(page, "heron", 2, shape="dots")
    page.locator("#try input[type=file]").set_input_files(
        [{"name": "a.png", "mimeType": "image/png", "buffer": draw("dots", 1)}]
    )
    page.locator("#try").get_by_role("button", name="Wrong?").click()
    for summary in page.locator("summary").all():
        summary.click()
    small = """() => [...document.querySelectorAll("button, a, select, summary, label.button, input:not([type=file])")]
        .filter((one) => one.checkVisibility() && !one.matches(".skip, [type=checkbox]"))
        .map((one) => [one.outerHTML.slice(0, 80), one.getBoundingClientRect()])
        .filter(([, box]) => box.width < 43.9 || box.height < 43.9).map(([html]) => html)"""
    assert page.evaluate(small) == []


def test_forced_colours_leave_bars_visible(fake, visit):
    fake.know([*class_names(5), LONG])
    fake.model["classes"][1]["health"] = health(0.1, "lost", wren=0.9)
    page = visit(fake, viewport={"width": 360, "height": 800}, forced_colors="active")
    expect(page.locator(".card")).to_have_count(6)
    track, fill_of = (page.locator(f".health .{part}").first for part in ("track", "fill"))
    colour = "one => getComputedStyle(one).backgroundColor"
    assert track.evaluate(colour) != fill_of.evaluate(colour)  # the bars can be told from their ground
    assert track.evaluate("one => getComputedStyle(one).borderStyle") == "solid"


@pytest.mark.parametrize(("locale", "language", "direction", "learn"), [
    ("de-CH", "de", "ltr", "Lernen"), ("fa-IR", "fa", "rtl", "یاد بگیر"), ("fr-FR", "en", "ltr", "Learn"),
])  # fmt: skip
def test_the_page_speaks_the_language_of_the_browser(fake, visit, locale, language, direction, learn):
    fake.know(["wren", "robin"])
    page = visit(fake, locale=locale)
    expect(page.locator("#send")).to_have_text(learn)
    expect(page.locator("html")).to_have_attribute("lang", language)
    expect(page.locator("html")).to_have_attribute("dir", direction)
    if direction == "rtl":
        accessible(page)


def test_another_language_is_chosen_and_kept(fake, visit):
    fake.know(["wren", "robin"])
    page = visit(fake)
    page.get_by_label("Language").select_option("فارسی")
    expect(page.locator("#classes-title")).to_have_text("دسته‌ها")
    expect(page.locator(".card .health b").first).to_have_text("۱۰۰٪ درست")  # numbers as the language writes them
    expect(page.locator("#model-name")).to_have_text("\u2068birds.engram\u2069 · ۲ دسته")  # each in its own direction
    assert page.locator("#try").bounding_box()["x"] < page.locator("#teach").bounding_box()["x"]
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "fa")


def test_nothing_learned_and_nothing_left_are_designed_states(fake, visit):
    page = visit(fake)
    expect(page.get_by_role("heading", name="Teach it something")).to_be_visible()
    expect(page.locator(".steps li")).to_have_count(3)
    expect(page.locator("#try")).to_be_hidden()
    accessible(page)
    fake.know([], exists=True, accuracy=None)
    expect(page.locator("#no-classes")).to_be_visible()
    expect(page.locator("#try")).to_be_hidden()
    accessible(page)


def test_classes_that_came_with_the_backbone_are_one_line(fake, visit):
    fake.know([], exists=True, unknown=None, built_in={"classes": 1000, "licence": "names: torchvision"})
    page = visit(fake)
    expect(page.locator("#built-in")).to_contain_text("And 1,000 classes of ImageNet")
    expect(page.locator("#built-in")).to_contain_text("names: torchvision")
    expect(page.locator("#no-classes")).to_be_hidden()
    expect(page.locator("#try")).to_be_visible()
    fake.know(["wren", "robin"])
    expect(page.locator("#built-in")).to_be_hidden()
    accessible(page)


def test_the_onnx_file_shows_progress_and_is_not_asked_for_twice(fake, visit):
    fake.know(["wren", "robin"])
    fake.held.clear()
    page = visit(fake)
    onnx = page.get_by_role("button", name="ONNX file")
    onnx.click()
    expect(onnx).to_be_disabled()
    expect(page.locator("#onnx-progress progress")).to_be_visible()
    with page.expect_download() as taken:
        fake.held.set()
    assert taken.value.suggested_filename == "birds.onnx"
    expect(onnx).to_be_enabled()
    expect(page.locator("#onnx-progress")).to_be_hidden()
    fake.replies["GET model/onnx"] = (409, {"detail": "there is no model"})
    onnx.click()
    expect(page.locator(".toast")).to_contain_text("there is no model")
    expect(onnx).to_be_enabled()


def test_the_snippets_have_the_real_address_and_work(fake, visit, tmp_path):
    fake.know(["wren", "robin"])
    page = visit(fake)
    page.get_by_text("Ask from a program").click()
    python, curl = page.locator("#snippets pre").all_inner_texts()
    assert f"{fake.address}api/predict" in python
    assert f"{fake.address}api/predict" in curl
    (tmp_path / "picture.jpg").write_bytes(draw("dots", 1))
    (tmp_path / "ask.py").write_text(python)
    said = subprocess.run(
        [sys.executable, "ask.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert said.stdout == "wren\n"
    accessible(page)
