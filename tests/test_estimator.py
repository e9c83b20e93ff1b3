"""IncrementalClassifier as a scikit-learn estimator."""

import inspect
from dataclasses import asdict

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from engram import IncrementalClassifier
from engram.errors import ModelFileError
from engram.methods import METHODS, tensors
from engram.methods.ncm import NCM
from engram.paper.prototypes import Prototypes, PrototypesConfig
from engram.testing import assert_same_state, blobs, reachable_arrays


def small(**changes: object) -> IncrementalClassifier:
    """The paper's method, with a network that trains in no time; `changes` to its settings or to the estimator."""
    config: dict[str, object] = {
        "layers": (16, 16), "base_epochs": 30, "base_rate": 5e-3, "feature_rms": 1.0, "increment_epochs": 2,
    }  # fmt: skip
    own = inspect.signature(IncrementalClassifier).parameters
    config |= {name: changes.pop(name) for name in list(changes) if name not in own}
    return IncrementalClassifier("prototypes", **{"config": config, "random_state": 0, "device": "cpu", **changes})


def test_partial_fit_checks_the_number_of_features():
    """As scikit-learn's own checks would find, if they did not pass `classes=`."""
    X, y = blobs(["a", "b"])
    clf = small().partial_fit(X, y)
    assert clf.n_features_in_ == 8
    with pytest.raises(ValueError, match="X has 5 features, but IncrementalClassifier is expecting 8 features"):
        clf.partial_fit(X[:, :5], y)


def test_settings_left_out_are_the_methods_defaults():
    clf = small(lambda_cos=3.0).fit(*blobs(["a", "b"]))
    settings = {"layers": (16, 16), "base_epochs": 30, "base_rate": 5e-3, "increment_epochs": 2, "feature_rms": 1.0}
    assert clf.config_ == {**asdict(METHODS["prototypes"].configure()), **settings, "lambda_cos": 3.0}


def test_an_unknown_setting_or_method_is_named():
    X, y = blobs(["a", "b"])
    with pytest.raises(ValueError, match="slda has no setting 'shrinkag'; it has shrinkage"):
        IncrementalClassifier("slda", config={"shrinkag": 0.1}).fit(X, y)
    with pytest.raises(ValueError, match=r"no method is called 'sdla'; there are .*slda"):
        IncrementalClassifier("sdla").fit(X, y)


@pytest.mark.parametrize(
    ("method", "setting", "value", "message"),
    [
        ("slda", "shrinkage", "much", "shrinkage must be a number, not 'much'"),
        ("slda", "shrinkage", True, "shrinkage must be a number, not True"),
        ("slda", "shrinkage", 2, "shrinkage must be above 0 and at most 1, not 2"),
        ("ewc", "width", 8.5, "width must be a whole number, not 8.5"),
        ("ewc", "width", 0, "width must be a number above 0, not 0"),
        ("ewc", "dropout", 1.0, "dropout must be at least 0 and below 1, not 1.0"),
        ("ewc", "lambda_ewc", -1.0, "lambda_ewc must be a number of at least 0, not -1.0"),
        ("fearnet", "layers", (8,), "layers must be two sizes above 0"),
        ("fearnet", "layers", 8, r"layers must be whole numbers in brackets, as \[64, 32\], not 8"),
        ("mas", "layers", (8.5,), "layers must be whole numbers in brackets"),
        ("mas", "lambda_cos", float("inf"), "lambda_cos must be a number, not inf"),
        ("mas", "outlier_exclusion", 3, "outlier_exclusion must be true or false, not 3"),
        ("mas", "feature_rms", "x", "feature_rms must be a number or None, not 'x'"),
        ("mas", "consolidation", 3, "consolidation must be 'mas', 'si' or None, not 3"),
        ("whitened", "kept_bits", 16.0, "kept_bits must be 16, 32 or 64, not 16.0"),
        ("whitened", "encoder", 3, "encoder must be values by name or None, not 3"),
    ],
)
def test_an_impossible_setting_is_named(method, setting, value, message):
    with pytest.raises(ValueError, match=message):
        IncrementalClassifier(method, config={setting: value}).fit(*blobs(["a", "b"]))


def test_settings_may_be_numpys_numbers(tmp_path):
    """As they come out of a grid search."""
    clf = IncrementalClassifier("slda", config={"shrinkage": np.float64(0.25)}).fit(*blobs(["a", "b"]))
    clf.save(tmp_path / "m")
    assert IncrementalClassifier.load(tmp_path / "m").config_ == {"shrinkage": 0.25}
    clf = small(layers=np.array([4, 3]), base_epochs=np.int64(1), temperature=np.float32(0.5)).fit(*blobs(["a", "b"]))
    clf.save(tmp_path / "m")
    loaded = IncrementalClassifier.load(tmp_path / "m")
    assert (loaded.config_["layers"], loaded.config_["base_epochs"], loaded.temperature) == ((4, 3), 1, 0.5)
    by_hand = PrototypesConfig(layers=(np.int64(4),))
    assert type(Prototypes(by_hand, device="cpu").config.layers[0]) is int


