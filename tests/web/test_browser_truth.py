"""The page says what is known of a model, and that it is not known where it is not."""

import pytest
from browsing import accessible, fill, names
from fake import class_names, health, lesson_view, result_view

expect = pytest.importorskip("playwright.sync_api").expect


def test_a_card_says_how_its_class_is_doing_and_on_which_basis(fake, visit):
    fake.know(["wren", "robin", "heron"])
    fake.model["classes"][0]["health"] = health(0.75, pictures=8, robin=0.25)
    fake.model["classes"][1]["health"] = health(0.5, "weak", wren=0.5) | {"basis": "asked again", "pictures": 1}
    fake.model["classes"][2]["health"] = None
    page = visit(fake)
    wren, robin, heron = (
        page.locator(".card", has_text=name).filter(has=page.get_by_role("heading", name=name))
        for name in ("wren", "robin", "heron")
    )
    expect(wren).to_contain_text("75% right")
    expect(wren).to_contain_text("estimated from 8 pictures, each judged as if not learned")
    expect(wren.locator(".alike")).to_contain_text("Taken for")
    expect(wren.locator(".alike .bars li")).to_have_text("robin25%")
    assert wren.locator(".alike .fill").evaluate("bar => bar.style.getPropertyValue('--share')") == "0.25"
    expect(robin.locator(".mark")).to_have_text("Weak")
    expect(robin).to_contain_text("of 1 picture it never learned from")
    expect(heron).not_to_contain_text("right")  # nothing is known, so nothing is said
    expect(heron.locator(".alike")).to_contain_text("Looks most like")
    expect(heron.locator(".alike .bars li")).to_have_count(2)
    accessible(page)


def test_a_class_that_died_is_marked_and_says_what_to_do(fake, visit):
    fake.know(["wren", "robin", "heron"])
    fake.model["classes"][2]["health"] = health(0.1, "lost", wren=0.9)
    page = visit(fake)
    lost = page.locator(".card").first  # before the others
    expect(lost.locator("h3")).to_have_text("heron")
    expect(lost.locator(".mark")).to_have_text("Lost")
    expect(lost).to_contain_text("Add pictures of it, or undo the last change")
    accessible(page)
    lost.get_by_role("button", name="Undo the last change").click()
    expect(page.locator(".toast")).to_contain_text("Undone: learning heron")
    assert fake.bodies("POST undo") == [{"version": 3}]
    lost.get_by_role("button", name="Add pictures of heron").click()
    expect(page.get_by_label("Name of the class")).to_have_value("heron")


def test_the_accuracy_is_told_or_that_it_cannot_be(fake, visit):
    fake.know(["wren", "robin"])
    page = visit(fake)
    expect(page.locator("#accuracy")).to_contain_text("94%")
    expect(page.locator("#accuracy")).to_contain_text("Estimated from 48 learned pictures")
    fake.know(["wren", "robin"], accuracy={"share": 0.9996, "pictures": 40, "classes": 2, "basis": "asked again"})
    expect(page.locator("#accuracy")).to_contain_text("99.9%")  # all of them is 100%, and only that
    expect(page.locator("#accuracy")).to_contain_text("Asked about 40 pictures that it never learned from.")
    fake.know(["wren", "robin"], accuracy=None)
    expect(page.locator("#accuracy")).to_contain_text("How well it does cannot be told")
    assert "%" not in page.locator("#accuracy").inner_text()


def test_the_chart_has_points_only_for_changes_after_which_all_was_known(fake, visit):
    fake.know(["wren", "robin"])
    change = fake.model["history"][0]
    fake.model["history"] = [
        {**change, "what": "base", "pictures": {"wren": 9, "robin": 9}, "accuracy": 1.0, "basis": "asked again"},
        {**change, "pictures": {"heron": 9}, "checked": 4, "right": 4},  # of one class only
        {**change, "pictures": {"kestrel": 9}, "accuracy": 0.61, "basis": "asked again"},
    ]
    fake.stamp += 1
    page = visit(fake)
    expect(page.locator("#history circle")).to_have_count(2)
    expect(page.locator("#history svg")).to_have_attribute("aria-label", "Start: 100% right; kestrel: 61% right")
    fake.model["history"] = fake.model["history"][1:]
    fake.stamp += 1
    expect(page.locator("#history-view")).to_be_hidden()


def test_a_lesson_shows_no_number_that_nobody_asked_for(fake, visit):
    fake.know(["wren"])
    fake.lessons = [lesson_view(1, {"wren": 5}, "done", result=result_view({"wren": 5}))]
    page = visit(fake)
    expect(page.locator(".lesson.done")).to_contain_text("From 5 pictures in 2 sec")
    expect(page.locator(".lesson meter")).to_have_count(0)
    checked = {
        "new": {"pictures": 4, "right": 3},
        "before": {"pictures": 9, "right": 9},
        "after": {"pictures": 9, "right": 7},
    }
    fake.lessons = [*fake.lessons, lesson_view(2, {"robin": 5}, "done", result=result_view({"robin": 5}, **checked))]
    second = page.locator(".lesson.done", has_text="robin")
    expect(second.locator("meter")).to_have_count(3)
    expect(second).to_contain_text("New pictures it had not learned from")
    expect(second).to_contain_text("2 answers about earlier classes became wrong")


