"""Pictures as people have them: large, turned, from the clipboard or the camera, with other files among them."""

import base64
import io
import re

import pytest
from browsing import accessible, files, fill, other_file, png
from conftest import wait_for
from drawings import draw, photograph
from fake import answer_view
from PIL import Image

expect = pytest.importorskip("playwright.sync_api").expect
PASTE = """async ([content, kind, name]) => {
    const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0)), data = new DataTransfer();
    data.items.add(new File([bytes], name, { type: kind }));
    const paste = new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true });
    document.activeElement.dispatchEvent(paste);
}"""


def sent(fake, call: str = "POST predict") -> list[Image.Image]:
    """The pictures that the server got."""
    return [Image.open(io.BytesIO(content)) for body in fake.bodies(call) for content in body["picture"]]


def ask(page, *pictures) -> None:
    before = page.locator("#answers .said").count()
    page.locator("#try input[type=file]").set_input_files(list(pictures))
    expect(page.locator("#answers .said")).to_have_count(before + len(pictures))


@pytest.fixture
def page(fake, visit):
    fake.know(["wren", "robin"])
    page = visit(fake)
    expect(page.locator(".card")).to_have_count(2)
    return page


def test_a_large_photograph_is_made_small_and_turned_as_it_was_held(fake, page):
    held_upright = photograph(3000, 2000, orientation=6)  # the camera was turned: its upper edge lies on the right
    ask(page, other_file("IMG_1.jpg", "image/jpeg", held_upright))
    (small,) = sent(fake)
    assert small.size == (427, 640)
    assert small.getexif().get(0x112, 1) == 1
    red, green, blue = small.convert("RGB").getpixel((small.width - 20, 20))
    assert red > 200 > 80 > max(green, blue)  # the corner that was marked, where one sees it
    assert len(fake.bodies("POST predict")[0]["picture"][0]) < 100_000


def test_small_pictures_are_sent_as_they_are_and_panoramas_keep_their_height(fake, page):
    small, turned = draw("dots", 1), photograph(600, 400, orientation=6)
    ask(page, png("small.png", small), other_file("turned.jpg", "image/jpeg", turned))
    assert sorted(body["picture"][0] for body in fake.bodies("POST predict")) == sorted([small, turned])
    ask(page, other_file("wide.jpg", "image/jpeg", photograph(4000, 400)))
    assert sent(fake)[-1].size == (3200, 320)


def test_transparency_becomes_white_as_on_the_server(fake, page):
    clear = io.BytesIO()
    Image.new("RGBA", (1000, 1000), (0, 0, 0, 0)).save(clear, "PNG")
    ask(page, png("clear.png", clear.getvalue()))
    assert sent(fake)[0].getpixel((5, 5)) == (255, 255, 255)


def test_what_is_left_out_is_listed_with_the_reason(fake, page):
    group = page.locator(".group")
    group.locator("input[type=file]").set_input_files([
        *files("dots", 2), other_file("notes.txt"), other_file("plan.pdf", "application/pdf"), other_file(".hidden"),
        other_file("IMG_9.HEIC", "image/heic", b"ftypheic"), png("broken.png", b"\x89PNG"), png("nothing.png", b""),
    ])  # fmt: skip
    left = group.locator(".left")
    expect(left).to_contain_text("5 files are left out")
    expect(left).to_contain_text(re.compile(r"notes\.txt, plan\.pdf: not a picture"))
    expect(left).to_contain_text("IMG_9.HEIC: this browser cannot open HEIC; save it as JPEG")
    expect(left).to_contain_text("broken.png: cannot be opened")
    expect(left).to_contain_text("nothing.png: the file is empty")
    expect(left).not_to_contain_text(".hidden")
    expect(group.locator(".thumbs li")).to_have_count(2)
    accessible(page)
    left.get_by_role("button", name="All right").click()
    expect(left).to_be_hidden()
    page.locator("#try input[type=file]").set_input_files([other_file("notes.txt")])
    expect(page.locator("#try .left")).to_contain_text("notes.txt: not a picture")


def test_a_picture_that_only_the_server_can_read_is_sent_as_it_is(fake, page):
    tiff = io.BytesIO()
    Image.new("RGB", (40, 40)).save(tiff, "TIFF")
    ask(page, other_file("scan.tif", "image/tiff", tiff.getvalue()))
    assert fake.bodies("POST predict")[0]["picture"] == [tiff.getvalue()]


