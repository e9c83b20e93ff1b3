"""Lessons, undo, and what the page does when the server is away, restarted or asks for a token."""

import pytest
from browsing import accessible, files, fill, names
from fake import lesson_view, model_view, result_view

expect = pytest.importorskip("playwright.sync_api").expect
SHAPES = ("circle", "dots", "square", "triangle", "stripes")


def test_a_lesson_of_many_classes_is_one_job_and_comes_back_whole(fake, visit):
    fake.know(["wren"])
    page = visit(fake)
    labels = [f"kind {i}" for i in range(9)]
    for i, name in enumerate(labels):
        if i:
            page.get_by_role("button", name="Add another class").click()
        fill(page, name, 1, which=i, shape=SHAPES[i % 5])
    page.locator("#send").click()
    expect(page.locator(".lesson.waiting")).to_contain_text("Waiting to learn 9 classes")
    assert [body["label"] for body in fake.bodies("POST lessons")] == [labels]
    fake.lessons = [lesson_view(1, dict.fromkeys(labels, 1), current="kind 3", done=3, total=9)]
    expect(page.locator(".lesson.learning")).to_contain_text("Looking at the pictures · kind 3 · picture 3 of 9")
    fake.lessons = [lesson_view(1, dict.fromkeys(labels, 1), "failed", message="the disk is full")]
    expect(page.locator(".lesson.failed")).to_contain_text("Not learned: 9 classes")
    expect(page.locator(".lesson.failed")).to_contain_text("the disk is full")
    page.get_by_role("button", name="Back to the form").click()
    expect(page.locator(".group")).to_have_count(9)
    assert [box.input_value() for box in page.get_by_label("Name of the class").all()] == labels


def test_pictures_the_server_could_not_read_are_named(fake, visit):
    fake.know(["wren"])
    page = visit(fake)
    fill(page, "robin", 3, shape="dots")
    page.locator("#send").click()
    expect(page.locator(".lesson.waiting")).to_be_visible()
    unreadable = [{"picture": 2, "reason": "more than 40 million pixels"}]
    misfits = [{"picture": 3, "name": "robin", "answer": "wren", "probability": 0.8}]
    fake.lessons = [
        lesson_view(1, {"robin": 2}, "done", unreadable=unreadable, result=result_view({"robin": 2}, misfits=misfits))
    ]
    done = page.locator(".lesson.done")
    expect(done).to_contain_text("dots-1.png: more than 40 million pixels")
    expect(done.locator(".misfits")).to_contain_text("robin, dots-2.png: looks like wren (80%)")
    expect(done.locator(".misfits canvas")).to_be_visible()
    page.reload()  # the file names were this tab's alone
    expect(done).to_contain_text("picture 2: more than 40 million pixels")


def test_the_focus_goes_to_the_result_of_a_lesson_unless_one_is_at_something_else(fake, visit):
    fake.know(["wren"])
    page = visit(fake)
    for number, busy in ((1, False), (2, True)):
        fill(page, "robin", 2, shape="dots")
        page.locator("#send").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".lesson.waiting h3")).to_be_focused()
        if busy:
            page.get_by_label("Name of the class").focus()
        else:
            page.get_by_role("button", name="Cancel").focus()  # which is gone when the lesson is done
        fake.lessons = [*fake.lessons[:-1], lesson_view(number, {"robin": 2}, "done", result=result_view({"robin": 2}))]
        expect(page.locator(".lesson.done")).to_have_count(number)
        expect(page.get_by_label("Name of the class") if busy else page.locator(".lesson.done h3")).to_be_focused()


