"""Methods that other packages register, and models of methods that are not here."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from toys import paint

from engram import IncrementalClassifier
from engram.errors import ModelFileError
from engram.io import model_file
from engram.methods import METHODS, MissingMethodError, find_method
from engram.methods.older import OLDER
from engram.testing import blobs

LENT = """
from dataclasses import replace
from engram.methods.ncm import NCM

class Lent(NCM):
    method = "lent"
    about = replace(NCM.about, title="Lent", per_class="one borrowed mean")

    @classmethod
    def leaves_out(cls):
        return True

    @classmethod
    def tells_unknown(cls):
        return True

    @classmethod
    def trains(cls):
        return True
"""


@pytest.fixture
def lent(tmp_path, monkeypatch):
    """A package that registers a method; it can be taken away."""
    package = tmp_path / "package"
    (package / "lent-1.0.dist-info").mkdir(parents=True)
    (package / "lent.py").write_text(LENT)
    (package / "lent-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: lent\nVersion: 1.0\n")
    entries = (
        "[engram.methods]\nlent = lent:Lent\nbroken = not_there:Broken\nncm = not_there:NCM\nmas = not_there:MAS\n"
    )
    (package / "lent-1.0.dist-info" / "entry_points.txt").write_text(entries)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(package)
        yield patch


def saved(path: Path) -> Path:
    X, y = blobs(["ant", "bee"])
    IncrementalClassifier("lent", device="cpu").fit(X, y).save(path)
    return path


def test_a_registered_method_is_found_by_name(lent, tmp_path):
    assert "lent" in METHODS
    assert find_method("lent").about.title == "Lent"
    X, y = blobs(["ant", "bee"])
    assert IncrementalClassifier.load(saved(tmp_path / "m.engram"), device="cpu").score(X, y) == 1


@pytest.mark.parametrize("name", ["ncm", "mas"])
def test_a_name_of_engrams_own_is_engrams(lent, name):
    assert find_method(name).__module__.startswith("engram.")


def test_what_cannot_be_imported_is_said_when_it_is_asked_for(lent, engram):
    with pytest.raises(MissingMethodError, match="not_there"):
        find_method("broken")
    listed = engram("methods")
    assert listed.code == 0
    assert "broken" not in listed.out
    assert "not_there" in listed.err


def test_a_model_whose_method_is_not_here_is_looked_at_and_its_changes_taken_back(lent, engram, tmp_path):
    paint(tmp_path / "pictures", "red", "green")
    learn = ("learn", "m.engram", "pictures", "--method", "lent", "--backbone", "averages")
    assert engram(*learn).code == 0
    paint(tmp_path / "pictures", "blue")
    assert engram("learn", "m.engram", "pictures").code == 0
    here = engram("info", "m.engram", "--json").json
    lent.undo()
    assert "lent" not in METHODS

    away = engram("info", "m.engram", "--json")
    assert away.code == 0, away.err
    assert away.json == here
    assert [(one["name"], one["pictures"]) for one in here["classes"]] == [("green", 8), ("red", 8), ("blue", 8)]
    assert "one borrowed mean" in engram("info", "m.engram").out
    assert engram("doctor", "m.engram").code == 0
    assert "learned blue" in engram("history", "m.engram").out
    assert engram("undo", "m.engram", "--yes").code == 0
    assert [one["name"] for one in engram("info", "m.engram", "--json").json["classes"]] == ["green", "red"]
    assert engram("redo", "m.engram").code == 0


@pytest.mark.parametrize(
    "command",
    [
        "predict m.engram pictures",
        "learn m.engram pictures",
        "forget m.engram red --yes",
        "merge n.engram m.engram twin.engram",
    ],
)
def test_what_needs_the_method_names_it_in_one_line_and_changes_nothing(lent, engram, tmp_path, command):
    paint(tmp_path / "pictures", "red", "green")
    assert engram("learn", "m.engram", "pictures", "--method", "lent", "--backbone", "averages").code == 0
    before = shutil.copy(tmp_path / "m.engram", tmp_path / "twin.engram").read_bytes()
    paint(tmp_path / "pictures", "blue")
    lent.undo()
    refused = engram(*command.split())
    assert refused.code == 2
    assert "lent" in refused.err.splitlines()[-1]
    assert (tmp_path / "m.engram").read_bytes() == before


def test_without_research_the_product_works_and_research_models_are_looked_at(monkeypatch, tmp_path):
    X, y = blobs(["ant", "bee"])
    quick = {"layers": (4, 3), "base_epochs": 1}
    for method, config in (("whitened", {}), ("whitened", {"encoder": quick}), ("mas", quick)):
        clf = IncrementalClassifier(method, config=config, device="cpu").fit(X, y)
        clf.save(tmp_path / f"{method}-{len(config)}.engram")
    monkeypatch.setattr("engram.plugins.registered", lambda group: [])
    assert IncrementalClassifier.load(tmp_path / "whitened-0.engram", device="cpu").score(X, y) == 1
    for name in ("whitened-1", "mas-2"):
        clf = IncrementalClassifier.load(tmp_path / f"{name}.engram", device="cpu")
        assert clf.counts_.tolist() == [24, 24]
        with pytest.raises(MissingMethodError, match="no method is called"):
            clf.predict(X)


def test_the_file_says_what_the_method_says_of_itself(lent, tmp_path):
    path = saved(tmp_path / "m.engram")
    here = IncrementalClassifier.load(path, device="cpu").about_
    lent.undo()
    assert IncrementalClassifier.load(path, device="cpu").about_ == here


def test_a_model_that_is_only_looked_at_is_not_saved(lent, tmp_path):
    path = saved(tmp_path / "m.engram")
    lent.undo()
    with pytest.raises(ValueError, match="lent"):
        IncrementalClassifier.load(path, device="cpu").save(tmp_path / "other.engram")


WHOLE = {"title": "x", "paper": "y", "per_class": "z"}


@pytest.mark.parametrize(
    "about", [{**WHOLE, "per_class": 3}, {"title": "x"}, "text", [1], {**WHOLE, "paper": "\x1b[2J"}]
)
def test_a_description_that_is_none_is_refused(lent, tmp_path, about):
    tensors, header = model_file.read(saved(tmp_path / "m.engram"))
    model_file.write(tmp_path / "m.engram", tensors, {**header, "about": about})
    lent.undo()
    with pytest.raises(ModelFileError):
        IncrementalClassifier.load(tmp_path / "m.engram", device="cpu")


def test_files_of_before_have_what_their_methods_say_in_a_table():
    research = {name: kind for name, kind in METHODS.items() if not kind.__module__.startswith("engram.methods.")}
    told = {name: (one.about.title, one.about.per_class, one.about.keeps_samples) for name, one in research.items()}
    assert {name: (about.title, about.per_class, about.keeps_samples) for name, about in OLDER.items()} == told


def test_a_file_of_before_is_looked_at_without_its_method(monkeypatch):
    older = Path(__file__).parents[1] / "files" / "older" / "mas-32-bit.engram"
    assert "about" not in model_file.read(older)[1]
    monkeypatch.setattr("engram.plugins.registered", lambda group: [])
    clf = IncrementalClassifier.load(older, device="cpu")
    assert (clf.about_["title"], clf.about_["per_class"]) == ("Autoencoder with class means", "one mean code")
    assert clf.about_["trains"]
    assert len(clf.classes_) > 1
    with pytest.raises(MissingMethodError):
        clf.predict(np.ones((1, clf.n_features_in_)))
