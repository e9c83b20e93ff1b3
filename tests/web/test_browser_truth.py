"""The page says what is known of a model, and that it is not known where it is not."""

import pytest
from browsing import accessible, names
from fake import class_names, health, lesson_view, result_view

expect = pytest.importorskip("playwright.sync_api").expect


def test_a_card_says_how_its_class_is_doing(fake, visit):
    fake.know(["wren", "robin", "heron"])
    fake.model["classes"][0]["health"] = health(0.75, pictures=8, robin=0.25)
    fake.model["classes"][1]["health"] = health(0.5, "weak", pictures=1, wren=0.5)
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
    expect(robin).to_contain_text("estimated from 1 picture, judged as if not learned")
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
    fake.know(["wren", "robin"], accuracy={"share": 0.9996, "pictures": 40, "classes": 2})
    expect(page.locator("#accuracy")).to_contain_text("99.9%")  # all of them is 100%, and only that
    fake.know(["wren", "robin"], accuracy=None)
    expect(page.locator("#accuracy")).to_contain_text("How well it does is not known of every class")
    assert "%" not in page.locator("#accuracy").inner_text()


def test_the_chart_has_points_only_for_changes_after_which_all_was_known(fake, visit):
    fake.know(["wren", "robin"])
    change = fake.model["history"][0]
    fake.model["history"] = [
        {**change, "what": "base", "pictures": {"wren": 9, "robin": 9}, "accuracy": 1.0},
        {**change, "pictures": {"heron": 9}},  # of one class only
        {**change, "pictures": {"kestrel": 9}, "accuracy": 0.61},
    ]
    fake.stamp += 1
    page = visit(fake)
    expect(page.locator("#history circle")).to_have_count(2)
    expect(page.locator("#history svg")).to_have_attribute("aria-label", "Start: 100% right; kestrel: 61% right")
    fake.model["history"] = fake.model["history"][1:]
    fake.stamp += 1
    expect(page.locator("#history-view")).to_be_hidden()


def test_a_lesson_says_from_how_many_pictures_and_in_what_time(fake, visit):
    fake.know(["wren"])
    fake.lessons = [lesson_view(1, {"wren": 5}, "done", result=result_view({"wren": 5}))]
    page = visit(fake)
    expect(page.locator(".lesson.done")).to_contain_text("From 5 pictures in 2 sec")


def test_the_table_of_what_is_taken_for_what_opens(fake, visit):
    known = ["wren", "robin", "heron"]
    fake.know(known)
    rows = [{"name": "wren", "pictures": 8, "answers": {"wren": 0.75, "robin": 0.25}},
            {"name": "robin", "pictures": 8, "answers": {"robin": 1.0}}]  # fmt: skip
    fake.confusion = {"names": known, "rows": rows}
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
    expect(page.locator("#confusion-note")).to_contain_text("Estimated from 16 learned pictures")
    accessible(page)
    page.keyboard.press("Escape")
    expect(page.locator("#confusion")).to_be_hidden()
    expect(opens).to_be_focused()


def test_a_table_of_many_classes_shows_those_with_the_most_mistakes(fake, visit):
    known = class_names(200)
    fake.know(known)
    rows = [{"name": name, "pictures": 9, "answers": {name: 1.0}} for name in known]
    rows[150]["answers"] = {known[150]: 0.5, known[3]: 0.5}
    fake.confusion = {"names": known, "rows": rows}
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
    fake.know(["wren"], unknown=None)
    expect(share).to_be_hidden()
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