@pytest.mark.parametrize("temperature", [0, -1.0, float("nan"), float("inf"), "warm", True])
def test_an_impossible_temperature_is_refused_before_anything_is_learned(temperature):
    clf = IncrementalClassifier("ncm", temperature=temperature, device="cpu")
    with pytest.raises(ValueError, match=f"temperature must be a number above 0, or None, not {temperature!r}"):
        clf.fit(*blobs(["a", "b"]))
    assert not hasattr(clf, "learner_")
    clf.set_params(temperature=None).fit(*blobs(["a", "b"])).set_params(temperature=temperature)
    for use in (clf.predict_proba, clf.nearest):
        with pytest.raises(ValueError, match="temperature must be a number above 0"):
            use(blobs(["a"])[0])


def test_names_of_features_travel_with_the_model(tmp_path):
    clf = IncrementalClassifier("ncm", device="cpu").fit(*blobs(["a", "b"]))
    clf.save(tmp_path / "m")
    assert not hasattr(IncrementalClassifier.load(tmp_path / "m", device="cpu"), "feature_names_in_")
    clf.feature_names_in_ = np.array(list("rstuvwxy"), dtype=object)  # as scikit-learn sets them of a table
    clf.save(tmp_path / "m")
    names = IncrementalClassifier.load(tmp_path / "m", device="cpu").feature_names_in_
    assert (names.dtype, names.tolist()) == (object, list("rstuvwxy"))
    for wrong in (list("rstu"), [*"rstuvwx", 7]):
        clf.feature_names_in_ = np.array(wrong, dtype=object)
        clf.save(tmp_path / "m")
        with pytest.raises(ModelFileError, match="the names of its features are not 8 texts"):
            IncrementalClassifier.load(tmp_path / "m")


def test_columns_are_where_scikit_learn_looks_for_them():
    """Its metrics take columns as those of the sorted classes."""
    clf = (
        IncrementalClassifier(device="cpu")
        .fit(*blobs(["h", "d"]))
        .partial_fit(*blobs(["a"]))
        .partial_fit(*blobs(["b"]))
    )
    X, y = blobs(["a", "b", "d", "h"], seed=3)
    assert clf.classes_.tolist() == ["a", "b", "d", "h"]
    assert clf.learned_order_ == ["d", "h", "a", "b"]
    proba = clf.predict_proba(X)
    assert roc_auc_score(y, proba, multi_class="ovr") > 0.99
    assert log_loss(y, proba) < 0.1
    assert (clf.classes_[clf.decision_function(X).argmax(axis=1)] == clf.predict(X)).all()
    clf.partial_fit(*blobs(["b"], n=5))
    assert clf.counts_.tolist() == [24, 29, 24, 24]
    vectors = dict(zip(clf.learned_order_, clf.learner_.class_vectors(), strict=True))
    assert np.array_equal(clf.class_vectors_, [vectors[label] for label in clf.classes_])
    assert clf.leave_one_out(X, y).answers.tolist() == y.tolist()


class Nearest(NCM):
    """A method of one's own."""

    method = "nearest"


@pytest.mark.parametrize("method", [Nearest, type("Disguised", (NCM,), {})])
def test_a_method_of_ones_own_does_everything_but_go_into_a_file(method, tmp_path):
    X, y = blobs(["a", "b", "c"])
    clf = IncrementalClassifier(method, device="cpu").fit(X[y != "c"], y[y != "c"]).partial_fit(*blobs(["c"]))
    assert type(clf.learner_) is method
    assert clf.method_ == method.method
    assert clf.score(X, y) == 1
    assert clone(clf).fit(X, y).score(X, y) == 1
    assert clf.rename("a", "ant").forget("b").classes_.tolist() == ["ant", "c"]
    assert clf.memory()["classes.means"].shape == (2, 8)
    with pytest.raises(ValueError, match=f"^{method.__name__} is not what .*: a file of it could not be opened$"):
        clf.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_classes_nobody_announced():
    X, y = blobs(["a", "b"])
    clf = small().fit(X, y)
    X2, y2 = blobs(["d"])
    clf.partial_fit(X2, y2)
    assert clf.classes_.tolist() == ["a", "b", "d"]
    X3, y3 = blobs(["e", "c"])
    clf.partial_fit(X3, y3)
    assert clf.classes_.tolist() == ["a", "b", "c", "d", "e"]
    assert clf.score(np.concatenate([X, X2, X3]), np.concatenate([y, y2, y3])) > 0.9


