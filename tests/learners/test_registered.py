"""Methods that other packages register, and models of methods that are not here."""

import shutil
from pathlib import Path

import pytest
from toys import paint

from engram import Model
from engram.files import model_file
from engram.learners import registry
from engram.learners.older import OLDER
from engram.learners.trying import blobs

LENT = """
from dataclasses import replace
from engram.learners.ncm import NCM

class Lent(NCM):
    method = "lent"
    about = replace(NCM.about, title="Lent", per_class="one borrowed mean")
"""
ENTRIES = "[engram.methods]\nlent = lent:Lent\nbroken = not_there:Broken\nncm = not_there:NCM\n"


@pytest.fixture
def lent(tmp_path, monkeypatch):
    """A package that registers a method; it can be taken away."""
    package = tmp_path / "package"
    (package / "lent-1.0.dist-info").mkdir(parents=True)
    (package / "lent.py").write_text(LENT)
    (package / "lent-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: lent\nVersion: 1.0\n")
    (package / "lent-1.0.dist-info" / "entry_points.txt").write_text(ENTRIES)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(package)
        yield patch


def saved(path: Path, method: str = "lent") -> Path:
    model, _ = Model.new(method).learn(*blobs(["ant", "bee"]))
    model.save(path)
    return path


def test_a_registered_method_is_found_by_name(lent, tmp_path):
    assert "lent" in registry.names()
    X, y = blobs(["ant", "bee"])
    model = Model.load(saved(tmp_path / "m.engram"))
    assert [model.labels[row] for row in model.answer(X).rows[:, 0]] == list(y)


def test_a_name_of_engrams_own_is_engrams(lent):
    assert registry.find("ncm").__module__ == "engram.learners.ncm"


def test_what_cannot_be_imported_is_said_when_it_is_asked_for(lent, engram):
    with pytest.raises(registry.MissingMethodError):
        registry.find("broken")
    listed = engram("methods")
    assert listed.code == 0
    assert "broken" not in listed.out
    assert "broken" in listed.err


def test_a_model_whose_method_is_not_here_is_looked_at_and_its_changes_taken_back(lent, engram, tmp_path):
    paint(tmp_path / "pictures", "red", "green")
    assert engram("learn", "m.engram", "pictures", "--method", "lent", "--backbone", "averages").code == 0
    paint(tmp_path / "pictures", "blue")
    assert engram("learn", "m.engram", "pictures").code == 0
    here = engram("info", "m.engram", "--json").json
    lent.undo()
    assert engram("info", "m.engram", "--json").json == here
    assert "one borrowed mean" in engram("info", "m.engram").out
    assert engram("doctor", "m.engram").code == 0
    assert engram("history", "m.engram").code == 0
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


def test_files_of_before_have_what_their_methods_say_in_a_table():
    pytest.importorskip("torch")
    for name, about in OLDER.items():
        said = registry.find(name).about
        assert (about.title, about.per_class, about.keeps_samples) == (said.title, said.per_class, said.keeps_samples)


@pytest.mark.parametrize("about", [{"title": "x", "paper": "y", "per_class": 3}, {"title": "x"}, "text", [1]])
def test_a_description_that_is_none_is_refused(lent, tmp_path, about):
    arrays, header = model_file.read(saved(tmp_path / "m.engram"))
    model_file.write(tmp_path / "m.engram", arrays, {**header, "about": about})
    lent.undo()
    with pytest.raises(model_file.ModelFileError):
        Model.load(tmp_path / "m.engram")
