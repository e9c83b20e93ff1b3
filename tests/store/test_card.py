"""Model cards."""

from pathlib import Path

from toys import paint, quick_plan

from engram.datasets.folders import class_folders
from engram.store import ModelStore, learn_classes, model_card

OLDER = Path(__file__).parents[1] / "files" / "older"


def test_a_card_tells_what_the_file_knows(place):
    place.rename("red", "red|_deep_")
    card = model_card(place)
    front, body = card.removeprefix("---\n").split("---\n", 1)
    assert front.splitlines()[:2] == ["library_name: engram", "pipeline_tag: image-classification"]
    assert body.startswith("\n# m\n")
    assert "says which of 3 classes" in body
    assert "| backbone, frozen | `averages@16" in body
    assert "| blue | 20 | 100% |  |\n" in body
    assert "| red\\|\\_deep\\_ | 20 | 100% |  |\n" in body
    assert "100.0% right, as the mean over classes: each picture it was taught was judged" in body
    assert "no feature vector of a picture" in body
    assert "refuses about 5% of pictures" in body
    assert "calibrated for pictures of these classes" in body
    assert "engram predict m.engram PICTURE" in body


def test_a_card_does_not_say_what_is_not_known(tmp_path):
    card = model_card(ModelStore(OLDER / "pictures.engram", device="cpu"))
    assert "| green | 18 |  |  |\n" in card
    assert "Not known: the file does not tell about every class." in card
    assert "an order of preference" in card
    one = ModelStore(tmp_path / "w.engram", device="cpu")
    learn_classes(one, class_folders(paint(tmp_path / "q", "red")), quick_plan())
    assert "no rule that would tell" in model_card(one)


def test_a_card_owns_up_to_stored_samples(tmp_path):
    store = ModelStore(tmp_path / "n.engram", device="cpu")
    learn_classes(store, class_folders(paint(tmp_path / "p", "red", "green")), quick_plan(method="1nn"))
    assert "stores feature vectors of training pictures" in model_card(store)
