"""Lessons taken back: exactly what a learner would be that had never learned them."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_merge import SIZES, learner, taught
from test_whitened import make, samples, uncalibrated, vectors

from engram import IncrementalClassifier
from engram.learner import State
from engram.methods import METHODS
from engram.methods.whitened import Whitened
from engram.nn import statistics
from engram.testing import assert_same_state, blobs

__all__ = ["uncalibrated"]
SUBTRACTING = [name for name, method in METHODS.items() if method.subtracts()]


def teach(one, X, y, lessons, without=()):
    """Learn lesson after lesson, and keep each."""
    for number in sorted(set(lessons.tolist())):
        part = lessons == number
        if number not in without:
            one.learn(X[part], y[part])
            one.keep_lesson(number, X[part], y[part])
    return one


def assert_alike(one, two, apart):
    (counts, means, scatter), (expected, centres, spread) = vectors(one), vectors(two)
    assert counts == expected
    for name, centre in centres.items():
        np.testing.assert_allclose(means[name], centre, rtol=0, atol=apart * np.abs(centre).max())
    np.testing.assert_allclose(scatter, spread, rtol=0, atol=apart * np.abs(spread).max())
    assert int(one.tensors["consolidation.samples"]) == int(two.tensors["consolidation.samples"])


# --- whitened: to the last digits -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("uncalibrated")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_taking_any_lessons_back_in_any_order_is_never_having_learned_them(data):
    X, y = samples(SIZES)
    lessons = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(X), max_size=len(X))))
    present = sorted(set(lessons.tolist()))
    back = data.draw(st.lists(st.sampled_from(present), unique=True, max_size=len(present) - 1))
    one = teach(make(), X, y, lessons)
    for number in back:
        one.unlearn(number)
    two = teach(make(seed=1), X, y, lessons, without=back)
    assert_alike(one, two, 1e-10)
    assert one.labels == [label for label in teach(make(), X, y, lessons).labels if label in two.labels]
    assert sorted(one.lessons) == sorted(two.lessons)
    queries = samples(SIZES, seed=3)[0]
    columns = [one.labels.index(name) for name in two.labels]
    np.testing.assert_allclose(one.scores(queries)[:, columns], two.scores(queries), atol=1e-6)


@pytest.mark.parametrize(("bits", "apart"), [(32, 1e-6), (16, 2**-8)])
def test_in_fewer_bits_as_exact_as_they_are(bits, apart):
    """Means of classes that the lesson had nothing of stay the same bits."""
    X, y = samples({"ant": 400, "bee": 300, "cat": 500}, d=6)
    lessons = np.where((y == "cat") & (np.arange(len(y)) % 4 == 0), 1, 0)
    one = teach(make(kept_bits=bits), X, y, lessons)
    before = one.tensors["classes.means"][:2].clone()
    one.unlearn(1)
    assert torch.equal(one.tensors["classes.means"][:2], before)
    assert one.tensors["classes.means"].dtype == {16: torch.float16, 32: torch.float32}[bits]
    two = teach(make(), X, y, lessons, without=[1])
    (counts, means, scatter), (expected, centres, spread) = vectors(one), vectors(two)
    assert counts == expected
    for name, centre in centres.items():
        np.testing.assert_allclose(means[name], centre, rtol=0, atol=apart * np.abs(centre).max())
    np.testing.assert_allclose(scatter, spread, rtol=0, atol=2 * apart * np.abs(spread).max())
    queries = samples({"ant": 50, "bee": 50, "cat": 50}, d=6, seed=5)[0]
    assert (one.predict(queries) == two.predict(queries)).mean() >= 0.99


def test_a_lesson_is_kept_in_as_many_rows_as_it_has_samples_at_most():
    X, y = samples({"ant": 3, "bee": 40}, d=30)
    one = teach(make(), X, y, np.where(y == "ant", 0, 1))
    assert one.memory()["lessons.0.root"].shape == (3, 30)
    assert one.memory()["lessons.1.root"].shape == (30, 30)
    assert one.memory().by_group()["lessons that can be taken back"] > 0


def test_calibration_stays_and_is_measured_anew_with_the_next_lesson():
    X, y = samples({"ant": 30, "bee": 30, "cat": 30, "dog": 30})
    lessons = np.where(y == "cat", 1, np.where(y == "dog", 2, 0))
    one = teach(make(), X[y != "dog"], y[y != "dog"], lessons[y != "dog"])
    before = one.tensors["consolidation.calibration"].clone()
    one.unlearn(1)
    after = one.tensors["consolidation.calibration"]
    assert (float(before[0]) > 0, float(after[0])) == (True, 0.0)
    assert torch.equal(after[1:], before[1:])
    assert one.temperature == pytest.approx(float(before[2].exp()))
    few = (y == "dog") & (np.cumsum(y == "dog") < 4)  # fewer than a tenth more
    one.learn(X[few], y[few])
    assert float(one.tensors["consolidation.calibration"][0]) == 63


def test_what_was_taught_last_is_what_is_left_of_it():
    X, y = samples({"ant": 4, "bee": 4, "cat": 4, "dog": 4})
    one = teach(make(), X, y, np.array([0] * 4 + [1] * 4 + [2] * 8))
    assert int(one.tensors["consolidation.newest"]) == 2
    one.unlearn(1)
    assert int(one.tensors["consolidation.newest"]) == 2
    one.unlearn(2)
    assert (one.labels, int(one.tensors["consolidation.newest"])) == (["ant"], 0)


def test_an_encoders_first_lesson_cannot_be_taken_back():
    X, y = samples({"ant": 8, "bee": 8})
    one = make(encoder={"layers": (4, 3), "base_epochs": 1})
    one.learn(X, y)
    with pytest.raises(ValueError, match="encoder was trained on the first lesson"):
        one.keep_lesson(0, X, y)
    more = samples({"cat": 5})
    one.learn(*more)
    one.keep_lesson(1, *more)
    one.unlearn(1)
    assert one.labels == ["ant", "bee"]


# --- every method ----------------------------------------------------------------------------------------------------


def test_which_methods_can():
    assert sorted(SUBTRACTING) == ["ncm", "slda", "whitened"]


@pytest.mark.parametrize("name", SUBTRACTING)
def test_a_learner_without_a_lesson_answers_as_if_it_had_never_been(name):
    X, y = blobs(list("abcde"), seed=1)
    lessons = np.where(np.isin(y, ["a", "b"]), 0, np.arange(len(y)) % 3)
    one, two = teach(learner(name), X, y, lessons), teach(learner(name), X, y, lessons, without=[1])
    one.unlearn(1)
    assert (one.labels, one.counts()) == (two.labels, two.counts())
    np.testing.assert_allclose(one.scores(X), two.scores(X), rtol=1e-3, atol=2e-3 * np.abs(two.scores(X)).max())
    loaded = type(one).from_state(one.state(), "cpu")
    assert_same_state(loaded.state(), one.state())
    loaded.unlearn(2)
    assert sorted(loaded.lessons) == [0]


@pytest.mark.parametrize("name", SUBTRACTING)
def test_subtracting_is_the_inverse_of_merging(name):
    X, y = blobs(list("abcdef"), seed=2)
    first = y < "d"
    first[np.flatnonzero(y == "c")[::2]] = False
    one, two = taught(name, X[first], y[first]), taught(name, X[~first], y[~first])
    expected, labels, counts = one.scores(X), one.labels, one.counts()
    one.merge(two)
    assert one.labels != labels
    one.subtract(two)
    assert (one.labels, one.counts()) == (labels, counts)
    np.testing.assert_allclose(one.scores(X), expected, rtol=1e-3, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize("name", sorted(METHODS.keys() - set(SUBTRACTING)))
def test_others_say_that_they_cannot(name):
    one = learner(name)
    with pytest.raises(ValueError, match=f"method {one.method} cannot take anything back"):
        one.keep_lesson(0, [[1.0]], ["a"])
    with pytest.raises(ValueError, match="cannot take anything back"):
        one.unlearn(0)


def test_units_may_differ():
    X, y = samples(SIZES)
    X[y == "cat"] *= 1000
    one, two = make(), make()
    one.learn(X[y != "cat"], y[y != "cat"])
    one.keep_lesson(0, X[y != "cat"], y[y != "cat"])
    two.learn(X[y == "cat"], y[y == "cat"])
    one.merge(two)
    one.unlearn(0)  # in whose unit the features were smaller
    assert_alike(one, two, 1e-10)


# --- forgotten and renamed in between --------------------------------------------------------------------------------


def three_lessons():
    """ant in one lesson, bee in two, cat in one beside them."""
    X, y = samples({"ant": 8, "bee": 8, "cat": 8})
    return X, y, np.where(y == "ant", 0, np.where(y == "cat", 1, np.arange(24) % 2))


def test_a_class_that_was_renamed_is_taken_back_under_its_name():
    X, y, lessons = three_lessons()
    one, two = teach(make(), X, y, lessons), teach(make(), X, y, lessons, without=[1])
    one.rename("cat", "tiger")
    one.rename("bee", "wasp")
    assert one.lessons[1] == {"wasp": 4, "tiger": 8}
    one.unlearn(1)
    two.rename("bee", "wasp")
    assert_alike(one, two, 1e-10)


def test_a_class_that_only_one_lesson_taught_may_be_forgotten_before_that_is_taken_back():
    """Forgetting leaves its scatter; taking the lesson back does not."""
    X, y, lessons = three_lessons()
    one, two = teach(make(), X, y, lessons), teach(make(), X, y, lessons, without=[1])
    one.forget("cat")
    assert one.lessons[1] == {"bee": 4}
    one.unlearn(1)
    assert_alike(one, two, 1e-10)
    alone = teach(make(), X, y, lessons)
    alone.forget("ant")
    alone.learn(*samples({"ant": 3}, seed=9))  # again, and from others
    alone.unlearn(0)
    assert alone.counts() == [4, 8, 3]


def test_lessons_that_shared_a_class_which_was_forgotten_cannot_be_taken_back():
    X, y, lessons = three_lessons()
    one = teach(make(), X, y, lessons)
    one.forget("bee")
    assert one.lessons == {}
    with pytest.raises(ValueError, match="nothing is kept of lesson 1"):
        one.unlearn(1)
    alone = teach(make(), X, y, lessons)
    alone.unlearn(0)
    alone.forget("bee")  # which lesson 1 alone has taught by now
    assert alone.lessons == {1: {"cat": 8}}


# --- what is refused changes nothing ---------------------------------------------------------------------------------


def test_what_is_impossible_changes_nothing():
    X, y, lessons = three_lessons()
    one = teach(make(), X, y, lessons)
    before = one.state()
    with pytest.raises(ValueError, match="nothing is kept of lesson 7"):
        one.unlearn(7)
    stranger = taught("whitened", *samples({"dog": 3}), kept_bits=64)
    with pytest.raises(ValueError, match="unknown class 'dog'"):
        one.subtract(stranger)
    larger = taught("whitened", *samples({"ant": 9}), kept_bits=64)
    with pytest.raises(ValueError, match="fewer samples of a class than are to be taken away"):
        one.subtract(larger)
    assert_same_state(one.state(), before)
    one.unlearn(0)
    with pytest.raises(ValueError, match="nothing is kept of lesson 0"):
        one.unlearn(0)
    with pytest.raises(ValueError, match="no class would be left"):
        one.unlearn(1)
    assert one.lessons == {1: {"bee": 4, "cat": 8}}
    slim = Whitened.from_state(one.state(slim=True), "cpu")
    assert slim.lessons == {}
    with pytest.raises(ValueError, match="saved slim"):
        slim.unlearn(1)


def test_a_forged_lesson_is_refused():
    X, y, lessons = three_lessons()
    state = teach(make(), X, y, lessons).state()
    for change in ({"0": ["ant", "bee", "cat"]}, {"0": ["ant"], "9": ["bee"]}):
        with pytest.raises((ValueError, KeyError)):
            Whitened.from_state(State(state.tensors, state.meta | {"lessons": change}), "cpu")


def test_separating_undoes_uniting():
    torch.manual_seed(0)
    x, targets = torch.randn(20, 4, dtype=torch.float64), torch.arange(20) % 3
    whole = statistics.update(None, None, x, targets, 3)
    some = statistics.update(None, None, x[:7], targets[:7], 3)
    rest = statistics.update(None, None, x[7:], targets[7:], 3)
    part = statistics.Part(some.counts, some.means, some.scatter, torch.tensor(7))
    found = statistics.separate(whole.counts, whole.means, torch.arange(3), part)
    assert found.left.all()
    assert torch.equal(found.counts, rest.counts)
    torch.testing.assert_close(found.means, rest.means)
    torch.testing.assert_close(whole.scatter - found.scatter, rest.scatter)


# --- the estimator ---------------------------------------------------------------------------------------------------


def test_in_the_estimator(tmp_path):
    X, y = blobs(list("abcdef"), seed=3)
    clf = IncrementalClassifier(random_state=0, device="cpu", config={"kept_bits": 64}).fit(X[y < "d"], y[y < "d"])
    late = y >= "d"
    clf.partial_fit(X[late], y[late]).keep_lesson(1, X[late], y[late])
    assert clf.lessons_ == {1: {label: int((y == label).sum()) for label in "def"}}
    clf.save(tmp_path / "m.engram")
    loaded = IncrementalClassifier.load(tmp_path / "m.engram", device="cpu").unlearn(1)
    assert (loaded.classes_.tolist(), loaded.lessons_) == (["a", "b", "c"], {})
    base = IncrementalClassifier(random_state=0, device="cpu", config={"kept_bits": 64}).fit(X[y < "d"], y[y < "d"])
    np.testing.assert_allclose(loaded.decision_function(X), base.decision_function(X), atol=1e-5)
    with pytest.raises(ValueError, match="nothing is kept of lesson 1"):
        loaded.unlearn(1)
    other = IncrementalClassifier(random_state=0, device="cpu", config={"kept_bits": 64}).fit(X[late], y[late])
    merged = base.merge(other)
    again = merged.subtract(other)
    assert merged.classes_.tolist() == list("abcdef")
    assert again.classes_.tolist() == list("abc")
    np.testing.assert_allclose(again.decision_function(X), base.decision_function(X), atol=1e-5)
    assert clf.merge(other).lessons_ == {}
    assert list(clf.lessons_) == [1]
