"""Whitened prototypes as a learner: the rule, what is kept, calibration, and the ends of what it meets."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from engram.learners.base import State
from engram.learners.trying import save_and_load
from engram.learners.whitened import Whitened
from engram.stats.calibration import USUAL
from engram.stats.projection import signs

Array = NDArray[np.float32]


def make(seed: int = 0, **changes: object) -> Whitened:
    return Whitened.new({"kept_bits": 64, **changes}, seed=seed)


def samples(sizes: dict[str, int], d: int = 5, seed: int = 0, apart: float = 3.0) -> tuple[Array, list[str]]:
    """Classes around centres that depend on the name alone, all stretched alike."""
    y = [name for name, n in sizes.items() for _ in range(n)]
    rng = np.random.default_rng(seed)
    centre = {name: apart * np.random.default_rng(list(name.encode())).normal(size=d) for name in sizes}
    skew = np.random.default_rng(0).normal(size=(d, d)) / d**0.5
    return (np.array([centre[name] for name in y]) + rng.normal(size=(len(y), d)) @ skew).astype(np.float32), y


def answers(learner: Whitened, x: Array) -> list[object]:
    return [learner.labels[row] for row in learner.score(x).values.argmax(axis=1)]


def by_hand(x: Array, y: list[str], labels: tuple[object, ...], queries: Array) -> NDArray[np.float64]:
    """The scores, formula by formula, in float64."""

    def root(rows):
        exact = np.asarray(rows, np.float64)
        return np.sign(exact) * np.sqrt(np.abs(exact))

    z, d, n, own = root(x), x.shape[1], len(x), np.array(y)
    means = np.array([z[own == c].mean(axis=0) for c in labels])
    scatter = sum(np.outer(v - means[labels.index(c)], v - means[labels.index(c)]) for v, c in zip(z, y, strict=True))
    epsilon = d / (d + n)
    sigma = (1 - epsilon) * scatter / n + epsilon * np.trace(scatter / n) / d * np.eye(d)
    inverse = np.linalg.inv(np.linalg.cholesky(sigma))
    v = np.trace(inverse @ (scatter / n) @ inverse.T)
    scores = np.zeros((len(queries), len(labels)))
    for i, query in enumerate(queries):
        w = inverse @ (root(query) - means.mean(axis=0))
        for c, name in enumerate(labels):
            w_c = inverse @ (means[c] - means.mean(axis=0))
            square = w_c @ w_c
            length = np.sqrt(max(square - v / y.count(name), square / 10))
            scores[i, c] = w @ w_c / (np.linalg.norm(w) * length)
    return scores


@pytest.mark.parametrize(("bits", "exact"), [(64, 1e-9), (32, 1e-4), (16, 2e-2)])
def test_scores_are_the_formula_however_the_samples_came_and_were_saved(bits: int, exact: float):
    x, y = samples({"a": 9, "b": 1, "c": 3, "d": 6})
    learner = make(kept_bits=bits)
    for part in (slice(0, 5), slice(5, 11), slice(11, None)):
        learner = save_and_load(learner.learn(x[part], y[part]))
    learner = learner.learn(x[:0:-8] + np.float32(0.5), y[:0:-8])
    x, y = np.concatenate([x, x[:0:-8] + np.float32(0.5)]), y + y[:0:-8]
    np.testing.assert_allclose(learner.score(x).values, by_hand(x, y, learner.labels, x), atol=exact)


def test_without_a_transform_features_are_taken_as_they_are():
    (x, y), (queries, _) = samples({"a": 9, "b": 3}), samples({"a": 3, "b": 3}, seed=1)
    roots = [np.sign(rows) * np.sqrt(np.abs(rows)) for rows in (x, queries)]
    plain, rooted = make(transform="none").learn(roots[0], y), make().learn(x, y)
    expected = rooted.score(queries).values
    np.testing.assert_allclose(plain.score(roots[1]).values, expected, atol=1e-4)
    assert np.abs(plain.score(queries).values - expected).max() > 0.01


@pytest.mark.parametrize("changes", [{"transform": "log"}, {"kept_bits": 8}, {"width": 0}, {"width": "wide"}])
def test_impossible_settings_are_refused_by_name(changes: dict[str, object]):
    with pytest.raises(ValueError, match=next(iter(changes))):
        make(**changes)


def test_forgetting_drops_a_class_and_leaves_the_scatter():
    x, y = samples({"a": 6, "b": 7, "c": 8})
    learner = make().learn(x, y)
    less = learner.forget("b")
    assert (less.labels, less.counts().tolist()) == (("a", "c"), [6, 8])
    assert less.sums.scatter is learner.sums.scatter
    assert save_and_load(less).sums.samples == 21
    again = less.learn(x[6:13], y[6:13])
    assert again.counts().tolist() == [6, 8, 7]


# --- files of before --------------------------------------------------------------------------------------------------


def with_recency(learner: Whitened, recency: float = 0.25) -> Whitened:
    """What earlier versions wrote if one asked for it."""
    state = learner.state()
    return Whitened.from_state(
        State(state.arrays, state.meta | {"config": state.meta["config"] | {"recency": recency}})
    )


def test_recency_is_added_to_the_classes_of_the_last_task_alone_and_is_kept():
    x, y = samples({"a": 4, "b": 4, "c": 4, "d": 4, "e": 4})

    def added(learner: Whitened) -> list[float]:
        difference = learner.score(x).values - replace(learner, recency=0.0).score(x).values
        np.testing.assert_allclose(difference, np.tile(difference[0], (len(x), 1)), atol=1e-6)
        return [round(float(value), 4) for value in difference[0]]

    learner = with_recency(make().learn(x[:8], y[:8]))
    assert added(learner) == [0, 0]  # of the base nothing is newer than the rest
    learner = save_and_load(learner.learn(x[8:12], y[8:12]))
    assert added(learner) == [0, 0, 0.25]
    learner = learner.learn(x[12:], y[12:])
    assert added(learner) == [0, 0, 0, 0.25, 0.25]
    assert added(learner.forget("b")) == [0, 0, 0.25, 0.25]
    assert added(learner.forget("e")) == [0, 0, 0, 0.25]
    assert added(learner.forget("e").forget("d")) == [0, 0, 0]
    assert added(learner.learn(x[:4], y[:4])) == [0] * 5
    assert added(learner.merge(make().learn(x[:4], ["f"] * 4))) == [0] * 6
    taken = learner.subtract(make().learn(x[16:], y[16:])._in_unit(learner.unit))
    assert added(taken) == [0, 0, 0, 0.25]
    assert "recency" not in make().learn(x, y).state().meta["config"]


def test_what_only_earlier_versions_kept_to_take_lessons_back_with_is_left_out():
    state = make().learn(*samples({"a": 4, "b": 4})).state()
    kept = {f"lessons.0.{name}": np.zeros(3) for name in ("counts", "root")}
    read = Whitened.from_state(State(state.arrays | kept, state.meta | {"lessons": {"0": ["a"]}}))
    assert read.state().arrays.keys() == state.arrays.keys()


def test_a_model_with_a_trained_code_names_the_extra_that_it_takes(monkeypatch):
    monkeypatch.setitem(sys.modules, "engram.peers.whitened", None)  # as where torch is missing
    state = make().learn(*samples({"a": 4, "b": 4})).state()
    config = state.meta["config"] | {"encoder": {"layers": [4]}}
    with pytest.raises(ValueError, match="paper"):
        Whitened.from_state(State(state.arrays, state.meta | {"config": config}))
    none = State(state.arrays, state.meta | {"config": state.meta["config"] | {"encoder": None}})
    assert Whitened.from_state(none).labels == ("a", "b")


# --- what is kept -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("decay", [0.0, 1.5])
def test_many_increments_saved_in_16_bits_answer_as_in_64(decay: float):
    """Also where few directions hold most of the scatter, as in real features: the small ones must not be lost."""
    rng = np.random.default_rng(0)
    d, classes = 32, 200
    turn, _ = np.linalg.qr(rng.normal(size=(d, d)))
    scales, centres = np.arange(1, d + 1) ** -decay, rng.normal(size=(classes, d))

    def draw(c: int, n: int) -> Array:
        return ((centres[c] + 0.45 * rng.normal(size=(n, d))) * scales @ turn).astype(np.float32)

    small, exact = (make(kept_bits=bits, transform="none") for bits in (16, 64))
    for c in range(classes):
        x = draw(c, 5)
        small, exact = small.learn(x, [c] * 5), exact.learn(x, [c] * 5)
        small = Whitened.from_state(small.state())
    queries, y = np.concatenate([draw(c, 20) for c in range(classes)]), np.repeat(np.arange(classes), 20)
    right = [(learner.score(queries).values.argmax(axis=1) == y).mean() for learner in (small, exact)]
    assert right[1] > 0.95
    assert abs(right[0] - right[1]) < 0.003


def test_at_2048_dimensions_4300000_bytes_are_shared_and_a_class_takes_4100():
    x = np.random.default_rng(0).random((6, 2048)).astype(np.float32)
    one = make(kept_bits=16).learn(x[:1], ["a"])
    first, three = (sum(each.state().memory().values()) for each in (one, one.learn(x[1:3], ["b", "c"])))
    assert three - first <= 2 * 4100
    assert first - 4100 <= 4_300_000


def test_where_rounding_would_tell_the_scatter_is_kept_in_32_bits():
    """Standard deviations that fall as 1/i, many samples: 16 bits lost a sixth of the right answers."""
    rng = np.random.default_rng(0)
    steep = (rng.normal(size=(40_000, 128)) / np.arange(1, 129)).astype(np.float32)
    many, few = make(kept_bits=16, transform="none"), make(kept_bits=16, transform="none")
    assert many.learn(steep, [0] * 40_000).state().arrays["consolidation.scatter"].dtype == np.float32
    assert few.learn(steep[:30], [0] * 30).state().arrays["consolidation.scatter"].dtype == np.float16


def test_the_unit_is_near_the_first_samples_and_a_power_of_two():
    x, y = samples({"a": 6, "b": 7})
    learner = make(transform="none", kept_bits=32).learn(x * 100, y)
    assert np.log2(learner.unit) == round(np.log2(learner.unit))
    assert 0.7 < np.sqrt(np.square(x * 100).mean()) / learner.unit < 1.42
    assert learner.learn(x, y).unit == learner.unit


# --- calibration, the unknown, labels that do not fit -----------------------------------------------------------------


def test_temperature_and_threshold_come_from_samples_judged_without_themselves():
    x, y = samples(dict.fromkeys("abcd", 250), d=8, apart=0.6)
    blank = make()
    assert blank.unknown_above(0.05) is None
    learner, _ = blank.learn(x, y).judged(x, y)
    queries, truth = samples(dict.fromkeys("abcd", 1000), d=8, apart=0.6, seed=1)
    found = learner.score(queries)
    assert 0.02 < (found.novelty > learner.unknown_above(0.05)).mean() < 0.1
    assert learner.unknown_above(0.5) < learner.unknown_above(0.05)
    sure = learner.answer(queries).probabilities[:, 0]
    right = np.mean([one == other for one, other in zip(answers(learner, queries), truth, strict=True)])
    assert 0.5 < right < 0.95  # hard enough that confidence matters
    assert abs(sure.mean() - right) < 0.06
    assert save_and_load(learner).unknown_above(0.05) == learner.unknown_above(0.05)


def test_judging_calibrates_when_there_is_a_tenth_more_and_learning_never_does():
    x, y = samples(dict.fromkeys("abcd", 60), d=8, apart=0.6)
    learner, first = make().learn(x, y).judged(x, y)
    assert first.temperature == learner.calibration.temperature != pytest.approx(USUAL)
    more = learner.learn(x[:20], y[:20])
    assert more.calibration is learner.calibration
    assert more.judged(x[:20], y[:20])[0].calibration is learner.calibration
    much = more.learn(x[:20], y[:20]).judged(x[:20], y[:20])[0]
    assert much.calibration.samples == 280


def test_calibration_after_taking_away_stays_and_after_merging_is_pooled_each_to_be_measured_anew():
    x, y = samples(dict.fromkeys("abcd", 30))
    one, two = (make().learn(x[part], y[part]).judged(x[part], y[part])[0] for part in (slice(60), slice(60, None)))
    merged = one.merge(two)
    assert (merged.calibration.samples, merged.calibration.weight) == (0, 120)
    rest = one.learn(x[60:], y[60:]).subtract(two)
    assert (rest.calibration.samples, rest.calibration.weight) == (0, 60)
    assert merged.judged(x, y)[0].calibration.samples == 120


def test_nothing_is_calibrated_by_one_class_or_by_classes_of_one_sample():
    x, y = samples({"a": 5, "b": 1, "c": 1})
    for part in (slice(5), slice(4, None)):
        learner, scores = make().learn(x[part], y[part]).judged(x[part], y[part])
        assert learner.unknown_above(0.05) is None
        assert scores.temperature == pytest.approx(USUAL)


def test_the_only_sample_of_a_class_tells_nothing_of_the_rest():
    x, y = samples({"a": 20, "b": 20, "c": 1})
    assert make().learn(x, y).judged(x, y)[0].calibration.weight == 40


def test_leaving_one_out_finds_the_sample_with_a_wrong_label_also_in_chunks(monkeypatch):
    x, y = samples({"a": 20, "b": 20, "c": 20})
    y[3] = "c"
    learner = make().learn(x, y)
    _, whole = learner.judged(x, y)
    said = [learner.labels[row] for row in whole.values.argmax(axis=1)]
    assert [i for i in range(60) if said[i] != y[i]] == [3]
    assert said[3] == "a"
    monkeypatch.setattr("engram.learners.whitened.JUDGED", 3 * 7)
    _, parts = learner.judged(x, y)
    np.testing.assert_allclose(parts.values, whole.values, rtol=1e-9)
    np.testing.assert_allclose(parts.novelty, whole.novelty, rtol=1e-9)


# --- the ends of what it meets ----------------------------------------------------------------------------------------


@pytest.mark.timeout(60)
@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("transform", ["sqrt", "none"])
@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e-8, 1e8])
def test_the_size_of_features_does_not_matter(scale: float, transform: str, bits: int):
    (x, y), (queries, truth) = (samples(dict.fromkeys("abcd", 12), d=8, seed=seed) for seed in (0, 1))
    learner = make(kept_bits=bits, transform=transform).learn(x[:24] * np.float32(scale), y[:24])
    learner = save_and_load(learner.learn(x[24:] * np.float32(scale), y[24:]))
    queries = queries * np.float32(scale)
    assert np.mean([one == other for one, other in zip(answers(learner, queries), truth, strict=True)]) > 0.95
    assert all(np.isfinite(part).all() for part in learner.score(queries)[:2])


@pytest.mark.parametrize(("bits", "beyond"), [(16, 1e6), (32, 1e13), (64, 1e13)])
def test_features_far_from_the_first_are_refused(bits: int, beyond: float):
    x, y = samples({"a": 4, "b": 4})
    learner = make(kept_bits=bits, transform="none").learn(x[:4], y[:4])
    with pytest.raises(ValueError, match="scale them"):
        learner.learn(x[4:] * np.float32(beyond), y[4:])
    near = learner.learn(x[4:] * np.float32(beyond / 1e4), y[4:])
    assert all(np.isfinite(part).all() for part in save_and_load(near).score(x)[:2])


def test_one_class_alone_is_the_answer_to_everything():
    x, y = samples({"a": 5})
    for part in (slice(0, 1), slice(0, 5)):
        learner = make(kept_bits=16).learn(x[part], y[part])
        assert set(answers(learner, x * 3)) == {"a"}
        assert all(np.isfinite(part).all() for part in learner.score(x)[:2])


@pytest.mark.parametrize("bits", [16, 32])
def test_more_dimensions_than_samples_and_constant_features(bits: int):
    x, y = samples({"a": 3, "b": 2, "c": 4}, d=200)
    x[:, 50:] = 2.0
    assert answers(make(kept_bits=bits).learn(x, y), x) == y
    for value in (3.0, 0.0):
        same = np.full((6, 4), value, np.float32)
        assert np.isfinite(make(kept_bits=bits).learn(same, list("ababab")).score(same + 1).values).all()


def test_a_hundred_thousand_classes_of_one_sample():
    x = np.random.default_rng(0).normal(size=(100_000, 16)).astype(np.float32)
    learner = make(kept_bits=16).learn(x, list(range(len(x))))
    some = np.arange(0, len(x), 997)
    assert (learner.answer(x[some], 3).rows[:, 0] == some).mean() > 0.95
    assert learner.learn(x[:5] + np.float32(0.01), list(range(5))).counts()[:6].tolist() == [2] * 5 + [1]


@pytest.mark.parametrize(("d", "width", "left"), [(8, 3, 3), (8, 7, 7), (8, 8, 8), (8, 9, 8), (4097, None, 2048)])
def test_wide_features_are_projected_by_the_seed(d: int, width: int | None, left: int):
    x, y = np.random.default_rng(0).random((6, d)).astype(np.float32), list("ababab")
    learner = make(seed=5, kept_bits=32, width=width).learn(x, y)
    z = np.sqrt(x) @ signs(d, left, 5) if left < d else np.sqrt(x)
    plain = make(kept_bits=32, transform="none").learn(z, y)
    np.testing.assert_allclose(learner.score(x).values, plain.score(z).values, atol=1e-4)
    assert learner.class_vectors().shape == (2, left)
    other = make(seed=6, kept_bits=32, width=width).learn(x, y)
    assert np.allclose(other.score(x).values, plain.score(z).values, atol=1e-3) == (left == d)


def test_features_of_4096_are_not_projected():
    x = np.random.default_rng(0).random((2, 4096)).astype(np.float32)
    assert make(kept_bits=16).learn(x, ["a", "a"]).sums.means.shape == (1, 4096)


def test_what_answering_needs_is_computed_once_after_a_change(monkeypatch):
    x, y = samples({"a": 6, "b": 7})
    learner, computed, inverse = make().learn(x, y), [], np.linalg.inv
    monkeypatch.setattr(np.linalg, "inv", lambda matrix: computed.append(1) or inverse(matrix))
    judged, _ = learner.judged(x, y)
    learner.score(x)
    judged.score(x)
    assert len(computed) == 2  # of Σ's one block, and of the spread
    learner.learn(x, y).score(x)
    assert len(computed) == 4
