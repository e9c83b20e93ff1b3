"""Boxes from a detector: MegaDetector's JSON in, crops learned and answered, the same JSON out."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from toys import COLOURS, paint

from engram import IncrementalClassifier
from engram.datasets.detections import read_detections
from engram.datasets.folders import scan_classes
from engram.errors import DataError
from engram.images.crop import Crop
from engram.images.decode import load_image
from engram.store import (
    Answer,
    ModelStore,
    Ranked,
    Unreadable,
    add_classifications,
    crop_classes,
    crops,
    predict_images,
    twins,
)

NEW = ["--backbone", "averages"]
WIDE, HIGH = 80, 60
BOX = [0.25, 0.5, 0.25, 0.3333]  # 20×20 of 80×60 pixels
SMALL = [0.0, 0.0, 0.1, 0.1]


def validate(content):
    """The rules of https://lila.science/megadetector-output-format, as one reads them there."""
    assert isinstance(content["info"]["format_version"], str)
    assert float(content["info"]["format_version"]) >= 1.3
    for name in ("detector", "classifier", "detection_completion_time", "classification_completion_time"):
        assert isinstance(content["info"].get(name, ""), str)
    for kinds in (content["detection_categories"], content.get("classification_categories", {})):
        for key, name in kinds.items():
            assert re.fullmatch(r"\d+", key)
            assert name.strip()
    if "classification_category_descriptions" in content:
        assert content["classification_category_descriptions"].keys() == content["classification_categories"].keys()
    for image in content["images"]:
        assert isinstance(image["file"], str)
        if image.get("failure") is not None:
            assert isinstance(image["failure"], str)
            assert image.get("detections") is None
            continue
        assert isinstance(image["detections"], list)
        for one in image["detections"]:
            assert one["category"] in content["detection_categories"]
            assert isinstance(one["conf"], float)
            assert len(one["bbox"]) == 4
            assert all(0 <= side <= 1 for side in one["bbox"])
            scores = [score for _, score in one.get("classifications", ())]
            assert scores == sorted(scores, reverse=True)
            assert all(0 <= score <= 1 for score in scores)
            assert all(key in content["classification_categories"] for key, _ in one.get("classifications", ()))
            assert "frame_rate" not in image or isinstance(one["frame_number"], int)


def hide(source: Path, goal: Path) -> None:
    """Every picture, made square, as a part of a larger one, which is of another colour all around."""
    for path in source.rglob("*.png"):
        canvas = Image.new("RGB", (WIDE, HIGH), COLOURS["white"])
        square = Image.open(path).crop((0, 0, 20, 20))
        square.save(path)
        canvas.paste(square, (20, 30))
        (goal / path.parent.name).mkdir(parents=True, exist_ok=True)
        canvas.save(goal / path.parent.name / path.name)


def animal(box, conf=0.9, **more):
    return {"category": "1", "conf": conf, "bbox": box, **more}


def content_of(images, **info):
    return {
        "info": {"format_version": "1.5", "detector": "md_v5a.0.1.pt", **info},
        "detection_categories": {"1": "animal", "2": "person"},
        "images": images,
        "camera": {"who knows": [1, 2.5]},
    }


@pytest.fixture
def hidden(tmp_path) -> Path:
    """cut/ has pictures of colours, wide/ the same in larger ones, md.json where they are."""
    hide(paint(tmp_path / "cut", "red", "green", n=6), tmp_path / "wide")
    names = sorted(path.relative_to(tmp_path / "wide").as_posix() for path in (tmp_path / "wide").rglob("*.png"))
    images = [{"file": f"wide/{name}", "detections": [animal(SMALL, 0.3), animal(BOX)]} for name in names]
    (tmp_path / "md.json").write_text(json.dumps(content_of(images)), encoding="utf-8")
    return tmp_path


# --- crops -----------------------------------------------------------------------------------------------------------


def test_a_crop_is_pixels_of_the_picture(hidden):
    found = read_detections(hidden / "md.json").surest()
    for path, one in found.items():
        cut = load_image(hidden / "cut" / path.parent.name / path.name)
        assert np.array_equal(load_image(Crop(path, one.box)), cut)


