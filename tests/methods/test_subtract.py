"""What a learner taught apart had brought is taken away: exactly what would be without it."""

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


def part(X, y, lessons, number, **config):
    """A learner of one lesson alone."""
    one = make(seed=number, **config)
    one.learn(X[lessons == number], y[lessons == number])
    return one


def teach(one, X, y, lessons, without=()):
    """Learn lesson after lesson."""
    for number in sorted(set(lessons.tolist())):
        if number not in without:
            one.learn(X[lessons == number], y[lessons == number])
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
def test_taking_any_parts_away_in_any_order_is_never_having_learned_them(data):
    X, y = samples(SIZES)
    lessons = np.array(data.draw(st.lists(st.integers(0, 4), min_size=len(X), max_size=len(X))))
    present = sorted(set(lessons.tolist()))
    back = data.draw(st.lists(st.sampled_from(present), unique=True, max_size=len(present) - 1))
    one = teach(make(), X, y, lessons)
    for number in back:
        one.subtract(part(X, y, lessons, number))
    two = teach(make(seed=1), X, y, lessons, without=back)
    assert_alike(one, two, 1e-10)
    assert one.labels == [label for label in teach(make(), X, y, lessons).labels if label in two.labels]
    queries = samples(SIZES, seed=3)[0]
    columns = [one.labels.index(name) for name in two.labels]
    np.testing.assert_allclose(one.scores(queries)[:, columns], two.scores(queries), atol=1e-6)


@pytest.mark.parametrize(("bits", "apart"), [(32, 1e-6), (16, 2**-8)])
def test_in_fewer_bits_as_exact_as_they_are(bits, apart):
    """Means of classes that the part had nothing of stay the same bits."""
    X, y = samples({"ant": 400, "bee": 300, "cat": 500}, d=6)
    lessons = np.where((y == "cat") & (np.arange(len(y)) % 4 == 0), 1, 0)
    one = teach(make(kept_bits=bits), X, y, lessons)
    before = one.tensors["classes.means"][:2].clone()
    one.subtract(part(X, y, lessons, 1, kept_bits=bits))
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


def test_calibration_stays_and_is_measured_anew_with_what_is_learned_next():
    X, y = samples({"ant": 30, "bee": 30, "cat": 30, "dog": 30})
    lessons = np.where(y == "cat", 1, np.where(y == "dog", 2, 0))
    one = teach(make(), X[y != "dog"], y[y != "dog"], lessons[y != "dog"])
    before = one.tensors["consolidation.calibration"].clone()
    one.subtract(part(X, y, lessons, 1))
    after = one.tensors["consolidation.calibration"]
    assert (float(before[0]) > 0, float(after[0])) == (True, 0.0)
    assert torch.equal(after[1:], before[1:])
    assert one.temperature == pytest.approx(float(before[2].exp()))
    few = (y == "dog") & (np.cumsum(y == "dog") < 4)  # fewer than a tenth more
    one.learn(X[few], y[few])
    assert float(one.tensors["consolidation.calibration"][0]) == 63


def test_what_was_taught_last_is_what_is_left_of_it():
    X, y = samples({"ant": 4, "bee": 4, "cat": 4, "dog": 4})
    lessons = np.array([0] * 4 + [1] * 4 + [2] * 8)
    one = teach(make(), X, y, lessons)
    assert int(one.tensors["consolidation.newest"]) == 2
    one.subtract(part(X, y, lessons, 1))
    assert int(one.tensors["consolidation.newest"]) == 2
    one.subtract(part(X, y, lessons, 2))
    assert (one.labels, int(one.tensors["consolidation.newest"])) == (["ant"], 0)


def test_units_may_differ():
    X, y = samples(SIZES)
    lessons = np.where(y == "cat", 1, 0)
    X[y == "cat"] *= 1000
    one, small, large = make(), part(X, y, lessons, 0), part(X, y, lessons, 1)
    one.merge(small, large)
    one.subtract(small)  # in whose unit the features were smaller
    assert_alike(one, large, 1e-10)


# --- every method ----------------------------------------------------------------------------------------------------


def test_which_methods_can():
    assert sorted(SUBTRACTING) == ["ncm", "slda", "whitened"]


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
    with pytest.raises(ValueError, match=r"cannot (be merged|take anything back)"):
        learner(name).subtract(learner(name))


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


# --- what is refused changes nothing ---------------------------------------------------------------------------------


def test_what_is_impossible_changes_nothing():
    X, y = samples({"ant": 8, "bee": 8, "cat": 8})
    lessons = np.where(y == "ant", 0, 1)
    one = teach(make(), X, y, lessons)
    before = one.state()
    with pytest.raises(ValueError, match="unknown class 'dog'"):
        one.subtract(taught("whitened", *samples({"dog": 3}), kept_bits=64))
    with pytest.raises(ValueError, match="fewer samples of a class than are to be taken away"):
        one.subtract(taught("whitened", *samples({"ant": 9}), kept_bits=64))
    with pytest.raises(ValueError, match="no class would be left"):
        one.subtract(one)
    assert_same_state(one.state(), before)


def test_lessons_that_a_file_of_before_kept_are_dropped():
    one = teach(make(), *samples({"ant": 8, "bee": 8}), np.arange(16) % 2)
    state = one.state()
    older = State(state.tensors | {"lessons.0.counts": torch.ones(2)}, state.meta | {"lessons": {"0": ["ant", "bee"]}})
    assert_same_state(Whitened.from_state(older, "cpu").state(), state)


# --- the estimator ---------------------------------------------------------------------------------------------------


def test_in_the_estimator():
    X, y = blobs(list("abcdef"), seed=3)
    base, other = (
        IncrementalClassifier(random_state=0, device="cpu", config={"kept_bits": 64}).fit(X[rows], y[rows])
        for rows in (y < "d", y >= "d")
    )
    merged = base.merge(other)
    again = merged.subtract(other)
    assert merged.classes_.tolist() == list("abcdef")
    assert again.classes_.tolist() == list("abc")
    np.testing.assert_allclose(again.decision_function(X), base.decision_function(X), atol=1e-5)