def test_no_file_name_leaves_the_browser_and_answers_name_their_picture(fake, page):
    ask(page, png("my holiday.png", draw("dots", 1)))
    expect(page.locator("#answers .answer")).to_contain_text("my holiday.png")
    fill(page, "robin", 2, shape="dots")
    page.locator("#send").click()
    expect(page.locator(".lesson.waiting")).to_be_visible()
    assert fake.file_names == {"picture"}
    page.get_by_role("button", name="Clear").click()
    expect(page.locator("#answers .answer")).to_have_count(0)
    expect(page.get_by_role("button", name="Clear")).to_be_hidden()


def test_sending_shows_how_far_it_is_and_can_be_stopped(fake, page):
    fill(page, "robin", 3, shape="dots")
    page.route("**/api/lessons", lambda route: page.wait_for_timeout(600) or route.continue_())
    page.locator("#send").click()
    sending = page.locator(".lesson.sending")
    expect(sending).to_contain_text("Sending robin")
    expect(sending.get_by_role("progressbar", name="Sending robin")).to_be_visible()
    sending.get_by_role("button", name="Cancel").click()
    expect(page.locator("#teach-problem")).to_contain_text("Nothing was sent")
    expect(page.locator(".group .thumbs li")).to_have_count(3)
    assert fake.bodies("POST lessons") == []
    page.unroute_all(behavior="ignoreErrors")


def test_the_progress_is_that_of_the_upload(page):
    page.evaluate("""async () => {
        const { LessonCard } = await import("/lesson.js");
        const card = new LessonCard([{ name: "robin", file: new File([], "x") }], () => {});
        document.getElementById("lessons").append(card.element);
        card.showSending(3_000_000, 12_000_000);
    }""")
    expect(page.locator(".lesson.sending")).to_contain_text("3 MB of 12 MB")
    assert page.locator(".lesson.sending progress").evaluate("bar => bar.value") == 0.25


def test_pictures_are_pasted_where_one_is(fake, page):
    content = base64.b64encode(draw("dots", 1)).decode()
    page.evaluate(PASTE, [content, "image/png", "image.png"])  # nowhere in particular: it is asked about
    expect(page.locator("#answers .answer")).to_contain_text("pasted picture")
    page.get_by_label("Name of the class").focus()
    page.evaluate(PASTE, [content, "image/png", "image.png"])
    expect(page.locator(".group .thumbs li")).to_have_count(1)
    expect(page.locator("#answers .answer")).to_have_count(1)


def test_enter_learns_or_goes_to_what_is_missing(fake, page):
    name = page.get_by_label("Name of the class")
    expect(page.locator("#send-why")).to_have_text("Name a class and give it pictures.")
    expect(page.locator("#send")).to_have_attribute("aria-disabled", "true")
    name.fill("heron")
    expect(page.locator("#send-why")).to_have_text("Give heron some pictures.")
    name.press("Enter")
    expect(page.locator(".group .zone input")).to_be_focused()
    fill(page, "", 2, shape="dots")
    expect(page.locator("#send-why")).to_have_text("Say what the pictures show.")
    page.locator("#send").press("Enter")  # grey, but it can be reached and leads on
    expect(name).to_be_focused()
    assert fake.bodies("POST lessons") == []
    name.fill("heron")
    expect(page.locator("#send-why")).to_have_text("")
    name.press("Enter")
    expect(page.locator(".lesson.waiting")).to_contain_text("heron")


def test_more_pictures_of_a_class_and_a_wrong_answer_put_right(fake, page):
    page.get_by_role("button", name="Add pictures of robin").click()
    expect(page.get_by_label("Name of the class")).to_have_value("robin")
    expect(page.locator(".group .zone input")).to_be_focused()
    fake.answer = answer_view("unknown", "wren", "robin")
    ask(page, png("it.png", draw("dots", 7)))
    answer = page.locator("#answers .answer")
    expect(answer).to_contain_text("It looks like nothing that was taught")
    answer.get_by_role("button", name="Wrong?").click()
    expect(answer.get_by_label("It is")).to_be_focused()
    accessible(page)
    answer.get_by_label("It is").fill("heron")
    answer.get_by_label("It is").press("Enter")
    expect(answer).to_contain_text("It is learning this picture as heron.")
    expect(page.locator(".lesson.waiting")).to_contain_text("heron")
    (lesson,) = fake.bodies("POST lessons")
    assert (lesson["label"], lesson["picture"]) == (["heron"], [draw("dots", 7)])