@pytest.mark.parametrize(
    ("box", "pixels"),
    [
        ((0.25, 0.25, 0.25, 0.3333), (20, 15, 40, 35)),
        ((0.25, 0.25, 0.5, 0.3333), (20, 5, 60, 45)),  # as high as it is wide
        ((0.25, 0.25, 0.125, 0.6667), (5, 15, 45, 55)),  # as wide as it is high
        ((0.0, 0.0, 0.5, 0.3333), (0, 0, 40, 40)),  # moved into the picture
        ((0.5, 0.6667, 0.5, 0.3333), (40, 20, 80, 60)),
        ((0.0, 0.0, 1.0, 1.0), (0, 0, 80, 60)),  # all there is
        ((0.1, 0.5, 0.9, 0.1), (8, 0, 80, 60)),
        ((-0.005, 0.0, 0.255, 0.3333), (0, 0, 20, 20)),  # rounded beyond the edge
        ((1.0, 1.0, 0.0, 0.0), (79, 59, 80, 60)),  # never less than a pixel
    ],
)
def test_a_crop_is_the_square_around_the_box_inside_the_picture(box, pixels):
    picture = Image.fromarray(np.arange(80 * 60 * 3, dtype=np.uint64).astype(np.uint8).reshape(60, 80, 3))
    assert np.array_equal(Crop(Path("a"), box).cut(picture), picture.crop(pixels))


def test_boxes_are_of_the_upright_picture(tmp_path):
    """As MegaDetector sees it: turned as its EXIF data say."""
    upright = Image.new("RGB", (40, 80))
    upright.paste(COLOURS["red"], (0, 60, 40, 80))  # the lower quarter
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by 90° clockwise
    upright.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "a.png", exif=exif)
    lower = load_image(Crop(tmp_path / "a.png", (0.25, 0.75, 0.5, 0.25)))
    assert lower.size == (20, 20)
    assert np.unique(np.asarray(lower).reshape(-1, 3), axis=0).tolist() == [list(COLOURS["red"])]


def test_crops_in_python(hidden):
    found = read_detections(hidden / "md.json").surest().values()
    clf = IncrementalClassifier(backbone="averages", device="cpu")
    clf.fit([Crop(one.path, one.box) for one in found], [one.path.parent.name for one in found])
    assert clf.predict([hidden / "cut" / "red" / "0-0.png"]).tolist() == ["red"]


def test_two_crops_of_one_picture_are_no_twins(tmp_path):
    picture = paint(tmp_path, "red", n=1) / "red" / "0-0.png"
    one, other = Crop(picture, (0, 0, 0.5, 1)), Crop(picture, (0.5, 0, 0.5, 1))
    assert twins({"a": [one], "b": [other]}) == []
    assert twins({"a": [one], "b": [other, one]}) == [("a", one, "b", one)]


# --- the file --------------------------------------------------------------------------------------------------------


def read(tmp_path, content, **options):
    (tmp_path / "md.json").write_text(json.dumps(content))
    return read_detections(tmp_path / "md.json", **options)


