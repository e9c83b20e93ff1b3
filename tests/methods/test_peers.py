"""Every method passes every check, and is what its papers say in the ways that can be proved in a small example."""

import functools

import numpy as np
import pytest
import torch
from every import make
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from engram.learner import State
from engram.methods import METHODS
from engram.testing import CHECKS, blobs, teach


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHODS)
def test_check_learner(name, check):
    check(lambda: make(name))


@pytest.mark.gpu
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", METHODS)
def test_check_learner_on_a_gpu(name, check):
    """The training steps are captured there, which not every operation allows."""
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)  # else sums are added up in any order, and bits differ
    try:
        check(lambda: make(name, device="cuda"))
    finally:
        torch.use_deterministic_algorithms(before)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("labels", [["a"], ["a", "a"], ["a", 3], ["a", "b", "c"]], ids=str)
def test_a_state_whose_labels_do_not_fit_is_refused(name, labels):
    state = teach(functools.partial(make, name), ["a", "b"]).state()
    with pytest.raises(ValueError, match=r"fit together|labels mix|samples.targets holds 1"):
        METHODS[name].from_state(State(state.tensors, {**state.meta, "labels": labels}), "cpu")


@pytest.mark.parametrize("name", METHODS)
def test_every_method_says_what_it_is(name):
    about = METHODS[name].about
    assert about.title
    assert "20" in about.paper or "19" in about.paper
    assert about.per_class
    assert about.keeps_samples <= bool(about.given)  # who keeps samples is given more than the others


# --- statistics only ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ncm", "slda", "ranpac", "fecam"])
def test_data_in_pieces_gives_what_the_same_data_at_once_gives(name):
    """Also where a known class comes again."""
    X, y = blobs(["a", "b", "c"], seed=5)
    streamed, at_once = make(name), make(name)
    at_once.learn(X, y)
    if name == "ranpac":  # the ridge is the base session's, so let the base session be the same
        streamed.tensors = {**at_once.tensors, **{n: torch.zeros_like(t) for n, t in at_once.tensors.items() if n in ("classes.sums", "consolidation.gram")}}  # fmt: skip # noqa: E501
        streamed._labels, streamed.n_features, streamed.tasks_learned = at_once.labels, 8, 1
    for part in np.array_split(np.argsort(np.arange(len(X)) % 24, kind="stable"), 4):
        streamed.learn(X[part], y[part])
    for key, tensor in at_once.tensors.items():
        torch.testing.assert_close(streamed.tensors[key], tensor, rtol=2e-3, atol=1e-3, msg=key)


def test_the_streamed_covariance_is_the_batch_one():
    """One sample at a time, in any order, against numpy on everything at once."""
    X, y = blobs(["a", "b", "c"], n=15, seed=5)
    slda = make("slda", shrinkage=0.01)
    for i in np.random.default_rng(0).permutation(len(X)):
        slda.learn(X[i : i + 1], y[i : i + 1])
    centred = X - np.stack([X[y == label].mean(axis=0) for label in y])
    np.testing.assert_allclose(slda.tensors["consolidation.scatter"].numpy(), centred.T @ centred, rtol=1e-4, atol=1e-3)
    covariance = centred.T @ centred / len(X)
    shrunk = 0.99 * covariance + 0.01 * np.trace(covariance) / 8 * np.eye(8)
    means = np.stack([X[y == label].mean(axis=0) for label in slda.labels])
    scores = X @ np.linalg.solve(shrunk, means.T) - 0.5 * (means * np.linalg.solve(shrunk, means.T).T).sum(axis=1)
    np.testing.assert_allclose(slda.scores(X), scores, rtol=1e-3, atol=1e-2)


def test_slda_answers_as_scikit_learns_lda():
    X, y = blobs(["a", "b", "c", "d"], seed=5)
    X = X + np.random.default_rng(1).normal(size=X.shape) * 4  # close enough together to be mistaken
    slda = make("slda", shrinkage=1e-6)
    slda.learn(X, y)
    lda = LinearDiscriminantAnalysis(solver="lsqr", priors=[0.25] * 4).fit(X, y)
    assert (lda.predict(X) != y).any()
    assert slda.predict(X).tolist() == lda.predict(X).tolist()


def test_one_nn_answers_as_scikit_learns():
    X, y = blobs(["a", "b", "c"], seed=5)
    X = X + np.random.default_rng(1).normal(size=X.shape) * 4 + 100  # far from the origin: differences are small
    learner = make("1nn")
    learner.learn(X[::2], y[::2])
    learner.learn(X[1::4], y[1::4])
    shown = np.concatenate([np.arange(0, 72, 2), np.arange(1, 72, 4)])
    theirs = KNeighborsClassifier(1).fit(X[shown], y[shown])
    assert (theirs.predict(X) != y).any()
    assert learner.predict(X).tolist() == theirs.predict(X).tolist()
    distances, _ = theirs.kneighbors(X)
    np.testing.assert_allclose(-learner.scores(X).max(axis=1), distances[:, 0], atol=0.05)