def test_a_toast_undoes_its_own_change_or_nothing(fake, visit):
    fake.know(["wren", "robin"])
    page = visit(fake)
    renamed = model_view(["wren", "ruddock"], version=4)
    renamed["history"] = [{**renamed["history"][0], "what": "rename", "pictures": {"robin": 0}, "new_name": "ruddock"}]
    fake.replies["POST rename"] = (200, renamed)
    page.get_by_role("button", name="Rename robin").click()
    page.get_by_label("New name").fill("ruddock")
    page.keyboard.press("Enter")
    toast = page.locator(".toast", has_text="robin is called ruddock now")
    expect(toast).to_be_visible()
    fake.know(["wren", "ruddock", "heron"], version=5)  # somebody else taught it another class
    expect(page.locator(".card")).to_have_count(3)
    fake.replies["POST undo"] = (409, {"detail": "the model has changed since"})
    toast.get_by_role("button", name="Undo").click()
    expect(page.locator(".toast")).to_have_text(
        "Nothing was undone: something else was changed after renaming robin to ruddock."
    )
    assert fake.bodies("POST undo") == [{"version": 4}]  # not 5, which is somebody else's
    expect(page.locator(".toast button")).to_have_count(0)
    page.get_by_role("button", name="Undo learning heron").click()
    expect(page.locator(".toast").last).to_contain_text("Undone: learning heron")
    assert fake.bodies("POST undo")[-1] == {"version": 5}


def test_what_was_undone_can_be_done_again(fake, visit):
    fake.know(["wren"], can_redo=True, can_undo=False, version=7)
    page = visit(fake)
    expect(page.locator("#undo")).to_be_hidden()
    fake.replies["POST redo"] = (200, model_view(["wren", "robin"], version=8))
    page.get_by_role("button", name="Redo").click()
    expect(page.locator(".card")).to_have_count(2)
    expect(page.locator("#redo")).to_be_hidden()
    assert fake.bodies("POST redo") == [{"version": 7}]


def test_names_that_differ_only_in_how_they_are_written_are_asked_about(fake, visit):
    fake.know(["Robin", "wren"])
    page = visit(fake)
    dialog, reply = page.get_by_role("dialog"), (409, {"detail": "nearly the same", "similar": {"robin": "Robin"}})
    fake.replies["POST lessons"] = reply
    fill(page, "robin", 2, shape="dots")
    page.locator("#send").click()
    expect(dialog).to_contain_text("Is robin the same as Robin?")
    accessible(page)
    dialog.get_by_role("button", name="Back to the form").click()
    expect(page.get_by_label("Name of the class")).to_have_value("robin")  # nothing is lost
    expect(page.locator(".group .thumbs li")).to_have_count(2)
    expect(page.locator(".lesson")).to_have_count(0)
    for choice, label, distinct in (("Yes, it is Robin", "Robin", None), ("No, another class", "robin", ["true"])):
        fake.replies["POST lessons"] = reply
        fill(page, "robin", 2, shape="dots")
        page.locator("#send").click()
        dialog.get_by_role("button", name=choice).click()
        expect(page.locator(".lesson.waiting").first).to_contain_text(label)
        sent = fake.bodies("POST lessons")[-1]
        assert (set(sent["label"]), sent.get("distinct")) == ({label}, distinct)


def test_leaving_with_pictures_that_were_not_sent_is_asked_about(fake, visit):
    fake.know(["wren"])
    page = visit(fake)
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.get_by_label("Name of the class").click()
    page.reload()
    assert asked == []
    fill(page, "robin", 2, shape="dots")
    page.reload()
    assert asked == ["beforeunload"]


def test_seven_tabs_share_one_stream_and_the_next_takes_it_over(fake, visit):
    fake.know(["wren"])
    tabs = [visit(fake)]
    for _ in range(6):
        tabs.append(tabs[0].context.new_page())
        tabs[-1].goto(fake.address)
    for tab in tabs:
        expect(tab.locator(".card")).to_have_count(1)
    assert len(fake.streams) == 1
    fake.always["GET state"] = (503, {"detail": "ask nobody but the tab with the stream"})
    fake.know(["wren", "robin"])
    for tab in tabs:
        expect(tab.locator(".card")).to_have_count(2)
    tabs.pop(0).close()  # it had the stream
    fake.know(["wren", "robin", "heron"])
    for tab in tabs:
        expect(tab.locator(".card")).to_have_count(3)