def test_which_boxes_are_looked_at(tmp_path):
    boxes = [animal(BOX, conf) for conf in (0.1, 0.2, 0.5)]
    others = [{**animal(BOX), "category": "2"}, {**animal(BOX), "category": "9"}]
    images = [
        {"file": "sub\\a.jpg", "detections": boxes + others},
        {"file": "clip.mp4", "frame_rate": 20, "frames_processed": [0], "detections": [animal(BOX, frame_number=0)]},
        {"file": "b.jpg", "failure": "Failure image access", "detections": None},
        {"file": "/c.jpg", "detections": [animal(BOX, 0.6)], "failure": None},
        {"file": "d.jpg", "failure": "Failure image access"},
    ]
    found = read(tmp_path, content_of(images))
    assert [(one.confidence, one.image, one.detection) for one in found.boxes] == [
        (0.2, 0, 1),
        (0.5, 0, 2),
        (0.6, 3, 0),
    ]
    assert [one.path for one in found.boxes] == [*2 * [tmp_path / "sub" / "a.jpg"], Path("/c.jpg")]
    assert found.videos == ["clip.mp4"]
    assert [one.confidence for one in found.surest().values()] == [0.5, 0.6]
    (tmp_path / "p").mkdir()
    elsewhere = read(tmp_path, content_of(images), images=tmp_path / "p", threshold=0.55)
    assert [one.path for one in elsewhere.boxes] == [Path("/c.jpg")]
    assert read(tmp_path, content_of(images), images=tmp_path / "p").boxes[0].path == tmp_path / "p" / "sub" / "a.jpg"
    told = content_of(images, detector_metadata={"typical_detection_threshold": 0.5})
    assert [one.confidence for one in read(tmp_path, told).boxes] == [0.5, 0.6]
    assert len(read(tmp_path, told, threshold=0.0).boxes) == 4
    no_animal = {**content_of(images), "detection_categories": {"1": "bird", "2": "boat"}}
    assert len(read(tmp_path, no_animal, threshold=0.0).boxes) == 5  # 9 is listed nowhere


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda c: [c], "it is no object with info, detection_categories and images"),
        (lambda c: {**c, "info": {}}, "info.format_version is missing"),
        (lambda c: {**c, "info": {"format_version": "2.0"}}, "info.format_version is 2.0"),
        (lambda c: {**c, "detection_categories": ["animal"]}, "detection_categories has to map numbers to names"),
        (lambda c: {**c, "images": None}, "images has to be a list"),
        (lambda c: {**c, "images": [{"detections": []}]}, "images[0] has no file"),
        (lambda c: {**c, "images": [{"file": "a"}]}, "images[0].detections is no list, though nothing failed"),
        (lambda c: _with_box(c, {"conf": 0.5, "bbox": BOX}), "images[0].detections[0] has no category"),
        (lambda c: _with_box(c, animal(BOX, "0.5")), "images[0].detections[0].conf is no number"),
        (lambda c: _with_box(c, animal(BOX, float("nan"))), "images[0].detections[0].conf is no number"),
        (lambda c: _with_box(c, animal(BOX[:3])), "images[0].detections[0].bbox is not four numbers between 0 and 1"),
        (lambda c: _with_box(c, animal([9, 9, 50, 50])), "images[0].detections[0].bbox is not four numbers between"),
        (lambda c: _with_box(c, animal([-0.5, 0, 1, 1])), "images[0].detections[0].bbox is not four numbers between"),
    ],
)
def test_what_is_not_the_format_is_one_line(change, fault, engram, hidden):
    (hidden / "m.engram").write_bytes(b"")  # which nobody reads before
    (hidden / "bad.json").write_text(json.dumps(change(content_of([]))))
    for command in (("predict", "m.engram"), ("learn", "m.engram", "wide"), ("evaluate", "m.engram", "wide")):
        done = engram(*command, "--detections", "bad.json")
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(f"error: bad.json is not MegaDetector's JSON, format 1.x: {fault}")
        assert done.err.count("\n") == 1


def _with_box(content, box):
    return {**content, "images": [{"file": "a.jpg", "detections": [box]}]}


def test_what_cannot_be_read(tmp_path):
    for text, reason in (("{", "it is no JSON"), ("[" * 100_000, "it is no JSON"), (b"\xff\xfe", "it is no JSON")):
        (tmp_path / "md.json").write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(DataError, match=f"md.json: {reason}"):
            read_detections(tmp_path / "md.json")
    with pytest.raises(DataError, match="No such file"):
        read_detections(tmp_path / "gone.json")
    with pytest.raises(DataError, match="gone is not a folder"):
        read(tmp_path, content_of([]), images=tmp_path / "gone")
    for threshold in (-0.1, 1.5, float("nan")):
        with pytest.raises(DataError, match="between 0 and 1"):
            read(tmp_path, content_of([]), threshold=threshold)


# --- predict ---------------------------------------------------------------------------------------------------------


