"""Nothing that is not finite is ever learned, saved, loaded or answered."""

import copy

import numpy as np
import pytest
import torch

from engram import IncrementalClassifier
from engram.errors import DamagedModelError, ModelFileError
from engram.io import model_file
from engram.learner import is_finite, require_finite
from engram.methods import METHODS
from engram.methods.ncm import NCM
from engram.testing import assert_same_state, blobs

TOO_LARGE = r"X holds -?1e\+25; features may be at most 1e\+12 in size: scale the features"


@pytest.mark.parametrize("name", ["whitened", "ncm", "slda", "mas"])
def test_one_value_that_is_far_too_large_is_named_and_changes_nothing(name):
    learner = (
        METHODS[name](device="cpu")
        if name != "mas"
        else METHODS["mas"](
            METHODS["mas"].configure({"layers": (8,), "base_epochs": 1, "increment_epochs": 1}), device="cpu"
        )
    )
    learner.learn(*blobs(["a", "b"]))
    before = copy.deepcopy(learner.state())
    X, y = blobs(["c"])
    for value in (1e25, -1e25):
        X[3, 5] = value
        for given in (X, torch.from_numpy(X)):
            with pytest.raises(ValueError, match=TOO_LARGE):
                learner.learn(given, y)
        with pytest.raises(ValueError, match=TOO_LARGE):
            learner.predict(X)
    assert_same_state(before, learner.state())


class Overflows(NCM):
    """Makes what it keeps infinite with the third task."""

    method = "overflows"

    def _tensors_after(self, task):
        after = super()._tensors_after(task)
        if self.tasks_learned == 2:
            after["classes.means"] = after["classes.means"].clone()
            after["classes.means"][0, 0] = float("nan")
        return after


def test_what_would_not_be_finite_is_not_kept():
    learner = Overflows(device="cpu")
    learner.learn(*blobs(["a", "b"]))
    learner.learn(*blobs(["c"]))
    before = copy.deepcopy(learner.state())
    with pytest.raises(ValueError, match=r"^classes.means would hold nan, so nothing was learned: scale the features"):
        learner.learn(*blobs(["d"]))
    assert_same_state(before, learner.state())


def test_finite_is_what_isfinite_says():
    big = torch.full((3,), 1.7e308, dtype=torch.float64)  # the sum is infinite, no value is
    assert is_finite(big)
    assert is_finite(torch.tensor([2**62, 2**62, 2**62]))
    assert not is_finite(torch.tensor([float("inf"), float("-inf")]))
    with pytest.raises(ValueError, match="unit would hold inf"):
        require_finite({"fine": big, "unit": torch.tensor(float("inf"))})


class AnswersNothing(NCM):
    """Scores that are not finite, as a network can have them though each of its weights is."""

    method = "nothing"

    def _scores(self, features):
        return super()._scores(features) * float("nan")

    def _nearest(self, features, k):
        best, rows = super()._nearest(features, k)
        return best * float("nan"), rows


def test_an_answer_that_is_not_finite_is_none():
    clf = IncrementalClassifier(AnswersNothing, device="cpu").fit(*blobs(["a", "b"]))
    X, _ = blobs(["a"])
    for ask in (clf.predict, clf.predict_proba, clf.decision_function, clf.nearest, clf.familiarity):
        with pytest.raises(ValueError, match="a score is not finite"):
            ask(X)
    with pytest.raises(ValueError, match="a score is not finite"):
        clf.learner_.log_sum(X, 1.0)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_model_that_is_not_finite_is_neither_written_nor_read(bad, tmp_path, monkeypatch):
    path = tmp_path / "model"
    clf = IncrementalClassifier("ncm", device="cpu").fit(*blobs(["a", "b"]))
    clf.save(path)
    whole = path.read_bytes()
    spoilt = clf.learner_.tensors["classes.means"].clone()
    spoilt[1, 2] = bad
    clf.learner_.tensors = {**clf.learner_.tensors, "classes.means": spoilt}
    with pytest.raises(ModelFileError, match=rf"cannot write .*: classes.means holds {bad}; the file .* is untouched"):
        clf.save(path)
    assert path.read_bytes() == whole
    with monkeypatch.context() as patch:  # as versions before this one wrote it
        patch.setattr(model_file, "find_not_finite", lambda tensors: None)
        clf.save(path)
    with pytest.raises(DamagedModelError, match=f"cannot give answers: classes.means holds {bad}$"):
        IncrementalClassifier.load(path)


def test_a_header_that_is_not_finite_is_not_written(tmp_path):
    clf = IncrementalClassifier("ncm", device="cpu").fit(*blobs(["a", "b"]))
    clf.notes_["loss"] = float("nan")
    with pytest.raises(ModelFileError, match=r"cannot write .*: its header .* JSON holds: .*not JSON compliant"):
        clf.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_row_of_zeros_is_fine():
    X = np.zeros((4, 3), dtype=np.float32)
    assert set(IncrementalClassifier(device="cpu").fit(X, list("aabb")).predict(X)) <= {"a", "b"}
