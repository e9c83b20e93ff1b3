"""Every method of the registry, used through the estimator."""

import warnings

import numpy as np
import pytest
from every import quick, slimmed
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from engram import IncrementalClassifier
from engram.io import model_file
from engram.methods import METHODS
from engram.testing import assert_close, blobs, reachable_arrays

# scikit-learn's checks train each method some sixty times, on one easy task each; what a GAN dreams does not matter.
QUICKER = {"batch_size": 64, "base_epochs": 10, "gan_base_epochs": 1, "gan_increment_epochs": 1}

NO_ARGUMENT = "passes classes= to partial_fit, which has no such argument: new classes are accepted as they appear"
ROUNDING = "scores are float32, and how they are rounded depends on how many samples are scored together"
# What these checks are about is shown below and in test_estimator.py: without `classes=`, and up to rounding.
EXPECTED_FAILURES = {
    "check_n_features_in_after_fitting": NO_ARGUMENT,
    "check_estimators_partial_fit_n_features": NO_ARGUMENT,
    "check_methods_subset_invariance": ROUNDING,
    "check_methods_sample_order_invariance": ROUNDING,
}

every_method = pytest.mark.parametrize("name", METHODS)


def classifier(name: str) -> IncrementalClassifier:
    settings = quick(name)
    config = settings | {setting: value for setting, value in QUICKER.items() if setting in settings}
    return IncrementalClassifier(name, config=config, temperature=1.0, random_state=0, device="cpu")


def taught(name: str) -> IncrementalClassifier:
    return classifier(name).fit(*blobs(["a", "b"])).partial_fit(*blobs(["c"]))


@every_method
def test_scikit_learns_checks(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the checks, about each other
        check_estimator(classifier(name), expected_failed_checks=EXPECTED_FAILURES)


@every_method
def test_a_sample_scores_alike_alone_in_another_order_and_among_others(name):
    clf = classifier(name).fit(*blobs(["a", "b", "c"]))
    X, _ = blobs(["a", "b", "c"], n=7, seed=4)
    for scores in (clf.decision_function, clf.predict_proba):
        together = scores(X)
        assert_close(np.concatenate([scores(x[None]) for x in X]), together, "scores of samples alone")
        assert_close(scores(X[::-1]), together[::-1], "scores in another order")
    assert clf.predict(X[::-1]).tolist() == clf.predict(X)[::-1].tolist()


@every_method
def test_answers_agree_with_each_other(name):
    clf = taught(name)
    X, _ = blobs(["a", "b", "c"], seed=4)
    assert clf.classes_.tolist() == ["a", "b", "c"]
    proba, (labels, scores, probabilities) = clf.predict_proba(X), clf.nearest(X, 2)
    assert proba.shape == (len(X), 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert labels.shape == scores.shape == probabilities.shape == (len(X), 2)
    np.testing.assert_allclose(probabilities, -np.sort(-proba, axis=1)[:, :2], rtol=1e-3, atol=1e-12)
    assert (scores[:, 0] >= scores[:, 1]).all()
    assert clf.predict(X).tolist() == labels[:, 0].tolist() == clf.classes_[proba.argmax(axis=1)].tolist()
    assert_close(scores[:, 0], clf.decision_function(X).max(axis=1), "best scores")
    if not clf.config_.get("outlier_exclusion"):  # whose counts leave outliers out
        assert clf.counts_ is None or clf.counts_.tolist() == [24, 24, 24]
    assert clf.class_vectors_ is None or len(clf.class_vectors_) == 3


@every_method
def test_saving_and_going_on_is_going_on(name, tmp_path):
    clf = taught(name)
    clf.notes_["of"] = "the night"
    clf.save(tmp_path / "model")
    loaded = IncrementalClassifier.load(tmp_path / "model", device="cpu")
    assert (loaded.method_, loaded.config_, loaded.notes_) == (name, clf.config_, {"of": "the night"})
    assert loaded.memory() == clf.memory()
    X, _ = blobs(["a", "b", "c"], seed=4)
    assert np.array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    for each, path in ((clf, "one"), (loaded, "two")):
        each.partial_fit(*blobs(["d"])).save(tmp_path / path)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@every_method
def test_a_slim_file_of_version_0_1_answers_and_does_not_learn(name, tmp_path):
    clf = taught(name)
    clf.save(tmp_path / "model")
    tensors, header = slimmed(clf.learner_).tensors, model_file.read(tmp_path / "model")[1]
    header = {key: value for key, value in header.items() if key != "tensors"}
    model_file.write(tmp_path / "model", tensors, header | {"learner": slimmed(clf.learner_).meta})
    slim = IncrementalClassifier.load(tmp_path / "model", device="cpu")
    X, _ = blobs(["a", "b", "c"], seed=4)
    assert np.array_equal(slim.decision_function(X), clf.decision_function(X))
    assert (clf.can_learn_, slim.can_learn_) == (True, False)
    with pytest.raises(ValueError, match="saved slim"):
        slim.partial_fit(*blobs(["d"]))
    slim.rename("a", "ant").forget("b").save(tmp_path / "again")  # once slim, always slim
    assert not IncrementalClassifier.load(tmp_path / "again", device="cpu").can_learn_
    assert set(slim.predict(X)) <= {"ant", "c"}


@every_method
def test_forget_rename_and_memory(name):
    clf = taught(name)
    clf.rename("a", "ant").forget("b")
    assert clf.classes_.tolist() == ["ant", "c"]
    assert clf.memory().total == sum(values.nbytes for values in reachable_arrays(clf))
    X, _ = blobs(["a", "b", "c"])
    assert set(clf.predict(X)) <= {"ant", "c"}
    with pytest.raises(ValueError, match="'b'"):
        clf.forget("b")
    assert clf.partial_fit(*blobs(["b"])).classes_.tolist() == ["ant", "b", "c"]
    for label in ("ant", "b", "c"):
        clf.forget(label)
    with pytest.raises(ValueError, match="every class has been forgotten"):
        clf.predict(X)
    assert clf.partial_fit(*blobs(["a"])).predict(X[:1]) == ["a"]


@every_method
def test_pipelines_and_clones(name):
    X, y = blobs(["a", "b", "c"])
    pipeline = make_pipeline(StandardScaler(), classifier(name)).fit(X, y)
    assert pipeline.score(X, y) > 0.8
    again = clone(pipeline)
    assert not hasattr(again[-1], "classes_")
    assert np.array_equal(again.fit(X, y).predict_proba(X), pipeline.predict_proba(X))


@every_method
def test_bad_input_is_refused_and_changes_nothing(name, tmp_path):
    clf = taught(name)
    clf.save(tmp_path / "before")
    X, y = blobs(["d"])
    for bad in ((X[:, :5], y), (np.full_like(X, np.nan), y), (X, y[:-1]), (X, [3] * 24), (X[:0], y[:0])):
        with pytest.raises(ValueError, match=r"feature|NaN|inconsistent|labels mix|0 sample"):
            clf.partial_fit(*bad)
    with pytest.raises(ValueError, match=f"{name} has no setting 'colour'"):
        clf.set_params(config={"colour": "red"}).fit(X, y)
    clf.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