def test_boxes_are_answered_in_the_same_file(engram, hidden):
    engram("learn", "m.engram", "cut", *NEW)
    content = json.loads((hidden / "md.json").read_text())
    failed = {"file": "wide/broken.png", "failure": "Failure image access", "detections": None}
    person = {"category": "2", "conf": 0.99, "bbox": BOX, "note": "kept"}
    content["images"][0]["detections"].append(person)
    content["images"] += [failed, {"file": "wide/empty.png", "detections": [], "datetime": "2026:05:01"}]
    content["classification_categories"] = {"7": "an earlier classifier's"}
    content["classification_category_descriptions"] = {"7": "gone with it"}
    content["images"][1]["detections"][0]["classifications"] = [["7", 1.0]]
    content["info"] |= {"classifier": "earlier", "classifier_metadata": {"typical_classification_threshold": 0.9}}
    (hidden / "md.json").write_text(json.dumps(content))
    done = engram("predict", "m.engram", "--detections", "md.json", "--detection-threshold", "0.5", "--out", "out.json")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0].startswith("wide/green/0-0.png [0.25, 0.5, 0.25, 0.3333]: green (green ")
    assert done.err == "12 of 12 boxes of animals were answered: out.json\n"

    named = json.loads((hidden / "out.json").read_text())
    validate(named)
    assert named["classification_categories"] == {"0": "green", "1": "red"}
    assert named["info"]["classifier"] == "m.engram"
    assert re.fullmatch(r"\d{4}(-\d\d){2} \d\d(:\d\d){2}", named["info"]["classification_completion_time"])
    asked = engram("predict", "m.engram", "cut", "--json").json
    numbers = {name: key for key, name in named["classification_categories"].items()}
    for image, answer in zip(named["images"], asked, strict=False):
        classified = [one for one in image["detections"] if "classifications" in one]
        assert [one["bbox"] for one in classified] == [BOX]
        expected = [[numbers[one["label"]], one["probability"]] for one in answer["top"]]
        assert classified[0]["classifications"] == expected
    # All else is as it was.
    del named["info"]["classification_completion_time"], named["info"]["classifier"]
    del content["info"]["classifier"], content["info"]["classifier_metadata"]
    for one in (named, content):
        one.pop("classification_categories")
        one.pop("classification_category_descriptions", None)
        for image in one["images"]:
            for box in image["detections"] or ():
                box.pop("classifications", None)
    assert named == content
    assert engram("predict", "m.engram", "--detections", "out.json", "--out", "out.json").code == 0
    validate(json.loads((hidden / "out.json").read_text()))


def test_other_forms_of_the_answers(engram, hidden):
    engram("learn", "m.engram", "cut", *NEW)
    ask = ("predict", "m.engram", "--detections", "md.json", "--detection-threshold", "0.5")
    answers = engram(*ask, "--json").json
    assert [one["box"] for one in answers] == 12 * [BOX]
    assert answers[0]["path"] == "wide/green/0-0.png"
    assert "box" not in engram("predict", "m.engram", "cut", "--json").json[0]
    rows = list(csv.DictReader(engram(*ask, "--csv").out.splitlines()))
    assert [float(rows[0][side]) for side in ("x_min", "y_min", "width", "height")] == BOX
    assert engram(*ask, "--csv", "t.csv").out == ""
    assert list(csv.DictReader((hidden / "t.csv").read_text().splitlines())) == rows