def test_without_locks_a_tab_asks_now_and_then(fake, browser):
    fake.know(["wren"])
    context = browser.new_context()
    context.add_init_script("Object.defineProperty(navigator, 'locks', { value: undefined })")
    page = context.new_page()
    page.goto(fake.address)
    expect(page.locator(".card")).to_have_count(1)
    fake.know(["wren", "robin"])
    expect(page.locator(".card")).to_have_count(2)
    assert fake.streams == []
    context.close()


def test_a_token_that_is_asked_for_reloads_the_page(fake, visit):
    fake.know(["wren"])
    page = visit(fake)
    expect(page.locator(".card")).to_have_count(1)
    fake.replies["POST predict"] = (401, {"detail": "a token, please"})
    with page.expect_navigation():
        page.locator("#try input[type=file]").set_input_files(files("dots", 1))
    expect(page.locator(".card")).to_have_count(1)


@pytest.mark.parametrize("learned", [True, False])
def test_a_lesson_that_a_restart_cut_off_names_its_class_and_whether_it_was_learned(fake, visit, learned):
    fake.know(["wren"])
    page = visit(fake)
    fill(page, "robin", 2, shape="dots")
    page.locator("#send").click()
    expect(page.locator(".lesson.waiting")).to_be_visible()
    fake.server, fake.lessons = "another", []
    if learned:
        before = fake.model["history"]
        fake.know(["wren", "robin"])
        fake.model["history"] = before + fake.model["history"]
    expect(page.locator(".lesson.waiting")).to_have_count(0)
    expect(page.locator(".lesson h3")).to_have_text("Learned robin" if learned else "Not finished: robin")
    expect(page.get_by_role("button", name="Back to the form")).to_have_count(0 if learned else 1)


def test_classes_are_left_alone_while_something_is_learned(fake, visit):
    fake.know(["wren", "robin"])
    fake.lessons = [lesson_view(1, {"heron": 3})]
    page = visit(fake)
    expect(page.get_by_role("button", name="Forget wren")).to_be_disabled()
    expect(page.locator("#busy-note")).to_be_visible()
    expect(page.get_by_role("button", name="Add pictures of wren")).to_be_enabled()
    fake.lessons = [lesson_view(1, {"heron": 3}, "done")]
    expect(page.get_by_role("button", name="Forget wren")).to_be_enabled()
    expect(page.locator("#busy-note")).to_be_hidden()
    assert names(page) == ["wren", "robin"]


def test_another_model_is_added_after_it_was_shown_what_that_changes(fake, visit, tmp_path):
    fake.know(["wren"])
    page = visit(fake)
    (tmp_path / "other.engram").write_bytes(b"taught elsewhere")
    plan = {"added": {"heron": 5}, "joined": {"wren": 7}, "twice": ["wren"], "model": None}
    merged = model_view(["wren", "heron"], version=4)
    merged["history"] = [{**merged["history"][0], "what": "merge", "pictures": {"wren": 7, "heron": 5}}]
    fake.replies["POST merge"] = (200, plan)
    page.locator("#merge").set_input_files(tmp_path / "other.engram")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("New: heron. Known to both, and then one: wren. Learned from the same pictures")
    accessible(page)
    dialog.get_by_role("button", name="Leave it").click()
    assert [body.get("commit") for body in fake.bodies("POST merge")] == [None]
    fake.replies["POST merge"] = (200, plan)
    page.locator("#merge").set_input_files(tmp_path / "other.engram")
    expect(dialog).to_be_visible()
    fake.replies["POST merge"] = (200, {**plan, "model": merged})
    dialog.get_by_role("button", name="Add it").click()
    expect(page.locator(".toast")).to_contain_text("Added what the other model knows")
    assert names(page) == ["wren", "heron"]
    expect(page.locator("#undo")).to_have_text("Undo adding another model")
    assert fake.bodies("POST merge")[-1] == {"model": [b"taught elsewhere"], "commit": ["true"]}
    fake.replies["POST merge"] = (409, {"detail": "cannot merge this model and the other: they see differently"})
    page.locator("#merge").set_input_files(tmp_path / "other.engram")
    expect(page.locator(".toast", has_text="they see differently")).to_be_visible()
