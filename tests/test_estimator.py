"""IncrementalClassifier as a scikit-learn estimator: what it adds to a `Model`."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from engram import IncrementalClassifier, Model
from engram.errors import ModelFileError
from engram.testing import assert_same_state, blobs

NO_ARGUMENT = "passes classes= to partial_fit, which has no such argument: new classes are accepted as they appear"
ROUNDING = "scores are float32, and how they are rounded depends on how many samples are scored together"
# What these checks are about is shown below, without `classes=`, and in check_learner, up to rounding.
EXPECTED_FAILURES = {
    "check_n_features_in_after_fitting": NO_ARGUMENT,
    "check_estimators_partial_fit_n_features": NO_ARGUMENT,
    "check_methods_subset_invariance": ROUNDING,
    "check_methods_sample_order_invariance": ROUNDING,
}


def taught(*tasks: str, method: str = "whitened", **parameters: object) -> IncrementalClassifier:
    """A classifier that has learned these classes, task by task."""
    clf = IncrementalClassifier(method, **parameters)  # type: ignore[arg-type]
    for task in tasks:
        clf.partial_fit(*blobs(task))
    return clf


def test_scikit_learns_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the checks, about each other
        check_estimator(IncrementalClassifier(random_state=0), expected_failed_checks=EXPECTED_FAILURES)


def test_without_scikit_learn_one_line_names_the_extra_and_the_rest_works():
    code = "import sys; sys.modules['sklearn'] = None; from engram import Model, IncrementalClassifier"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert "pip install 'engram-learn[sklearn]'" in last


def test_partial_fit_checks_the_number_of_features():
    """As scikit-learn's own checks would find, if they did not pass `classes=`."""
    X, y = blobs("ab")
    clf = IncrementalClassifier().partial_fit(X, y)
    assert clf.n_features_in_ == 8
    with pytest.raises(ValueError, match="5 features"):
        clf.partial_fit(X[:, :5], y)


@pytest.mark.parametrize(
    ("method", "setting", "value"),
    [
        ("slda", "shrinkag", 0.1),
        ("slda", "shrinkage", "much"),
        ("slda", "shrinkage", True),
        ("slda", "shrinkage", 2),
        ("whitened", "kept_bits", 16.0),
        ("whitened", "width", 0),
        ("1nn", "samples", "some"),
    ],
)
def test_an_impossible_setting_is_named(method, setting, value):
    with pytest.raises(ValueError, match=setting):
        IncrementalClassifier(method, config={setting: value}).fit(*blobs("ab"))


def test_an_unknown_method_is_named():
    with pytest.raises(ValueError, match=r"'sdla'.*slda"):
        IncrementalClassifier("sdla").fit(*blobs("ab"))


def test_settings_may_be_numpys_numbers(tmp_path):
    """As they come out of a grid search."""
    taught("ab", method="slda", config={"shrinkage": np.float64(0.25)}, temperature=np.float32(0.5)).save(
        tmp_path / "m"
    )
    loaded = IncrementalClassifier.load(tmp_path / "m")
    assert (loaded.config, loaded.temperature) == ({"shrinkage": 0.25}, 0.5)


@pytest.mark.parametrize("temperature", [0, -1.0, float("nan"), float("inf"), "warm", True])
def test_an_impossible_temperature_is_refused_before_anything_is_learned(temperature, tmp_path):
    clf = IncrementalClassifier("ncm", temperature=temperature)
    with pytest.raises(ValueError, match="temperature"):
        clf.fit(*blobs("ab"))
    assert not hasattr(clf, "model_")
    clf.set_params(temperature=None).fit(*blobs("ab")).set_params(temperature=temperature)
    for use in (clf.predict_proba, clf.nearest, lambda X: clf.save(tmp_path / "m")):
        with pytest.raises(ValueError, match="temperature"):
            use(blobs("a")[0])
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_names_of_features_travel_with_the_model(tmp_path):
    Model(taught("ab").learner_, feature_names=tuple("rstuvwxy")).save(tmp_path / "m")
    loaded = IncrementalClassifier.load(tmp_path / "m")
    assert (loaded.feature_names_in_.dtype, loaded.feature_names_in_.tolist()) == (object, list("rstuvwxy"))
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    loaded.partial_fit(*blobs("c")).save(tmp_path / "m")
    loaded = IncrementalClassifier.load(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == list("rstuvwxy")
    loaded.fit(*blobs("ab")).save(tmp_path / "m")  # of a table without names
    assert not hasattr(IncrementalClassifier.load(tmp_path / "m"), "feature_names_in_")


@pytest.mark.parametrize("names", [tuple("rstu"), (*"rstuvwx", 7)])
def test_names_of_other_features_make_no_model(names, tmp_path):
    Model(taught("ab").learner_, feature_names=names).save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="8 texts"):
        IncrementalClassifier.load(tmp_path / "m")