def test_among_taxonomy_and_unknown(engram, hidden):
    paint(hidden / "cut", "yellow", n=6)
    engram("learn", "m.engram", "cut", *NEW)
    (hidden / "t.csv").write_text("red,warm,colour\nyellow,warm,colour\ngreen,cold,colour\n")

    def first(*options):
        ask = ("predict", "m.engram", "--detections", "md.json", "--detection-threshold", "0.5", "--out", "out.json")
        assert engram(*ask, *options).code == 0
        content = json.loads((hidden / "out.json").read_text())
        validate(content)
        return content, content["images"][-1]["detections"][1].get("classifications")

    content, given = first("--among", "yellow,green")
    assert content["classification_categories"] == {"0": "yellow", "1": "green"}
    assert sum(score for _, score in given) == pytest.approx(1, abs=2e-4)
    _, given = first("--unknown", "0.999999")
    assert given is None
    content, given = first("--taxonomy", "t.csv", "--sure", "0.3", "--top", "2")
    kinds = content["classification_categories"]
    assert list(kinds.values()) == ["green", "red", "yellow", "cold", "colour", "warm"]
    assert content["classification_category_descriptions"]["1"] == "colour;warm;red"
    assert content["classification_category_descriptions"]["5"] == "colour;warm"
    assert len(given) == 2
    assert kinds[given[0][0]] == "red"


def test_a_coarser_name_comes_first(tmp_path):
    found = read(tmp_path, content_of([{"file": "a.jpg", "detections": [animal(BOX), animal(SMALL), animal(SMALL)]}]))
    ranked = (Ranked("wren", 0.5, 0.5), Ranked("robin", 0.4, 0.4))
    answers = [
        Answer(0, "a.jpg", "songbird", 0.5, 0.5, 1.0, ranked, 0.9, tuple(BOX)),
        Unreadable(1, "a.jpg", "gone"),
        Answer(2, "a.jpg", "unknown", 0.5, 0.5, 1.0, ranked, None, tuple(SMALL)),
    ]
    above = {"wren": "songbird", "robin": "songbird", "swift": "bird"}
    names = ["robin", "wren"]
    content = add_classifications(found, answers, classifier="b.engram", names=names, taxonomy=above)
    validate(content)
    assert content["classification_categories"] == {"0": "robin", "1": "wren", "2": "songbird"}
    named = [one.get("classifications") for one in content["images"][0]["detections"]]
    assert named == [[["2", 0.9], ["1", 0.5], ["0", 0.4]], None, None]


def test_pictures_that_are_not_there(engram, hidden):
    engram("learn", "m.engram", "cut", *NEW)
    ask = ("predict", "m.engram", "--detections", "md.json", "--out", "out.json")
    (hidden / "wide" / "red" / "0-5.png").unlink()
    done = engram(*ask)
    assert done.code == 2
    assert done.err.count("cannot read wide/red/0-5.png: No such file or directory\n") == 2  # one for each box
    named = json.loads((hidden / "out.json").read_text())
    validate(named)
    assert ["classifications" in one for one in named["images"][-1]["detections"]] == [False, False]
    (hidden / "sub").mkdir()
    (hidden / "md.json").rename(hidden / "sub" / "md.json")
    ask = ("predict", "m.engram", "--detections", "sub/md.json")
    lost = engram(*ask)
    assert (lost.code, lost.err.count("\n")) == (2, 1)
    assert "no picture is where the detections say, such as sub/wide/green/0-0.png; give --images FOLDER" in lost.err
    assert engram(*ask, "--images", ".", "--detection-threshold", "0.95").code == 1
    assert len(engram(*ask, "--images", ".").out.splitlines()) == 22


def test_no_box_at_all_is_a_file_without_classifications(engram, hidden):
    engram("learn", "m.engram", "cut", *NEW)
    ask = ("predict", "m.engram", "--detections", "md.json", "--detection-threshold", "0.95")
    assert engram(*ask).err == "no box reaches 0.95\n"
    assert engram(*ask, "--out", "out.json").code == 0
    validate(json.loads((hidden / "out.json").read_text()))


def test_options_that_do_not_go_together(engram, hidden):
    engram("learn", "m.engram", "cut", *NEW)
    refused = {
        ("predict", "m.engram", "cut", "--out", "o.json"): "--out belongs to --detections",
        ("predict", "m.engram", "cut", "--images", "."): "--images and --detection-threshold belong to --detections",
        ("predict", "m.engram", "cut", "--detection-threshold", "0.5"): "belong to --detections",
        ("predict", "m.engram", "cut", "--detections", "md.json"): "--detections names the pictures itself",
        (
            "predict",
            "m.engram",
            "--detections",
            "md.json",
            "--out",
            "no/o.json",
        ): "cannot write no/o.json: No such file",
        ("learn", "m.engram", "wide", "--detections", "md.json", "--statistics"): "--detections goes with neither",
    }
    for command, why in refused.items():
        done = engram(*command)
        assert done.code == 2, command
        assert why in done.err.splitlines()[-1]