def test_the_table_of_what_is_taken_for_what_opens(fake, visit):
    known = ["wren", "robin", "heron"]
    fake.know(known)
    rows = [{"name": "wren", "pictures": 8, "answers": {"wren": 0.75, "robin": 0.25}},
            {"name": "robin", "pictures": 8, "answers": {"robin": 1.0}}]  # fmt: skip
    fake.confusion = {"basis": "asked again", "names": known, "rows": rows}
    page = visit(fake)
    opens = page.get_by_role("button", name="What is taken for what")
    opens.focus()
    page.keyboard.press("Enter")
    table = page.get_by_role("region", name="What is taken for what")
    expect(table).to_be_focused()  # and so the arrow keys scroll it
    expect(table.locator("tbody tr")).to_have_count(2)
    expect(table.locator("tbody tr").first.locator("td")).to_have_text(["75%", "25%"])
    expect(table.locator("td.right")).to_have_count(2)
    expect(table.locator("td.wrong")).to_have_attribute("title", "wren: 25% answered as robin")
    expect(page.locator("#confusion-note")).to_contain_text("Asked about 16 pictures")
    accessible(page)
    page.keyboard.press("Escape")
    expect(page.locator("#confusion")).to_be_hidden()
    expect(opens).to_be_focused()


def test_a_table_of_many_classes_shows_those_with_the_most_mistakes(fake, visit):
    known = class_names(200)
    fake.know(known)
    rows = [{"name": name, "pictures": 9, "answers": {name: 1.0}} for name in known]
    rows[150]["answers"] = {known[150]: 0.5, known[3]: 0.5}
    fake.confusion = {"basis": "leave-one-out", "names": known, "rows": rows}
    page = visit(fake)
    page.locator("#confusion-open").click()
    expect(page.locator("#confusion tbody tr")).to_have_count(40)
    expect(page.locator("#confusion tbody th", has_text=known[150])).to_be_visible()
    expect(page.locator("#confusion-note")).to_contain_text("The 40 classes of 200 with the most mistakes")
    fake.replies["GET confusion"] = (409, {"detail": "nothing can be told"})
    page.locator("#confusion-close").click()
    page.locator("#confusion-open").click()
    expect(page.locator(".toast")).to_contain_text("nothing can be told")
    expect(page.locator("#confusion")).to_be_hidden()


def test_keeping_numbers_of_pictures_is_asked_once_and_is_off(fake, visit):
    page = visit(fake)
    keep = page.get_by_role("switch", name="Keep a few pictures' numbers in the file")
    expect(keep).not_to_be_checked()
    expect(page.locator("#keep-note")).to_contain_text("Not the pictures")
    accessible(page)
    fill(page, "wren", 2, shape="circle")
    page.locator("#send").click()
    expect(page.locator(".lesson.waiting")).to_be_visible()
    keep.click()
    fill(page, "robin", 2, shape="dots")
    page.locator("#send").click()
    expect(page.locator(".lesson.waiting")).to_have_count(2)
    assert [body.get("keep_examples") for body in fake.bodies("POST lessons")] == [None, ["true"]]
    fake.know(["wren"], keeps_examples=True, example_bytes=7000)
    expect(keep).to_be_hidden()
    expect(page.locator("#bytes li", has_text="Numbers of pictures set aside")).to_contain_text("7 kB")


def test_how_much_is_called_unknown_is_shown_and_can_be_set(fake, visit):
    fake.know(["wren", "robin"])
    page = visit(fake)
    share = page.get_by_label("Pictures of known classes that may be called unknown")
    expect(share).to_have_value("0.05")
    share.select_option("0.2")
    expect(page.locator(".toast")).to_contain_text("About 20%")
    assert fake.bodies("POST unknown") == [{"share": 0.2}]
    expect(share).to_be_focused()
    fake.replies["POST unknown"] = (409, {"detail": "a class is being learned"})
    share.select_option("0.01")
    expect(page.locator(".toast", has_text="a class is being learned")).to_be_visible()
    expect(share).to_have_value("0.2")  # as it is, not as it was wished
    fake.know(["wren"], unknown={**fake.model["unknown"], "adjustable": False, "share": 0.005})
    expect(share).to_be_hidden()
    expect(page.locator("#unknown-note")).to_contain_text("about 0.5% of pictures of known classes")
    fake.know(["wren"], unknown=None)
    expect(page.locator("#unknown-note")).to_contain_text("only one class")
    fake.know(["wren", "robin"], unknown=None)
    expect(page.locator("#unknown-note")).to_contain_text("cannot say")


def test_a_damaged_file_is_a_state_of_the_page_that_says_what_to_do(fake, visit):
    fake.know([], exists=True, problem="birds.engram is damaged", can_undo=True, version=0, can_learn=False)
    page = visit(fake)
    expect(page.get_by_role("heading", name="The model file cannot be read")).to_be_visible()
    expect(page.locator("#damaged")).to_contain_text("birds.engram is damaged")
    for hidden in ("#teach", "#try", "#classes", "#overview", "#take", "#welcome", ".toast"):
        expect(page.locator(hidden)).to_be_hidden()
    accessible(page)
    fake.replies["POST undo"] = (200, fake.model | {"problem": None})
    page.get_by_role("button", name="Go back to the version before").click()
    expect(page.locator("#damaged")).to_be_hidden()
    assert fake.bodies("POST undo") == [{"version": 0}]
    fake.know(["wren", "robin"])  # somebody put a good copy there
    expect(page.locator(".card")).to_have_count(2)
    assert names(page) == ["wren", "robin"]