def test_labels_are_names_not_positions():
    X, y = load_digits(return_X_y=True)
    clf = small(increment_epochs=10)
    clf.fit(X[(y == 5) | (y == 9)], y[(y == 5) | (y == 9)])
    clf.partial_fit(X[y == 2], y[y == 2])
    assert clf.classes_.tolist() == [2, 5, 9]
    assert set(clf.predict(X)) == {2, 5, 9}
    assert np.mean(clf.predict(X[y == 2]) == 2) > 0.3


def test_probabilities_are_a_softmax_over_similarity():
    X, y = blobs(["a", "b", "c"])
    clf = small(temperature=0.3).fit(X, y)
    similarity = clf.decision_function(X)
    expected = np.exp(similarity / 0.3) / np.exp(similarity / 0.3).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(clf.predict_proba(X), expected, rtol=1e-5)
    assert (clf.classes_[clf.predict_proba(X).argmax(axis=1)] == clf.predict(X)).all()


@pytest.mark.parametrize("temperature", [None, 0.3])
def test_the_nearest_classes_have_the_probabilities_of_the_table(temperature, monkeypatch):
    """Though no table of all samples by all classes is made for them."""
    clf = IncrementalClassifier(temperature=temperature, device="cpu").fit(*blobs(["a", "b", "c", "d"]))
    X, _ = blobs(["a", "b", "c", "d"], seed=4)
    X = (X[::-1] + X) / 2  # between two classes each
    expected = clf.predict_proba(X)
    monkeypatch.setattr(tensors, "CHUNK", 5)
    labels, scores, probabilities = clf.nearest(X, 3)
    rows = np.searchsorted(clf.classes_, labels)
    np.testing.assert_allclose(probabilities, np.take_along_axis(expected, rows, axis=1), rtol=1e-4, atol=1e-12)
    np.testing.assert_allclose(scores, np.take_along_axis(clf.decision_function(X), rows, axis=1), atol=1e-6)
    assert (np.diff(probabilities) <= 0).all()
    assert 0.5 < probabilities.sum(axis=1).min() <= probabilities.sum(axis=1).max() < 1 + 1e-9


def test_samples_with_a_wrong_label_are_found_by_the_others():
    X, y = blobs(["a", "b", "c"])
    y[[3, 30]] = ["c", "a"]  # an a and a b
    clf = IncrementalClassifier(device="cpu").fit(X, y)
    found = clf.misfits(X, y)
    assert {(one.position, one.answer) for one in found} == {(3, "a"), (30, "b")}
    assert found[0].probability >= found[1].probability > 0.5
    clf.partial_fit(X[:1] + 9, ["alone"])
    assert clf.misfits(X[:1] + 9, ["alone"]) == []  # without it there is no such class
    assert IncrementalClassifier("ncm").fit(X, y).misfits(X, y) is None


def test_two_classes_give_one_column_of_decisions():
    X, y = blobs(["a", "b"])
    clf = small().fit(X, y)
    assert clf.decision_function(X).shape == (48,)
    assert ((clf.decision_function(X) > 0) == (clf.predict(X) == "b")).all()


def test_forget_and_rename():
    X, y = blobs(["a", "b", "c"])
    clf = small().fit(X, y)
    clf.rename("a", "ant").forget("b")
    assert clf.classes_.tolist() == ["ant", "c"]
    assert set(clf.predict(X)) == {"ant", "c"}
    clf.partial_fit(*blobs(["b"]))  # and it can be taught again
    assert clf.classes_.tolist() == ["ant", "b", "c"]
    for label in ("ant", "b", "c"):
        clf.forget(label)
    with pytest.raises(ValueError, match="every class has been forgotten"):
        clf.predict(X)
    assert clf.partial_fit(*blobs(["a"])).predict(X[:1]) == ["a"]


def test_clone_pipeline_and_cross_validation():
    X, y = load_digits(return_X_y=True)
    X, y = X[y < 3], y[y < 3]
    assert clone(small(lambda_cos=3.0)).config["lambda_cos"] == 3.0
    assert cross_val_score(small(), X, y, cv=3).min() > 0.9
    assert make_pipeline(StandardScaler(), small()).fit(X, y).score(X, y) > 0.9


def test_a_seed_decides_everything():
    X, y = blobs(["a", "b"])
    one, two, other = small().fit(X, y), small().fit(X, y), small(random_state=1).fit(X, y)
    assert_same_state(one.learner_.state(), two.learner_.state())
    assert not np.array_equal(one.class_vectors_, other.class_vectors_)


