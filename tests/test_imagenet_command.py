"""`engram new --imagenet`, and what the other commands make of such a model."""

import csv
import json

import numpy as np
import pytest
from toys import averages, paint

from engram import IncrementalClassifier
from engram.encoders import registry
from engram.encoders.head import imagenet_names, read_head
from engram.encoders.recorded import RecordedEncoder
from engram.learners.imagenet import BesideImageNet
from engram.model import Model
from engram.store import ModelStore
from engram.store.export import export_model


def test_there_are_a_thousand_names_and_the_head_is_the_networks_own():
    names, head = imagenet_names(), read_head("efficientnet_lite0:joined")
    assert (len(names), len(set(names))) == (1000, 1000)
    assert (names[0], names[15], names[999]) == ("tench", "robin", "toilet tissue")
    pictures = np.random.default_rng(0).integers(0, 256, (2, 224, 224, 3), dtype=np.uint8)
    pooled = registry.create("efficientnet_lite0:joined").encode(pictures)[:, -1280:]
    logits = registry.create("efficientnet_lite0:logits").encode(pictures)
    np.testing.assert_allclose(pooled @ head.weight.T + head.bias, logits, atol=1e-4)


@pytest.mark.parametrize("name", ["resnet50", "efficientnet_lite0:logits", "averages"])
def test_a_backbone_without_those_classes_is_refused(engram, name, tmp_path):
    told = engram("new", "m.engram", "--imagenet", "--backbone", name)
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert name in told.err
    assert not (tmp_path / "m.engram").exists()


def test_an_encoder_without_a_name_has_no_classes():
    with pytest.raises(ValueError, match="by name"):
        IncrementalClassifier.with_imagenet(averages())


def test_new_learn_and_look(engram, tmp_path):
    assert engram("new", "m.engram").code == 2
    made = engram("new", "m.engram", "--imagenet", "--json")
    assert (made.code, made.json["classes"]) == (0, 1000)
    assert "m.engram exists; choose another name" in engram("new", "m.engram", "--imagenet").err
    pictures = paint(tmp_path / "pictures", "red", "green", n=6)
    (pictures / "green").rename(pictures / "tench")  # a name that ImageNet has
    first = engram("predict", "m.engram", "pictures/red/0-0.png", "--json").json[0]
    assert first["label"] in imagenet_names()

    assert engram("learn", "m.engram", "pictures").code == 0
    about = engram("info", "m.engram", "--json").json
    assert [(one["name"], one["pictures"]) for one in about["classes"]] == [("red", 6), ("tench", 6)]
    assert about["built_in"]["classes"] == 999
    assert "Apache-2.0" in about["built_in"]["licence"]
    shown = engram("info", "m.engram").out
    assert "m.engram: 2 classes" in shown
    assert "built in: 999 classes of ImageNet; weights: Google's EfficientNet-Lite, Apache-2.0" in shown

    answers = engram("predict", "m.engram", "pictures", "--json").json
    assert [answer["label"] for answer in answers] == ["red"] * 6 + ["tench"] * 6
    few = engram("predict", "m.engram", "pictures/red/0-0.png", "--among", "robin,kite,dodo", "--csv")
    assert "never an answer: dodo" in few.err
    assert {row["label"] for row in csv.DictReader(few.out.splitlines())} <= {"robin", "kite"}
    assert "nothing is told to be unknown" in engram("predict", "m.engram", "pictures", "--unknown", "auto").err
    (tmp_path / "fish.csv").write_text("tench,fish\nred,colour\n")
    named = engram("predict", "m.engram", "pictures/tench/0-0.png", "--taxonomy", "fish.csv", "--json").json[0]
    assert named["label"] == "tench"
    paint(tmp_path / "asked", "red", "blue", n=2)
    (tmp_path / "asked" / "blue").rename(tmp_path / "asked" / first["label"])
    found = engram("evaluate", "m.engram", "asked", "--json").json
    assert found["unknown_to_the_model"] == []
    assert {one["name"] for one in found["classes"]} == {"red", first["label"]}

    card = engram("card", "m.engram").out
    assert "says which of 1001 classes" in card
    assert "And 999 classes of ImageNet, which came with the backbone" in card
    assert "BSD-3-Clause" in card
    assert engram("rename", "m.engram", "robin", "red").code == 2
    assert engram("rename", "m.engram", "robin", "European robin").code == 0
    assert engram("forget", "m.engram", "kite", "--yes").code == 0
    assert engram("forget", "m.engram", "kite", "--yes").code == 2
    assert engram("undo", "m.engram", "--yes").code == 0
    model = ModelStore(tmp_path / "m.engram", device="cpu").read()
    assert (len(model.built_in), "kite" in model.built_in, "European robin" in model.built_in) == (999, True, True)
    assert "cannot be merged" in engram("merge", "n.engram", "m.engram", _other(engram, tmp_path)).err


def test_boxes_of_a_detector_are_named_by_classes_that_nobody_taught(engram, tmp_path):
    assert engram("new", "m.engram", "--imagenet").code == 0
    paint(tmp_path, "red", n=1)
    box = {"category": "1", "conf": 0.9, "bbox": [0.0, 0.0, 1.0, 1.0]}
    image = {"file": "red/0-0.png", "detections": [box]}
    content = {"info": {"format_version": "1.3"}, "detection_categories": {"1": "animal"}, "images": [image]}
    (tmp_path / "md.json").write_text(json.dumps(content))
    told = engram("predict", "m.engram", "--detections", "md.json", "--out", "named.json")
    assert told.code == 0, told.err
    named = json.loads((tmp_path / "named.json").read_text())
    key, _ = named["images"][0]["detections"][0]["classifications"][0]
    answer = engram("predict", "m.engram", "red/0-0.png", "--json").json[0]
    assert named["classification_categories"][key] == answer["label"]


def _other(engram, folder) -> str:
    """A model without a head, on the same backbone."""
    assert engram("learn", "plain.engram", "pictures").code == 0
    return "plain.engram"


def test_it_can_be_exported(tmp_path):
    """The file is compared with the model before it is written."""
    rng = np.random.default_rng(1)
    weight, bias = rng.normal(size=(3, 6)).astype(np.float32), np.zeros(3, np.float32)
    learner = BesideImageNet.new().adopt(["lion", "tiger", "bear"], weight, bias, 8)
    model = Model(learner, RecordedEncoder.of(averages()))
    assert export_model(model, tmp_path / "m.onnx")["labels"] == ["lion", "tiger", "bear"]
    taught, _ = model.learn(rng.normal(size=(12, 8)), ["ant", "bee", "tiger"] * 4)
    assert export_model(taught, tmp_path / "m.onnx")["labels"] == ["ant", "bee", "tiger", "lion", "bear"]
