"""Only these answers: a filter on the page."""

import pytest
from browsing import accessible, png
from drawings import draw
from fake import class_names

expect = pytest.importorskip("playwright.sync_api").expect


def ask(page) -> None:
    before = page.locator("#answers .said").count()
    page.locator("#try input[type=file]").set_input_files([png("a.png", draw("dots", 1))])
    expect(page.locator("#answers .said")).to_have_count(before + 1)


def test_answers_are_asked_for_among_the_classes_that_were_chosen(fake, visit):
    fake.know(class_names(30))
    page = visit(fake, viewport={"width": 360, "height": 800})
    among, name = page.locator("#among"), page.get_by_label("A class that may be an answer")
    expect(page.locator("#among-note")).to_have_text("All classes")
    ask(page)
    among.locator("summary").click()
    name.fill("Robin")  # as people type
    name.press("Enter")
    name.fill("wren")
    page.get_by_role("button", name="Add", exact=True).click()
    name.fill("wren")
    name.press("Enter")  # twice is once
    expect(among.locator(".chip")).to_have_text(["robin", "wren"])
    expect(page.locator("#among-note")).to_have_text("2 classes")
    name.fill("griffin")
    name.press("Enter")
    expect(page.locator("#among-problem")).to_have_text("No class is called griffin.")
    accessible(page)
    ask(page)
    page.get_by_role("button", name="Leave robin out").click()
    expect(page.locator("#among-note")).to_have_text("1 class")
    expect(name).to_be_focused()
    ask(page)
    page.get_by_role("button", name="All classes again").click()
    expect(among.locator(".chip")).to_have_count(0)
    ask(page)
    sent = [body.get("among", [""])[0].splitlines() for body in fake.bodies("POST predict")]
    assert sent == [[], ["robin", "wren"], ["wren"], []]


def test_the_filter_follows_the_model(fake, visit):
    fake.know(class_names(4))
    page = visit(fake)
    page.locator("#among summary").click()
    for name in ("wren", "heron"):
        page.get_by_label("A class that may be an answer").fill(name)
        page.get_by_role("button", name="Add", exact=True).click()
    fake.know(["robin", "heron", "kestrel"])  # wren was forgotten meanwhile
    expect(page.locator("#among .chip")).to_have_text(["heron"])
    fake.know(["robin", "heron"])  # of two there is nothing to choose
    expect(page.locator("#among")).to_be_hidden()
    ask(page)
    assert fake.bodies("POST predict")[-1].get("among") is None