def test_the_camera_takes_one_or_many_and_can_be_switched(page):
    page.locator("#teach").get_by_role("button", name="Camera", exact=True).click()
    shutter = page.get_by_role("button", name="Take a picture")
    expect(shutter).to_be_focused()
    accessible(page)
    shutter.click()
    expect(page.locator(".camera .count")).to_have_text("1 picture")
    expect(page.locator(".group .thumbs li")).to_have_count(1)
    shutter.hover()
    page.mouse.down()
    expect(shutter).to_have_class(re.compile("recording"))
    expect(page.locator(".camera .count")).to_have_text(re.compile("[4-9] pictures"))
    page.mouse.up()
    expect(shutter).not_to_have_class(re.compile("recording"))
    page.wait_for_timeout(500)  # pictures on their way
    taken = page.locator(".group .thumbs li").count()
    shutter.focus()
    page.keyboard.down("Space")
    expect(shutter).to_have_class(re.compile("recording"))
    page.keyboard.up("Space")
    wait_for(lambda: page.locator(".group .thumbs li").count() > taken)
    page.wait_for_timeout(500)  # pictures on their way
    taken = page.locator(".group .thumbs li").count()
    shutter.dispatch_event("click")  # as a screen reader or speech does
    wait_for(lambda: page.locator(".group .thumbs li").count() > taken)
    label = "document.querySelector('video').srcObject.getVideoTracks()[0].label"
    first = page.evaluate(label)
    page.get_by_role("button", name="Switch camera").click()
    wait_for(lambda: page.evaluate(label) != first)
    page.get_by_role("button", name="Close the camera").click()
    expect(page.locator(".camera")).to_have_count(0)


LATE = """() => {
  const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
  window.streams = [];
  navigator.mediaDevices.getUserMedia = async (wanted) => {
    const stream = await ask(wanted);
    window.streams.push(stream);
    if (window.held) await new Promise((go) => { window.answer = go; });
    return stream;
  };
}"""
LIT = "window.streams.flatMap((stream) => stream.getTracks()).filter((track) => track.readyState === 'live').length"


def test_a_camera_that_answers_late_is_turned_off_if_nobody_waits_for_it(page):
    page.evaluate(LATE)
    opened = page.locator("#teach").get_by_role("button", name="Camera", exact=True)
    opened.click()
    expect(page.get_by_role("button", name="Take a picture")).to_be_focused()
    assert page.evaluate(LIT) == 1
    page.evaluate("window.held = true")
    page.get_by_role("button", name="Switch camera").click()
    wait_for(lambda: page.evaluate("window.streams.length") == 2)
    page.get_by_role("button", name="Close the camera").click()
    expect(page.locator(".camera")).to_have_count(0)
    page.evaluate("window.answer()")
    wait_for(lambda: page.evaluate(LIT) == 0)


def test_a_folder_of_classes(fake, visit, tmp_path):
    for shape in ("circle", "dots"):
        (tmp_path / "shapes" / shape).mkdir(parents=True)
        for i in range(3):
            (tmp_path / "shapes" / shape / f"{i}.png").write_bytes(draw(shape, i))
    (tmp_path / "shapes" / "notes.txt").write_text("no picture")
    page = visit(fake)
    page.locator("#folder").set_input_files(tmp_path / "shapes")
    expect(page.locator(".group .thumbs li")).to_have_count(6)
    assert [box.input_value() for box in page.get_by_label("Name of the class").all()] == ["circle", "dots"]
    expect(page.locator("#teach-left")).to_contain_text("notes.txt: not a picture")
    fake.replies["POST lessons"] = (422, {"detail": "a class cannot be called 'unknown'"})
    page.get_by_label("Name of the class").first.fill("unknown")
    page.locator("#send").click()
    expect(page.locator("#teach-problem")).to_contain_text("a class cannot be called 'unknown'")
    expect(page.locator(".group .thumbs li")).to_have_count(6)  # nothing is lost