def test_columns_are_where_scikit_learn_looks_for_them():
    """Its metrics take columns as those of the sorted classes."""
    clf = taught("hd", "a", "b")
    X, y = blobs("abdh", seed=3)
    assert clf.classes_.tolist() == ["a", "b", "d", "h"]
    assert clf.learned_order_ == ["d", "h", "a", "b"]
    proba = clf.predict_proba(X)
    assert roc_auc_score(y, proba, multi_class="ovr") > 0.99
    assert log_loss(y, proba) < 0.1
    assert (clf.classes_[clf.decision_function(X).argmax(axis=1)] == clf.predict(X)).all()
    clf.partial_fit(*blobs("b", n=5))
    assert clf.counts_.tolist() == [24, 29, 24, 24]
    assert clf.leave_one_out(X, y).answers == y


def test_labels_are_names_not_positions():
    X, y = load_digits(return_X_y=True)
    clf = IncrementalClassifier().fit(X[(y == 5) | (y == 9)], y[(y == 5) | (y == 9)])
    clf.partial_fit(X[y == 2], y[y == 2])
    assert clf.classes_.tolist() == [2, 5, 9]
    assert clf.classes_.dtype == np.int64
    assert set(clf.predict(X)) == {2, 5, 9}
    assert np.mean(clf.predict(X[y == 2]) == 2) > 0.9


