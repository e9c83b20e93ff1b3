"""Files written by version 0.1.0, before the paper's learner was a table of tensors, open, answer and learn on.

What each answered when it was written is in older/expected.json, scores as the bytes of float32. Another processor's
BLAS rounds otherwise, hence the tolerance.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from toys import paint

from engram.files import model_file
from engram.images.stream import encode_all
from engram.model import Model

OLDER = Path(__file__).parent / "older"
EXPECTED = json.loads((OLDER / "expected.json").read_text())


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    return pytest.importorskip("sklearn.datasets").load_digits(return_X_y=True)


def check(model: Model, X: np.ndarray, written: str, tolerance: float = 1e-5) -> None:
    scores = model.learner.score(model.checked(X)).values
    expected = np.frombuffer(bytes.fromhex(written), dtype=np.float32).reshape(scores.shape)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=tolerance)


def answers(model: Model, X: np.ndarray) -> list[str | int]:
    return [model.learner.labels[row] for row in model.answer(X).rows[:, 0]]


@pytest.mark.parametrize("name", ["mas-32-bit", "si-lof-8-bit"])
def test_a_model_of_digits(name, digits):
    expected, model, shown = EXPECTED[name], Model.load(OLDER / f"{name}.engram"), digits[0][::60]
    assert model.labels == expected["classes"]  # in the order they were learned, as in the file
    assert answers(model, shown) == expected["answers"]
    check(model, shown, expected["scores"])


@pytest.mark.parametrize(("name", "nine"), [("mas-32-bit", 9), ("si-lof-8-bit", "nine")])
def test_a_model_of_digits_learns_on(trained, name, nine, digits):
    X, y = digits
    model, _ = Model.load(OLDER / f"{name}.engram").learn(X[y == 9], [nine] * sum(y == 9))
    assert model.labels == [*EXPECTED[name]["classes"], nine]
    check(model, X[::60], EXPECTED[name]["scores_after_nine"])


def test_a_slim_file_of_then_is_one_without_decoder(tmp_path, digits):
    arrays, header = model_file.read(OLDER / "mas-32-bit.engram")
    assert "slim" not in header["learner"]
    kept = {n: array for n, array in arrays.items() if not n.startswith(("network.decoder.", "consolidation."))}
    model_file.write(tmp_path / "slim", kept, header)
    slim = Model.load(tmp_path / "slim")
    assert not slim.learner.can_learn
    check(slim, digits[0][::60], EXPECTED["mas-32-bit"]["scores"])


def test_a_model_of_images(tmp_path):
    expected = EXPECTED["pictures"]
    folder = paint(tmp_path / "images", "red", "green", "blue", "yellow", n=3, seed=5)
    images = sorted(folder.rglob("*.png"))
    assert [str(image.relative_to(folder)) for image in images] == expected["images"]
    model = Model.load(OLDER / "pictures.engram")
    assert model.labels == expected["classes"]
    features = encode_all(images, model.open_encoder()).features
    assert answers(model, features) == expected["answers"]
    check(model, features, expected["scores"])
    assert [event.what for event in model.notes.history] == expected["history"]