def test_the_memory_table_is_exact():
    clf = small().fit(*blobs(["a", "b"])).partial_fit(*blobs(["c"]))
    table = clf.memory()
    assert table.total == sum(values.nbytes for values in reachable_arrays(clf))
    means = table["classes.means"]
    assert (means.shape, means.dtype, means.bytes, means.group) == ((3, 16), "float32", 3 * 16 * 4, "class memory")
    encoder = (8 * 16 + 16 + 16 * 16 + 16) * 4
    decoder = (16 * 16 + 16 + 16 * 8 + 8) * 4
    assert table.by_group() == {
        "network": encoder + decoder + 4,  # the scale of the features
        "class memory": 3 * 16 * 4 + 3 * 8,
        "stored samples": 0,
        "consolidation state": encoder,
        "scratch memory": 0,
    }


@pytest.mark.parametrize("verb", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X, y: (np.where(X[0, 0] == X, np.nan, X), y), "NaN"),
        (lambda X, y: (np.where(X[0, 0] == X, np.inf, X), y), "infinity"),
        (lambda X, y: (X[:0], y[:0]), "0 sample"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda X, y: (X[:, 0], y), "Reshape your data"),
        (lambda X, y: (X, np.array(["x", 3] * 12, dtype=object)), "labels mix str"),
        (lambda X, y: (X, ["x", 3] * 12), "labels mix str"),
        (lambda X, y: (X, [None] * 24), "label"),
        (lambda X, y: (X, np.linspace(0, 1, 24)), "Unknown label type"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(verb, spoil, message, tmp_path):
    clf = small().fit(*blobs(["a", "b"]))
    clf.save(tmp_path / "before")
    with pytest.raises(ValueError, match=message):
        getattr(clf, verb)(*spoil(*blobs(["c"])))
    clf.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    assert clf.n_features_in_ == 8


def test_an_int_label_does_not_join_str_labels():
    clf = small().fit(*blobs(["a", "b"]))
    with pytest.raises(ValueError, match="labels mix str and int"):
        clf.partial_fit(blobs(["c"])[0], [3] * 24)
    with pytest.raises(ValueError, match="labels mix str and int"):
        clf.rename("a", 3)
    assert clf.classes_.tolist() == ["a", "b"]


def test_a_failed_fit_leaves_the_fitted_model(tmp_path):
    clf = small().fit(*blobs(["a", "b"]))
    with pytest.raises(ValueError, match="consolidation must be 'mas', 'si' or None, not 'ewc'"):
        clf.set_params(config={"consolidation": "ewc"}).fit(*blobs(["c", "d"]))

    def interrupt(progress: object) -> None:
        raise KeyboardInterrupt

    clf.set_params(config={"base_epochs": 1}, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(blobs(["c", "d"])[0][:, :4], blobs(["c", "d"])[1])
    assert clf.classes_.tolist() == ["a", "b"]
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
    with pytest.raises(NotFittedError, match="call fit or partial_fit first"):
        use(small(), blobs(["a"])[0], tmp_path / "m")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("method", ["whitened", "slda", "1nn"])
def test_only_these_answers(method):
    X, y = blobs(["a", "b", "c", "d"])
    clf = IncrementalClassifier(method, random_state=0, device="cpu").fit(X, y)
    among = ["d", "a", "d"]
    columns = [clf.classes_.tolist().index(label) for label in ("d", "a")]
    proba = clf.predict_proba(X, among=among)
    full = clf.predict_proba(X)[:, columns]
    likely = full.sum(axis=1) > 1e-6
    np.testing.assert_allclose(proba[likely], (full / full.sum(axis=1, keepdims=True))[likely], rtol=1e-4)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert clf.predict(X, among=among).tolist() == [("d", "a")[i] for i in proba.argmax(axis=1)]
    assert set(clf.predict(X, among=np.array(["b"])).tolist()) == {"b"}
    best = clf.nearest(X, 1, among=among)
    assert best.labels.shape == best.scores.shape == best.probabilities.shape == (len(X), 1)
    assert best.labels[:, 0].tolist() == clf.predict(X, among=among).tolist()
    np.testing.assert_allclose(best.probabilities[:, 0], proba.max(axis=1), rtol=1e-6)
    assert clf.nearest(X, 5, among=among).labels.shape == (len(X), 2)
    with pytest.raises(ValueError, match="among holds classes that are not known: 'x', 'y'"):
        clf.predict(X, among=["a", "x", "y"])
    with pytest.raises(ValueError, match="among holds no class"):
        clf.predict_proba(X, among=[])


def test_only_these_answers_where_classes_are_numbers():
    X, y = blobs(["a", "b", "c"])
    clf = IncrementalClassifier(random_state=0, device="cpu").fit(X, [ord(label) for label in y])
    assert set(clf.predict(X, among=np.array([98, 99])).tolist()) == {98, 99}