def test_probabilities_are_a_softmax_over_scores():
    clf = taught("abc", temperature=0.3)
    X, _ = blobs("abc", seed=4)
    odds = np.exp(clf.decision_function(X) / 0.3)
    np.testing.assert_allclose(clf.predict_proba(X), odds / odds.sum(axis=1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("temperature", [None, 0.3])
def test_the_nearest_classes_are_the_best_of_the_table(temperature):
    clf = taught("abcd", temperature=temperature)
    X, _ = blobs("abcd", seed=4)
    X = (X[::-1] + X) / 2  # between two classes each
    labels, scores, probabilities = clf.nearest(X, 3)
    rows = np.searchsorted(clf.classes_, labels)
    np.testing.assert_allclose(probabilities, np.take_along_axis(clf.predict_proba(X), rows, axis=1), rtol=1e-4)
    np.testing.assert_allclose(scores, np.take_along_axis(clf.decision_function(X), rows, axis=1), atol=1e-6)
    assert (np.diff(probabilities) <= 0).all()
    assert labels[:, 0].tolist() == clf.predict(X).tolist()


def test_samples_with_a_wrong_label_are_found_by_the_others():
    X, y = blobs("abc")
    y[3], y[30] = "c", "a"  # an a and a b
    clf = IncrementalClassifier().fit(X, y)
    found = clf.misfits(X, np.array(y))
    assert {(one.position, one.answer) for one in found} == {(3, "a"), (30, "b")}
    assert found[0].probability >= found[1].probability > 0.5
    clf.partial_fit(X[:1] + 9, ["alone"])
    assert clf.misfits(X[:1] + 9, ["alone"]) == []  # without it there is no such class


def test_familiarity_is_low_for_what_is_like_nothing_known():
    clf, (X, _) = taught("abc"), blobs("abc", seed=5)
    assert np.mean(clf.familiarity(X) < clf.unknown_below()) < 0.2
    assert (clf.familiarity(np.random.default_rng(0).normal(size=(50, 8)) * 40) < clf.unknown_below()).mean() > 0.6
    assert clf.unknown_below(0.5) > clf.unknown_below(0.01)
    assert taught("ab", method="ncm").unknown_below() is None


def test_two_classes_give_one_column_of_decisions():
    clf, (X, _) = taught("ab"), blobs("ab")
    assert clf.decision_function(X).shape == (48,)
    assert ((clf.decision_function(X) > 0) == (clf.predict(X) == "b")).all()


def test_forget_and_rename():
    clf, (X, _) = taught("abc"), blobs("abc")
    clf.rename("a", "ant").forget("b")
    assert clf.classes_.tolist() == ["ant", "c"]
    assert set(clf.predict(X)) == {"ant", "c"}
    clf.partial_fit(*blobs("b"))  # and it can be taught again
    assert clf.classes_.tolist() == ["ant", "b", "c"]
    for label in ("ant", "b", "c"):
        clf.forget(label)
    with pytest.raises(ValueError, match="forgotten"):
        clf.predict(X)
    assert clf.partial_fit(*blobs("a")).predict(X[:1]) == ["a"]


def test_merging_and_taking_away_leave_the_others_as_they_are():
    one, other, (X, _) = taught("ab", temperature=0.2), taught("cd"), blobs("abcd", seed=1)
    both = one.merge(other)
    assert (both.classes_.tolist(), both.temperature) == (list("abcd"), 0.2)
    assert (one.classes_.tolist(), other.classes_.tolist()) == (list("ab"), list("cd"))
    assert both.score(X, blobs("abcd", seed=1)[1]) == 1
    assert both.subtract(other).classes_.tolist() == ["a", "b"]
    with pytest.raises(NotFittedError):
        one.merge(IncrementalClassifier())


def test_clone_pipeline_and_cross_validation():
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 3], y[y < 3]
    assert clone(IncrementalClassifier("slda", config={"shrinkage": 0.3})).config == {"shrinkage": 0.3}
    assert cross_val_score(IncrementalClassifier(), X, y, cv=3).min() > 0.9
    assert make_pipeline(StandardScaler(), IncrementalClassifier()).fit(X, y).score(X, y) > 0.9


def test_a_seed_decides_everything():
    settings = {"config": {"samples": 4}, "method": "1nn"}
    one, two, other = (taught("ab", random_state=seed, **settings) for seed in (0, 0, 1))
    assert_same_state(one.learner_.state(), two.learner_.state())
    assert not np.array_equal(one.learner_.stored, other.learner_.stored)


@pytest.mark.parametrize("verb", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "spoil",
    [
        lambda X, y: (np.where(X[0, 0] == X, np.nan, X), y),
        lambda X, y: (np.where(X[0, 0] == X, np.inf, X), y),
        lambda X, y: (X[:0], y[:0]),
        lambda X, y: (X, y[:-1]),
        lambda X, y: (X[:, 0], y),
        lambda X, y: (X, np.array(["x", 3] * 12, dtype=object)),
        lambda X, y: (X, ["x", 3] * 12),
        lambda X, y: (X, [None] * 24),
        lambda X, y: (X, np.linspace(0, 1, 24)),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(verb, spoil):
    clf = taught("ab")
    before = clf.model_
    with pytest.raises(ValueError, match=r"."):
        getattr(clf, verb)(*spoil(*blobs("c")))
    assert clf.model_ is before
    assert clf.n_features_in_ == 8


def test_an_int_label_does_not_join_str_labels():
    clf = taught("ab")
    for change in (lambda: clf.partial_fit(blobs("c")[0], [3] * 24), lambda: clf.rename("a", 3)):
        with pytest.raises(ValueError, match="str and int"):
            change()
    assert clf.classes_.tolist() == ["a", "b"]


def test_a_failed_fit_leaves_the_fitted_model(tmp_path):
    clf = taught("ab")
    with pytest.raises(ValueError, match="transform"):
        clf.set_params(config={"transform": "cube"}).fit(*blobs("cd"))
    assert clf.set_params(config=None).classes_.tolist() == ["a", "b"]
    assert clf.n_features_in_ == 8


@pytest.mark.parametrize(
    "use",
    [
        lambda clf, X, path: clf.predict(X),
        lambda clf, X, path: clf.predict_proba(X),
        lambda clf, X, path: clf.decision_function(X),
        lambda clf, X, path: clf.forget("a"),
        lambda clf, X, path: clf.rename("a", "b"),
        lambda clf, X, path: clf.memory(),
        lambda clf, X, path: clf.save(path),
    ],
)
def test_before_fit_everything_says_so(use, tmp_path):
    with pytest.raises(NotFittedError):
        use(IncrementalClassifier(), blobs("a")[0], tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["whitened", "slda", "1nn"])
def test_only_these_answers(method):
    clf, (X, _) = taught("abcd", method=method), blobs("abcd")
    among = ["d", "a", "d"]
    columns = [clf.classes_.tolist().index(label) for label in ("d", "a")]
    proba = clf.predict_proba(X, among=among)
    full = clf.predict_proba(X)[:, columns]
    likely = full.sum(axis=1) > 1e-6
    np.testing.assert_allclose(proba[likely], (full / full.sum(axis=1, keepdims=True))[likely], rtol=1e-4)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert clf.predict(X, among=among).tolist() == [("d", "a")[i] for i in proba.argmax(axis=1)]
    assert set(clf.predict(X, among=np.array(["b"])).tolist()) == {"b"}
    best = clf.nearest(X, 5, among=among)
    assert best.labels.shape == best.scores.shape == best.probabilities.shape == (len(X), 2)
    np.testing.assert_allclose(best.probabilities[:, 0], proba.max(axis=1), rtol=1e-6)
    with pytest.raises(ValueError, match="'x', 'y'"):
        clf.predict(X, among=["a", "x", "y"])
    with pytest.raises(ValueError, match="no class"):
        clf.predict_proba(X, among=[])


def test_only_these_answers_where_classes_are_numbers():
    X, y = blobs("abc")
    clf = IncrementalClassifier().fit(X, [ord(label) for label in y])
    assert set(clf.predict(X, among=np.array([98, 99])).tolist()) == {98, 99}


def test_going_on_from_a_file_is_going_on(tmp_path):
    clf, (X, _) = taught("ab", temperature=0.4, random_state=3), blobs("abc", seed=1)
    clf.save(tmp_path / "m")
    loaded = IncrementalClassifier.load(tmp_path / "m")
    assert loaded.get_params()["temperature"] == 0.4
    for one in (clf, loaded):
        one.partial_fit(*blobs("c"))
    np.testing.assert_allclose(loaded.predict_proba(X), clf.predict_proba(X), atol=2e-2)
