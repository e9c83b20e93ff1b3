"""Whitened prototypes as a learner: the rule, exactness, what is kept, calibration, and the ends of what it meets."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from engram.learner import State
from engram.methods.whitened import Whitened
from engram.nn import calibration, projection
from engram.nn.symmetric import unpack_triangle
from engram.testing import blobs

Array = NDArray[np.float64]


def make(seed: int = 0, **changes: object) -> Whitened:
    return Whitened(Whitened.configure({"kept_bits": 64, **changes}), seed=seed, device="cpu")


def with_settings(learner: Whitened, **changes: object) -> Whitened:
    """The same knowledge under other settings."""
    state = learner.state()
    meta = {**state.meta, "config": {**state.meta["config"], **changes}}
    return Whitened.from_state(State(dict(state.tensors), meta), "cpu")


def vectors(learner: Whitened) -> tuple[dict[object, int], dict[object, Array], Array]:
    """Counts and means by class, and the scatter, as kept: in the units of z."""
    kept, unit = learner.state().tensors, float(learner.tensors["network.unit"])
    triangle = unpack_triangle(kept["consolidation.scatter"], torch.float64) * kept["consolidation.unit"]
    scatter = (triangle + triangle.triu(1).T).numpy() * unit**2
    means = kept["classes.means"].double().numpy() * unit
    counts = learner.counts()
    assert counts is not None
    return dict(zip(learner.labels, counts, strict=True)), dict(zip(learner.labels, means, strict=True)), scatter


def samples(sizes: dict[str, int], d: int = 5, seed: int = 0, apart: float = 3.0) -> tuple[Array, NDArray[np.str_]]:
    """Classes around centres that depend on the name alone, all stretched alike; exact in float32."""
    y = np.repeat(list(sizes), list(sizes.values()))
    rng = np.random.default_rng(seed)
    centre = {name: apart * np.random.default_rng(list(name.encode())).normal(size=d) for name in sizes}
    skew = np.random.default_rng(0).normal(size=(d, d)) / d**0.5
    X = np.array([centre[name] for name in y]) + rng.normal(size=(len(y), d)) @ skew
    return X.astype(np.float32).astype(np.float64), y


@pytest.fixture
def uncalibrated(monkeypatch):
    """Many small tasks, of which only means and scatter matter."""
    monkeypatch.setattr(calibration, "calibrate", lambda *_: None)


def by_hand(X: Array, y: NDArray[np.str_], labels: list[str], queries: Array) -> Array:
    """The scores, formula by formula."""
    z, d, n = np.sign(X) * np.sqrt(np.abs(X)), X.shape[1], len(X)
    means = np.array([z[y == c].mean(axis=0) for c in labels])
    scatter = sum(np.outer(v - means[labels.index(c)], v - means[labels.index(c)]) for v, c in zip(z, y, strict=True))
    epsilon = d / (d + n)
    sigma = (1 - epsilon) * scatter / n + epsilon * np.trace(scatter / n) / d * np.eye(d)
    inverse = np.linalg.inv(np.linalg.cholesky(sigma))
    v = np.trace(inverse @ (scatter / n) @ inverse.T)
    scores = np.zeros((len(queries), len(labels)))
    for i, x in enumerate(queries):
        w = inverse @ (np.sign(x) * np.sqrt(np.abs(x)) - means.mean(axis=0))
        for c, name in enumerate(labels):
            w_c = inverse @ (means[c] - means.mean(axis=0))
            square = w_c @ w_c
            length = np.sqrt(max(square - v / (y == name).sum(), square / 10))
            scores[i, c] = w @ w_c / (np.linalg.norm(w) * length)
    return scores


# --- the rule ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bits", "exact"), [(64, 1e-6), (32, 1e-4), (16, 2e-2)])
def test_scores_are_the_formula_however_the_samples_came(bits, exact):
    X, y = samples({"a": 9, "b": 1, "c": 3, "d": 6})
    learner = make(kept_bits=bits)
    for part in (slice(0, 5), slice(5, 11), slice(11, None)):
        learner.learn(X[part], y[part])
    learner.learn(X[:0:-8] + 0.5, y[:0:-8])
    X, y = np.concatenate([X, X[:0:-8] + 0.5]), np.concatenate([y, y[:0:-8]])
    np.testing.assert_allclose(learner.scores(X), by_hand(X, y, learner.labels, X), atol=exact)


def test_without_a_transform_features_are_taken_as_they_are():
    X, y = samples({"a": 9, "b": 3})
    plain, rooted = make(transform="none"), make()
    plain.learn(np.sign(X) * np.sqrt(np.abs(X)), y)
    rooted.learn(X, y)
    queries, _ = samples({"a": 3, "b": 3}, seed=1)
    np.testing.assert_allclose(
        plain.scores(np.sign(queries) * np.sqrt(np.abs(queries))), rooted.scores(queries), atol=1e-4
    )
    assert np.abs(plain.scores(queries) - rooted.scores(queries)).max() > 0.01


def test_recency_is_added_to_the_classes_of_the_last_task_alone():
    X, y = samples({"a": 4, "b": 4, "c": 4, "d": 4, "e": 4})

    def added(learner: Whitened) -> list[float]:
        difference = learner.scores(X) - with_settings(learner, recency=0.0).scores(X)
        np.testing.assert_allclose(difference, np.tile(difference[0], (len(X), 1)), atol=1e-6)
        return [round(float(value), 4) for value in difference[0]]

    learner = make(recency=0.25)
    learner.learn(X[:8], y[:8])
    assert added(learner) == [0, 0]  # of the base nothing is newer than the rest
    learner.learn(X[8:12], y[8:12])
    assert added(learner) == [0, 0, 0.25]
    learner.learn(X[12:], y[12:])
    assert added(learner) == [0, 0, 0, 0.25, 0.25]
    learner.forget("b")
    assert added(learner) == [0, 0, 0.25, 0.25]
    learner.forget("e")
    assert added(learner) == [0, 0, 0.25]
    learner.forget("d")
    assert added(learner) == [0, 0]
    learner.learn(X[:4], y[:4])
    assert added(learner) == [0, 0]


def test_impossible_settings_are_refused():
    for settings_ in ({"transform": "log"}, {"kept_bits": 8}, {"width": 0}):
        with pytest.raises(ValueError, match=next(iter(settings_))):
            make(**settings_)


# --- exactness --------------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random=st.randoms(use_true_random=False), pieces=st.integers(1, 12))
def test_any_order_and_any_pieces_give_what_all_data_at_once_gives(uncalibrated, random, pieces):
    """Pieces mix classes as they like, so more samples of old classes come between new ones."""
    X, y = samples({"a": 12, "b": 1, "c": 5, "d": 30})
    order = list(range(len(X)))
    random.shuffle(order)
    cuts = sorted(random.sample(range(1, len(X)), pieces - 1))
    learner = make()
    for part in np.split(np.array(order), cuts):
        learner.learn(X[part], y[part])
    z = np.sign(X) * np.sqrt(np.abs(X))
    means = {c: z[y == c].mean(axis=0) for c in "abcd"}
    scatter = sum(np.outer(v - means[c], v - means[c]) for v, c in zip(z, y, strict=True))
    counts, kept, kept_scatter = vectors(learner)
    assert counts == {"a": 12, "b": 1, "c": 5, "d": 30}
    for c, mean in means.items():
        assert np.abs(kept[c] - mean).max() <= 1e-10 * np.abs(mean).max()
    assert np.abs(kept_scatter - scatter).max() <= 1e-10 * np.abs(scatter).max()
    assert int(learner.tensors["consolidation.samples"]) == len(X)


def test_answers_do_not_depend_on_the_order_of_learning():
    X, y = samples(dict.fromkeys("abcdefgh", 15), d=12, apart=0.8)
    queries, _ = samples(dict.fromkeys("abcdefgh", 100), d=12, apart=0.8, seed=1)
    at_once, one_by_one = make(), make()
    at_once.learn(X, y)
    for name in "hcafbged":
        one_by_one.learn(X[y == name], y[y == name])
    assert np.array_equal(at_once.predict(queries), one_by_one.predict(queries))


def test_forgetting_drops_a_row_and_leaves_the_scatter():
    X, y = samples({"a": 6, "b": 7, "c": 8})
    learner = make()
    learner.learn(X, y)
    counts, means, scatter = vectors(learner)
    learner.scores(X)
    learner.forget("b")
    after = vectors(learner)
    assert after[0] == {"a": 6, "c": 8}
    assert list(after[1]) == ["a", "c"]
    assert all(np.array_equal(after[1][name], means[name]) for name in "ac")
    assert np.array_equal(after[2], scatter)
    assert int(learner.tensors["consolidation.samples"]) == sum(counts.values())
    assert set(learner.predict(X)) <= {"a", "c"}
    learner.learn(X[y == "b"], y[y == "b"])
    assert vectors(learner)[0] == {"a": 6, "c": 8, "b": 7}
    np.testing.assert_allclose(vectors(learner)[1]["b"], means["b"], rtol=1e-10)


# --- what is kept -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decay", [0.0, 1.5])
def test_a_thousand_increments_in_16_bits_answer_as_in_64(uncalibrated, decay):
    """Also where few directions hold most of the scatter, as in real features: the small ones must not be lost."""
    rng = np.random.default_rng(0)
    d, classes = 32, 1000
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    scales = np.arange(1, d + 1) ** -decay
    centres = rng.normal(size=(classes, d))

    def draw(c: int, n: int) -> Array:
        return (centres[c] + 0.45 * rng.normal(size=(n, d))) * scales @ turn

    small, exact = (make(kept_bits=bits, transform="none") for bits in (16, 64))
    for c in range(classes):
        X = draw(c, 5)
        for learner in (small, exact):
            learner.learn(X, [c] * 5)
    queries, y = np.concatenate([draw(c, 10) for c in range(classes)]), np.repeat(np.arange(classes), 10)
    accuracy = [(learner.predict(queries) == y).mean() for learner in (small, exact)]
    assert accuracy[1] > 0.95
    assert abs(accuracy[0] - accuracy[1]) < 0.001


def test_at_2048_dimensions_4300000_bytes_are_shared_and_a_class_takes_4100():
    X = np.random.default_rng(0).random((6, 2048))
    learner = make(kept_bits=16)
    learner.learn(X[:1], ["a"])
    first = learner.memory()
    assert first.kept == sum(t.numel() * t.element_size() for t in learner.state().tensors.values())
    learner.learn(X[1:3], ["b", "c"])
    assert learner.memory().kept - first.kept <= 2 * 4100
    assert first.kept - 4100 <= 4_300_000


def test_what_answering_needs_is_scratch_and_not_kept():
    X, y = samples({"a": 6, "b": 7})
    learner = make()
    learner.learn(X, y)
    kept = learner.memory().kept
    learner.scores(X)
    assert learner.memory().kept == kept < learner.memory().total
    learner.learn(X, y)
    assert learner.memory().kept == learner.memory().total


# --- calibration, the unknown, labels that do not fit -----------------------------------------------------------------


def test_temperature_and_threshold_come_from_samples_judged_without_themselves():
    X, y = samples(dict.fromkeys("abcd", 250), d=8, apart=0.6)
    learner = make()
    assert learner.temperature == calibration.USUAL
    assert learner.unknown_below() is None
    learner.learn(X, y)
    queries, truth = samples(dict.fromkeys("abcd", 1000), d=8, apart=0.6, seed=1)
    refused = (learner.familiarity(queries) < learner.unknown_below(0.05)).mean()
    assert 0.02 < refused < 0.1
    assert learner.unknown_below(0.5) > learner.unknown_below(0.05)
    logits = learner.scores(queries) / learner.temperature
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    accuracy = (np.array(learner.labels)[p.argmax(axis=1)] == truth).mean()
    assert 0.5 < accuracy < 0.95  # hard enough that confidence matters
    assert abs(p.max(axis=1).mean() - accuracy) < 0.06


def test_calibration_is_done_again_when_there_is_a_tenth_more():
    X, y = samples(dict.fromkeys("abcd", 60), d=8, apart=0.6)
    learner = make()
    learner.learn(X, y)
    before = learner.tensors["consolidation.calibration"]
    learner.learn(X[:20], y[:20])
    assert torch.equal(learner.tensors["consolidation.calibration"], before)
    learner.learn(X[:20], y[:20])
    assert not torch.equal(learner.tensors["consolidation.calibration"], before)


def test_nothing_is_calibrated_by_one_class_or_by_classes_of_one_sample():
    X, y = samples({"a": 5, "b": 1, "c": 1})
    one_class, single = make(), make()
    one_class.learn(X[:5], y[:5])
    single.learn(X[4:], y[4:])
    assert one_class.unknown_below() is None
    assert single.unknown_below() is None
    assert single.temperature == calibration.USUAL


def test_leaving_one_out_finds_the_sample_with_a_wrong_label():
    X, y = samples({"a": 20, "b": 20, "c": 20})
    y[3] = "c"
    learner = make()
    learner.learn(X, y)
    answer = learner.leave_one_out(X, y)
    names = np.array(learner.labels)[answer.rows]
    assert np.flatnonzero(names != y).tolist() == [3]
    assert names[3] == "a"
    assert ((answer.probabilities > 1 / 3) & (answer.probabilities <= 1)).all()


def test_without_its_only_sample_a_class_is_not_the_answer():
    X, y = samples({"a": 8, "b": 8, "c": 1})
    learner = make()
    learner.learn(X, y)
    assert learner.predict(X[-1:]).tolist() == ["c"]
    assert learner.labels[learner.leave_one_out(X[-1:], ["c"]).rows[0]] != "c"


# --- the ends of what it meets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("transform", ["sqrt", "none"])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_the_unit_of_features_does_not_matter(scale, transform, bits):
    X, y = samples(dict.fromkeys("abcd", 12), d=8)
    queries, truth = samples(dict.fromkeys("abcd", 12), d=8, seed=1)
    learner = make(kept_bits=bits, transform=transform)
    learner.learn(X[:24] * scale, y[:24])
    learner.learn(X[24:] * scale, y[24:])
    assert (learner.predict(queries * scale) == truth).mean() > 0.95
    assert np.isfinite(learner.scores(queries * scale)).all()


def test_the_unit_of_the_first_task_is_a_power_of_two_so_that_dividing_by_it_is_exact():
    X, y = samples({"a": 6, "b": 7})
    learner = make(transform="none", kept_bits=32)
    learner.learn(X * 100, y)
    unit = float(learner.tensors["network.unit"])
    assert np.log2(unit) == round(np.log2(unit))
    assert 0.7 < np.sqrt(np.square(X * 100).mean()) / unit < 1.42


def test_features_far_from_the_first_are_refused_in_16_bits_and_nothing_changes():
    X, y = samples({"a": 4, "b": 4})
    learner = make(kept_bits=16, transform="none")
    learner.learn(X[:4], y[:4])
    with pytest.raises(ValueError, match="scale them"):
        learner.learn(X[4:] * 1e7, y[4:])
    assert learner.labels == ["a"]


def test_a_class_of_one_sample_beside_large_ones_is_found():
    X, y = samples({"a": 50, "b": 50, "c": 1}, d=8)
    learner = make(kept_bits=16)
    learner.learn(X, y)
    queries, truth = samples({"a": 30, "b": 30, "c": 30}, d=8, seed=1)
    assert (learner.predict(queries) == truth).mean() > 0.9


def test_one_class_alone_is_the_answer_to_everything():
    X, y = samples({"a": 5})
    for part in (slice(0, 1), slice(0, 5)):
        learner = make(kept_bits=16)
        learner.learn(X[part], y[part])
        assert set(learner.predict(X * 3)) == {"a"}
        assert np.isfinite(learner.scores(X)).all()
        assert np.isfinite(learner.familiarity(X)).all()


@pytest.mark.parametrize("bits", [16, 32])
def test_more_dimensions_than_samples_and_constant_features(bits):
    X, y = samples({"a": 3, "b": 2, "c": 4}, d=200)
    X[:, 50:] = 2.0
    learner = make(kept_bits=bits)
    learner.learn(X, y)
    assert (learner.predict(X) == y).all()
    constant = make(kept_bits=bits)
    constant.learn(np.full((6, 4), 3.0), ["a", "b"] * 3)
    assert np.isfinite(constant.scores(np.full((2, 4), 3.0))).all()
    zero = make(kept_bits=bits)
    zero.learn(np.zeros((4, 3)), ["a", "a", "b", "b"])
    assert np.isfinite(zero.scores(np.ones((2, 3)))).all()


def test_a_hundred_thousand_classes_of_one_sample():
    X = np.random.default_rng(0).normal(size=(100_000, 16)).astype(np.float32)
    learner = make(kept_bits=16)
    learner.learn(X, np.arange(len(X)))
    some = np.arange(0, len(X), 997)
    assert (learner.predict(X[some]) == some).mean() > 0.95
    learner.learn(X[:5] + 0.01, np.arange(5))
    counts = learner.counts()
    assert counts is not None
    assert counts[:6] == [2] * 5 + [1]


def test_very_wide_features_are_projected_by_the_seed():
    rng = np.random.default_rng(0)
    X, y = rng.random((6, 4097)).astype(np.float32), ["a", "b"] * 3
    wide, narrow = make(seed=5, kept_bits=32), make(kept_bits=32, transform="none")
    wide.learn(X, y)
    z = torch.from_numpy(X).sqrt() @ projection.signs(4097, 2048, 5)
    narrow.learn(z, y)
    np.testing.assert_allclose(wide.scores(X), narrow.scores(z), atol=1e-4)
    vectors = wide.class_vectors()
    assert vectors is not None
    assert vectors.shape == (2, 2048)


@pytest.mark.parametrize(("width", "left"), [(3, 3), (7, 7), (8, 8), (9, 8)])
def test_features_are_projected_to_the_width_asked_for(width, left):
    rng = np.random.default_rng(0)
    X, y = rng.random((6, 8)).astype(np.float32), ["a", "b"] * 3
    learner, plain = make(seed=5, kept_bits=32, width=width), make(kept_bits=32, transform="none")
    learner.learn(X, y)
    z = torch.from_numpy(X).sqrt()
    z = z @ projection.signs(8, width, 5) if width < 8 else z
    plain.learn(z, y)
    np.testing.assert_allclose(learner.scores(X), plain.scores(z), atol=1e-4)
    vectors = learner.class_vectors()
    assert vectors is not None
    assert vectors.shape == (2, left)


def test_features_of_4096_are_not_projected():
    learner = make(kept_bits=16)
    learner.learn(np.random.default_rng(0).random((2, 4096)), ["a", "a"])
    vectors = learner.class_vectors()
    assert vectors is not None
    assert vectors.shape == (1, 4096)


def test_where_rounding_would_tell_the_scatter_is_kept_in_32_bits():
    """Standard deviations that fall as 1/i, many samples: 16 bits lost a sixth of the right answers."""
    rng = np.random.default_rng(0)
    d, classes, n = 128, 60, 64
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    centres = rng.normal(size=(classes, d)) * 0.35

    def draw(c: int, n: int) -> Array:
        return (centres[c] + rng.normal(size=(n, d))) / np.arange(1, d + 1) @ turn

    small, exact = (make(kept_bits=bits, transform="none") for bits in (16, 64))
    for c in range(classes):
        X = draw(c, n)
        for learner in (small, exact):
            learner.learn(X, [c] * n)
    queries, y = np.concatenate([draw(c, 20) for c in range(classes)]), np.repeat(np.arange(classes), 20)
    accuracy = [(learner.predict(queries) == y).mean() for learner in (small, exact)]
    assert abs(accuracy[0] - accuracy[1]) < 0.005
    assert small.tensors["consolidation.scatter"].dtype == torch.float32
    few = make(kept_bits=16, transform="none")
    few.learn(draw(0, 30), ["a"] * 30)
    assert few.tensors["consolidation.scatter"].dtype == torch.float16


def test_the_spread_of_the_class_means_is_computed_once_after_a_change(monkeypatch):
    X, y = blobs(["a", "b", "c"])
    learner = Whitened(device="cpu")
    learner.learn(X, y)
    computed, inverse = [], torch.cholesky_inverse
    monkeypatch.setattr(torch, "cholesky_inverse", lambda factor: computed.append(1) or inverse(factor))
    first, again = learner.familiarity(X), learner.familiarity(X)
    assert (len(computed), first.tolist()) == (1, again.tolist())
    learner.learn(*blobs(["d"]))
    computed.clear()
    learner.familiarity(X)
    learner.familiarity(X)
    assert len(computed) == 1