# --- learn and evaluate ----------------------------------------------------------------------------------------------


def test_learning_crops_is_learning_pictures_cut_out(engram, hidden):
    """The surest box of each picture."""
    done = engram("learn", "m.engram", "wide", "--detections", "md.json", *NEW, "--json")
    assert done.code == 0, done.err
    assert {one["name"]: one["pictures"] for one in done.json["learned"]} == {"green": 6, "red": 6}
    engram("learn", "c.engram", "cut", *NEW)
    assert engram("predict", "m.engram", "cut", "--json").out == engram("predict", "c.engram", "cut", "--json").out
    again = engram("learn", "m.engram", "wide", "--detections", "md.json")
    assert (again.code, "nothing new to learn" in again.err) == (1, True)
    content = json.loads((hidden / "md.json").read_text())
    content["images"][0]["detections"][1]["conf"] = 0.2
    (hidden / "md.json").write_text(json.dumps(content))
    other = engram("learn", "m.engram", "wide", "--detections", "md.json")
    assert "known, but with other pictures than were learned (--more takes them): green\n" in other.err
    right = engram("evaluate", "m.engram", "wide", "--detections", "md.json", "--json").json
    assert (right["pictures"], right["confusion"][0]["class"]) == (12, "green")


def test_learning_crops_by_a_table(engram, hidden):
    rows = [f"wide/{colour}/0-{i}.png,{colour} bird\n" for colour in ("red", "green") for i in range(6)]
    (hidden / "labels.csv").write_text("".join(rows))
    done = engram("learn", "m.engram", "labels.csv", "--detections", "md.json", *NEW)
    assert done.code == 0, done.err
    assert engram("predict", "m.engram", "cut/red", "--json").json[0]["label"] == "red bird"
    (hidden / "sub").mkdir()
    (hidden / "md.json").rename(hidden / "sub" / "md.json")
    judge = ("evaluate", "m.engram", "labels.csv", "--detections", "sub/md.json")
    assert engram(*judge, "--images", ".", "--json").json["accuracy"] == 1.0
    assert "the detections have no box in any of these 12 pictures; --images says which" in engram(*judge).err


def test_pictures_without_a_box_are_left_out_by_name(engram, hidden):
    content = json.loads((hidden / "md.json").read_text())
    content["images"][0]["detections"] = []
    content["images"][1]["detections"] = [animal(BOX, 0.1)]
    del content["images"][2]
    (hidden / "md.json").write_text(json.dumps(content))
    done = engram("learn", "m.engram", "wide", "--detections", "md.json", *NEW, "--json")
    assert {one["name"]: one["pictures"] for one in done.json["learned"]} == {"green": 3, "red": 6}
    reason = "the detections have no box in it that reaches 0.2"
    assert done.json["left_out"] == [{"path": f"wide/green/0-{i}.png", "reason": reason} for i in range(3)]
    assert f"left out wide/green/0-1.png: {reason}\n" in done.err
    assert (
        f"left out wide/green/0-1.png: {reason}\n"
        in engram("evaluate", "m.engram", "wide", "--detections", "md.json").err
    )


def test_from_python_as_the_documentation_has_it(engram, hidden):
    engram("learn", "m.engram", "cut", *NEW)
    found = read_detections(hidden / "md.json", threshold=0.5)
    model = ModelStore(hidden / "m.engram", device="cpu").read()
    answers = list(predict_images(model, crops(found)))
    assert [one.label for one in answers] == 6 * ["green"] + 6 * ["red"]
    cropped, left_out = crop_classes(scan_classes(hidden / "wide").classes, found)
    assert ({name: len(each) for name, each in cropped.items()}, left_out) == ({"green": 6, "red": 6}, [])
