"""Nothing that is not finite is ever learned, saved, loaded or answered."""

from dataclasses import replace

import numpy as np
import pytest

from engram.errors import DamagedModelError, ModelFileError
from engram.files import model_file
from engram.history import Notes
from engram.learners.ncm import NCM
from engram.model import Model
from engram.testing import assert_same_state, blobs


def taught(method: str = "ncm") -> Model:
    return Model.new(method).learn(*blobs("ab"))[0]


@pytest.mark.parametrize("method", ["whitened", "ncm", "slda", "1nn"])
@pytest.mark.parametrize("value", [1e25, -1e25, np.inf, np.nan])
def test_one_value_that_is_far_too_large_is_refused_and_changes_nothing(method, value):
    model, (x, y) = taught(method), blobs("c")
    before = model.learner.state()
    x[3, 5] = value
    for use in (lambda: model.learn(x, y), lambda: model.answer(x)):
        with pytest.raises(ValueError, match="scale the features"):
            use()
    assert_same_state(before, model.learner.state())


def test_features_may_be_as_large_as_is_said():
    model = Model.new("whitened").learn(blobs("ab")[0] * 1e11, blobs("ab")[1])[0]
    assert np.isfinite(model.answer(blobs("ab")[0] * 1e11).probabilities).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_model_that_is_not_finite_is_neither_written_nor_read(bad, tmp_path, monkeypatch):
    path, model = tmp_path / "model", taught()
    model.save(path)
    whole, means = path.read_bytes(), model.learner.sums.means.copy()
    means[1, 2] = bad
    spoilt = replace(model, learner=replace(model.learner, sums=replace(model.learner.sums, means=means)))
    with pytest.raises(ModelFileError, match=r"classes\.means"):
        spoilt.save(path)
    assert path.read_bytes() == whole
    with monkeypatch.context() as patch:  # as versions before this one wrote it
        patch.setattr(model_file, "find_not_finite", lambda arrays: None)
        spoilt.save(path)
    with pytest.raises(DamagedModelError, match=r"classes\.means"):
        Model.load(path)


def test_a_header_that_is_not_finite_is_not_written(tmp_path):
    with pytest.raises(ModelFileError, match="JSON"):
        replace(taught(), notes=Notes(refuse=float("nan"))).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


class AnswersNothing(NCM):
    """Scores that are not finite, as a network can have them though each of its weights is."""

    def score(self, x):
        found = super().score(x)
        return found._replace(values=found.values * np.float32("nan"))


def test_an_answer_that_is_not_finite_is_none():
    with pytest.raises(ValueError, match="not finite"):
        Model(AnswersNothing.new().learn(*blobs("ab"))).answer(blobs("a")[0])


def test_rows_of_zeros_are_fine():
    model = Model.new("whitened").learn(np.zeros((4, 3), np.float32), list("aabb"))[0]
    assert np.isfinite(model.answer(np.zeros((4, 3)), 2).probabilities).all()
