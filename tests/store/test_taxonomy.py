"""Coarser names where no class is likely enough."""

import numpy as np
import pytest
from toys import paint, quick_plan

from engram.datasets.folders import class_folders
from engram.store import Answer, Namer, learn_classes, predict_images, read_taxonomy
from engram.store.taxonomy import ancestors

BIRDS = {"wren": "songbird", "robin": "songbird", "heron": "wader", "songbird": "bird", "wader": "bird"}


def test_lines_are_as_long_as_one_likes(tmp_path):
    (tmp_path / "t.csv").write_text("class,parent\nwren,songbird,bird\n\nrobin, songbird\nheron,wader\nwader,bird\n")
    assert read_taxonomy(tmp_path / "t.csv") == BIRDS
    (tmp_path / "t.tsv").write_text("wren\tsongbird\tbird\nrobin\tsongbird\nheron\twader\tbird\n")
    assert read_taxonomy(tmp_path / "t.tsv") == BIRDS
    assert ancestors("wren", BIRDS) == ["songbird", "bird"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a,b\na,c\n", "line 2: the parent of a is c here, but was b before"),
        ("a,b,c,a\n", "a is above itself"),
        ("a,a\n", "a is above itself"),
    ],
)
def test_what_is_no_taxonomy(tmp_path, text, reason):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=reason):
        read_taxonomy(tmp_path / "t.csv")
    with pytest.raises(ValueError, match="No such file"):
        read_taxonomy(tmp_path / "none.csv")


def test_the_finest_name_that_is_likely_enough():
    namer = Namer(["wren", "robin", "heron", "car"], BIRDS, sure=0.8)
    cases = {
        (0.9, 0.1, 0.0, 0.0): ("wren", 0.9),
        (0.8, 0.1, 0.1, 0.0): ("wren", 0.8),
        (0.5, 0.4, 0.1, 0.0): ("songbird", 0.9),
        (0.1, 0.05, 0.85, 0.0): ("heron", 0.85),  # though wader is as likely
        (0.3, 0.3, 0.3, 0.1): ("bird", 0.9),
        (0.3, 0.2, 0.2, 0.3): None,
        (0.1, 0.0, 0.0, 0.9): ("car", 0.9),  # which is not in the table
    }
    named = namer(np.array(list(cases)))
    for found, expected in zip(named, cases.values(), strict=True):
        assert (found is None) == (expected is None)
        assert found is None or (found[0], round(found[1], 6)) == expected


def test_it_need_not_be_above_the_best_class():
    namer = Namer(["wren", "robin", "tit", "heron"], BIRDS | {"tit": "songbird"}, sure=0.6)
    assert namer(np.array([[0.22, 0.22, 0.21, 0.35]]))[0][0] == "songbird"
    assert Namer(["wren", "robin", "heron"], BIRDS, sure=0.3)(np.array([[0.32, 0.33, 0.35]]))[0][0] == "heron"


def test_a_class_may_be_above_others():
    namer = Namer(["wren", "songbird"], BIRDS, sure=0.8)
    assert namer(np.array([[0.5, 0.5], [0.9, 0.1]])) == [("songbird", 1.0), ("wren", 0.9)]


def test_impossible_questions():
    with pytest.raises(ValueError, match="a parent for none of these classes"):
        Namer(["car"], BIRDS)
    for sure in (0.0, 1.1, float("nan")):
        with pytest.raises(ValueError, match="above 0 and at most 1"):
            Namer(["wren"], BIRDS, sure)


def test_classes_are_named_in_whatever_order_they_were_learned(place, tmp_path):
    learn_classes(place, class_folders(paint(tmp_path / "p", "black", n=20)), quick_plan())
    assert place.read().names == ["blue", "green", "red", "black"]
    for name in ("blue", "green", "red", "black"):
        pictures = sorted((paint(tmp_path / "q", name, n=2, seed=5) / name).iterdir())
        found = list(predict_images(place.read(), pictures, taxonomy={"red": "warm"}, sure=0.3, device="cpu"))
        assert [one.label for one in found if isinstance(one, Answer)] == [name] * 2
