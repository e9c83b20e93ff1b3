"""Files written by version 0.1.0, before the paper's learner was a table of tensors, open, answer and learn on.

What each answered when it was written is in older/expected.json, scores as the bytes of float32. On the machine that
wrote them this version gives the same bits; another processor's BLAS rounds otherwise, hence the tolerance.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits
from toys import paint

from engram import IncrementalClassifier
from engram.io import model_file

OLDER = Path(__file__).parent / "older"
EXPECTED = json.loads((OLDER / "expected.json").read_text())


def check(scores: np.ndarray, written: str) -> None:
    expected = np.frombuffer(bytes.fromhex(written), dtype=np.float32).reshape(scores.shape)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("name", "nine"), [("mas-32-bit", 9), ("si-lof-8-bit", "nine")])
def test_a_model_of_digits(name, nine):
    expected = EXPECTED[name]
    X, y = load_digits(return_X_y=True)
    shown = X[::60].astype(np.float32)
    clf = IncrementalClassifier.load(OLDER / f"{name}.engram", device="cpu")
    assert clf.learner_.labels == expected["classes"]  # in the order they were learned, as in the file
    assert clf.classes_.tolist() == sorted(expected["classes"])
    assert clf.predict(shown).tolist() == expected["answers"]
    check(clf.learner_.scores(shown), expected["scores"])

    samples = X[y == 9].astype(np.float32)
    clf.partial_fit(samples, [nine] * len(samples))
    assert clf.learner_.labels == [*expected["classes"], nine]
    check(clf.learner_.scores(shown), expected["scores_after_nine"])


def test_a_slim_file_of_then_is_one_without_decoder(tmp_path):
    tensors, header = model_file.read(OLDER / "mas-32-bit.engram")
    assert "slim" not in header["learner"]
    kept = {n: t for n, t in tensors.items() if not n.startswith(("network.decoder.", "consolidation."))}
    model_file.write(tmp_path / "slim", kept, header)
    slim = IncrementalClassifier.load(tmp_path / "slim", device="cpu")
    assert not slim.can_learn_
    check(slim.learner_.scores(load_digits().data[::60]), EXPECTED["mas-32-bit"]["scores"])


def test_a_model_of_images(tmp_path):
    expected = EXPECTED["pictures"]
    folder = paint(tmp_path / "images", "red", "green", "blue", "yellow", n=3, seed=5)
    images = sorted(folder.rglob("*.png"))
    assert [str(image.relative_to(folder)) for image in images] == expected["images"]
    clf = IncrementalClassifier.load(OLDER / "pictures.engram", device="cpu")
    assert clf.learner_.labels == expected["classes"]
    assert clf.predict(images).tolist() == expected["answers"]
    scores = clf.decision_function(images)
    check(scores[:, np.searchsorted(clf.classes_, expected["classes"])], expected["scores"])
    assert [event["what"] for event in clf.notes_["history"]] == expected["history"]
    assert clf.notes_["unknown"]["similarity"] == expected["unknown"]
