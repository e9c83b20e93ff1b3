"""The paper's learner as a whole."""

import dataclasses
import itertools

import numpy as np
import pytest
import torch
from every import assert_same, blobs, kind_of

from engram.learners import trying
from engram.learners.base import State
from engram.paper.engine import update
from engram.paper.outliers import inliers
from engram.paper.prototypes import Method, Prototypes, PrototypesConfig
from engram.testing import CHECKS

SMALL = PrototypesConfig(
    layers=(16, 8), base_epochs=8, increment_epochs=4, base_rate=1e-2, feature_rms=1.0, batch_size=16, center_epochs=3
)
VARIANTS = {
    "mas": dataclasses.replace(SMALL, consolidation="mas"),
    "si-lof-all-pairs": dataclasses.replace(SMALL, consolidation="si", outlier_exclusion=True, pairs="all"),
    "finetune": dataclasses.replace(SMALL, consolidation=None),
    "mas-8bit": dataclasses.replace(SMALL, consolidation="mas", kept_bits=8),
    "si-4bit": dataclasses.replace(SMALL, consolidation="si", kept_bits=4),
}


def learner(config: PrototypesConfig = SMALL, **changes: object) -> Prototypes:
    return Prototypes(dataclasses.replace(config, **changes), seed=3, device="cpu")  # type: ignore[arg-type]


def codes(made: Prototypes, X: np.ndarray) -> torch.Tensor:
    return made.encode(torch.from_numpy(X.astype(np.float32)))


def means(made: Prototypes) -> torch.Tensor:
    return made.tensors["classes.means"]


def scale_of(made: Prototypes) -> float:
    return float(made.tensors["network.feature_scale"])


@pytest.mark.parametrize(
    ("variant", "check"), list(itertools.product(VARIANTS, CHECKS)), ids=lambda it: getattr(it, "__name__", it)
)
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_check_learner(variant, check, device):
    """On a GPU also that nothing a captured step works on outlives the task."""
    check(lambda: Method.new(dataclasses.asdict(VARIANTS[variant]), seed=3).on(device))


@pytest.mark.parametrize("name", ["mas", "si", "mas-lof", "si-lof"])
def test_the_papers_configurations_are_methods(name):
    """Each is the general form with two settings made, and may change the others."""
    settings = {"layers": (16, 8), "base_epochs": 2, "increment_epochs": 2, "center_epochs": 2}
    rule, _, excludes = name.partition("-")
    config = kind_of(name).configure(settings)
    assert (config.consolidation, config.outlier_exclusion) == (rule, bool(excludes))
    general = PrototypesConfig(**settings, consolidation=rule, outlier_exclusion=bool(excludes))
    assert dataclasses.asdict(config) == dataclasses.asdict(general)
    named, general = kind_of(name).kind(config, device="cpu"), Prototypes(config, device="cpu")
    for each in (named, general):
        each.learn(*blobs(["a", "b"]))
        each.learn(*blobs(["c"]))
    assert_same(named, general)


def taught(config: PrototypesConfig, **changes: object) -> Prototypes:
    made = learner(config, **changes)
    made.learn(*blobs(["a", "b"]))
    made.learn(*blobs(["c"]))
    made.learn(*blobs(["d", "e"]))
    return made


@pytest.mark.parametrize("rule", ["mas", "si"])
def test_no_weight_on_the_penalty_is_no_consolidation_bit_for_bit(rule):
    plain = taught(SMALL, consolidation=None)
    idle = taught(SMALL, consolidation=rule, lambda_reg=0.0)
    held = taught(SMALL, consolidation=rule, lambda_reg=10.0)
    for name, tensor in plain.tensors.items():
        assert torch.equal(tensor, idle.tensors[name]), name
    assert not torch.equal(means(plain)[2:], means(held)[2:])


@pytest.mark.parametrize("rule", ["mas", "si"])
def test_a_heavy_penalty_holds_the_encoder_still(rule):
    def moved(strength: float) -> float:
        made = learner(consolidation=rule, lambda_reg=strength, increment_epochs=20)
        made.learn(*blobs(["a", "b"]))
        before = {k: v.clone() for k, v in made.tensors.items() if "encoder" in k and "network" in k}
        importance = made.importance
        made.learn(*blobs(["c"]))
        after = made.tensors
        return sum(
            float((importance[k.removeprefix("network.")] * (after[k] - v).square()).sum()) for k, v in before.items()
        )

    assert moved(1e4) < 0.1 * moved(0.0)


def test_an_increment_moves_the_encoder_and_nothing_else():
    made = learner()
    made.learn(*blobs(["a", "b"]))
    before = {name: tensor.clone() for name, tensor in made.tensors.items()}
    made.learn(*blobs(["c"]))
    after = made.tensors
    for name, tensor in before.items():
        if name.startswith("network.decoder"):
            assert torch.equal(after[name], tensor), name
        elif name.startswith("network.encoder"):
            assert not torch.equal(after[name], tensor), name
        elif name.startswith("consolidation"):
            assert (after[name] >= tensor).all(), name  # Ω is added up
            assert not torch.equal(after[name], tensor), name
    assert after["classes.means"][:2].numpy().tobytes() == before["classes.means"].numpy().tobytes()


def test_means_are_the_mean_codes_of_the_task_just_learned():
    made = learner()
    X, y = blobs(["a", "b"])
    made.learn(X, y)
    for row, label in enumerate(made.labels):
        torch.testing.assert_close(means(made)[row], codes(made, X[y == label]).mean(dim=0))
    assert made.counts().tolist() == [24, 24]


def test_prediction_is_the_nearest_mean_by_cosine():
    made = learner()
    X, y = blobs(["a", "b"])
    made.learn(X, y)
    samples, centres = codes(made, X).numpy(), means(made).numpy()
    cosine = (samples @ centres.T) / np.linalg.norm(samples, axis=1)[:, None] / np.linalg.norm(centres, axis=1)
    np.testing.assert_allclose(made.scores(X), cosine, atol=1e-5)
    assert made.predict(X).tolist() == [made.labels[i] for i in cosine.argmax(axis=1)]


def test_cleaned_means_are_those_without_outliers_from_before_the_additional_training():
    X, y = blobs(["a", "b"])
    X[0] = -X[0]  # an outlier of class a
    plain = learner(outlier_exclusion=False)
    cleaned = learner(outlier_exclusion=True)
    frozen = learner(outlier_exclusion=True, center_epochs=0)
    for each in (plain, cleaned, frozen):
        each.learn(X, y)
    kept = codes(plain, X[y == "a"])
    kept = kept[inliers(kept, torch.zeros(24, dtype=torch.int64), 20)]
    assert len(kept) < 24
    torch.testing.assert_close(means(cleaned)[0], kept.mean(dim=0))
    assert cleaned.counts()[0] == len(kept)
    # L_add moves the encoder towards the means, not the means, and never the decoder
    assert torch.equal(means(cleaned), means(frozen))
    one, two = cleaned.tensors, frozen.tensors
    assert not torch.equal(one["network.encoder.0.weight"], two["network.encoder.0.weight"])
    assert torch.equal(one["network.decoder.0.weight"], two["network.decoder.0.weight"])

    def spread(made: Prototypes) -> float:
        return float((codes(made, X[y == "b"]) - means(made)[1]).square().sum())

    assert spread(cleaned) < spread(frozen)


def test_importance_accumulates_on_through_the_additional_training():
    X, y = blobs(["a", "b"])
    without = learner(outlier_exclusion=True, center_epochs=0)
    with_it = learner(outlier_exclusion=True, center_epochs=3)
    for each in (without, with_it):
        each.learn(X, y)
    assert with_it.importance["encoder.0.weight"].sum() > without.importance["encoder.0.weight"].sum()


def test_mas_importance_is_the_trace_over_the_samples(monkeypatch):
    """Re-derived: Σ over steps of |gradient of the task's loss|, divided by the number of samples."""
    total: dict[int, torch.Tensor] = {}
    real = update.update

    def spy(slot, gradient, *rest):
        if slot.trace is not None and slot.theta.numel() == 16 * 8:
            summed = total.get(slot.theta.numel(), torch.zeros_like(gradient))
            total[slot.theta.numel()] = summed + gradient.abs()
        real(slot, gradient, *rest)

    monkeypatch.setattr(update, "update", spy)
    made = Prototypes(dataclasses.replace(SMALL, layers=(16, 5)), device="cpu")
    X, y = blobs(["a", "b"])
    made.learn(X, y)
    torch.testing.assert_close(made.importance["encoder.0.weight"].reshape(-1), total[128] / len(X))


def test_importance_does_not_feed_on_itself():
    """With the penalty's gradient in MAS's trace, Ω multiplied with every class until nothing was finite."""
    made = learner(consolidation="mas", lambda_reg=1000.0, increment_epochs=10, increment_rate=1e-2)
    made.learn(*blobs(["a", "b"]))
    omega = []
    for number in range(40):
        made.learn(*blobs([f"class {number}"], n=2))
        omega.append(float(sum(tensor.sum() for tensor in made.importance.values())))
    assert omega[39] - omega[19] < 2 * (omega[19] - omega[0]), "Ω is a sum over classes, about linear in their number"


def test_features_are_scaled_to_the_recorded_rms_of_the_base_data():
    made = learner(feature_rms=0.25)
    X, y = blobs(["a", "b"])
    made.learn(X, y)
    assert np.sqrt(np.mean((X * scale_of(made)) ** 2)) == pytest.approx(0.25, rel=1e-5)
    scale = scale_of(made)
    made.learn(blobs(["c"])[0] * 100, ["c"] * 24)
    assert scale_of(made) == scale
    untouched = learner(feature_rms=None)
    untouched.learn(X, y)
    assert scale_of(untouched) == 1.0


def test_the_unit_of_the_features_is_no_part_of_the_result():
    X, y = blobs(["a", "b"])
    one, other = learner(feature_rms=0.25), learner(feature_rms=0.25)
    one.learn(X, y)
    other.learn(X * 8, y)  # a power of two: no rounding
    np.testing.assert_allclose(one.scores(X), other.scores(X * 8), atol=1e-6)


def test_more_data_of_a_known_class():
    made = learner()
    made.learn(*blobs(["a", "b"]))
    before = means(made).clone()
    X, y = blobs(["a"], n=8, seed=5)
    made.learn(X, y)
    assert made.labels == ["a", "b"]
    assert made.counts().tolist() == [32, 24]
    expected = (before[0] * 24 + codes(made, X).sum(dim=0)) / 32
    torch.testing.assert_close(means(made)[0], expected)
    assert torch.equal(means(made)[1], before[1])


def test_a_last_batch_of_one_and_batches_of_one():
    for config in ({"batch_size": 16, "pairs": "random"}, {"batch_size": 16, "pairs": "all"}, {"batch_size": 1}):
        made = learner(**config)
        X, y = blobs(["a", "b"])
        made.learn(X[:33], y[:33])
        assert all(torch.isfinite(tensor).all() for tensor in made.tensors.values())


def test_progress_tells_every_epoch():
    told = []
    made = learner(outlier_exclusion=True)
    made.learn(*blobs(["a", "b"]), progress=told.append)
    assert [(p.phase, p.epoch) for p in told] == [("base", i) for i in range(1, 9)] + [
        ("center", i) for i in range(1, 4)
    ]
    assert told[7].loss < told[0].loss


def test_a_slim_file_of_before_answers_the_same_and_says_why_it_cannot_learn():
    made = Method.new(dataclasses.asdict(SMALL)).learn(*trying.blobs("ab"))
    state = made.state()
    kept = {n: a for n, a in state.arrays.items() if not n.startswith(("network.decoder", "consolidation"))}
    slim = Method.from_state(State(kept, {**state.meta, "slim": True}))
    x, _ = trying.blobs("ab")
    assert np.array_equal(slim.score(x).values, made.score(x).values)
    assert (made.can_learn, slim.can_learn) == (True, False)
    with pytest.raises(ValueError, match="saved slim"):
        slim.learn(*trying.blobs("c"))


@pytest.mark.parametrize(
    "bad",
    [
        {"layers": ()},
        {"consolidation": "ewc"},
        {"pairs": "some"},
        {"feature_rms": 0.0},
        {"base_rate": -1.0},
        {"batch_size": 0},
    ],
)
def test_impossible_settings_are_refused_by_name(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        PrototypesConfig(**bad)


def test_an_unknown_device_is_refused():
    with pytest.raises(ValueError, match="warp"):
        Prototypes(device="warp")


def test_one_class_alone_is_trained_without_the_cosine_loss():
    """Eq. 13: L_cos is left out when a task holds one class, and only then."""

    def increment(labels: list[str], weight: float) -> torch.Tensor:
        made = learner()
        made.learn(*blobs(["a", "b"]))
        made.config = dataclasses.replace(made.config, lambda_cos=weight)
        made.learn(*blobs(labels))
        return means(made)

    assert torch.equal(increment(["c"], 10.0), increment(["c"], 500.0))
    assert not torch.equal(increment(["c", "d"], 10.0), increment(["c", "d"], 500.0))


def test_eight_bits_keep_the_decoder_and_the_importance_in_a_quarter_of_the_room():
    X, y = blobs(["a", "b"], width=256)
    full, packed = learner(layers=(128, 64)), learner(layers=(128, 64), kept_bits=8)
    for each in (full, packed):
        each.learn(X, y)
        each.learn(*blobs(["c"], width=256))

    def rest(made: Prototypes) -> int:
        return sum(t.nbytes for name, t in made.tensors.items() if "decoder" in name or "importance" in name)

    assert rest(packed) < 0.28 * rest(full)  # scales and the few vectors are kept as they are
    assert packed.tensors["network.decoder.0.weight.codes"].dtype == torch.int8
    assert packed.tensors["consolidation.importance.encoder.0.weight.codes"].dtype == torch.uint8
    for name, omega in full.importance.items():
        close = packed.importance[name]
        assert (close - omega).norm() < 0.05 * omega.norm(), name
    # What is needed to predict is exact: the base classes' means are the same bits.
    assert torch.equal(means(packed)[:2], means(full)[:2])
    torch.testing.assert_close(means(packed)[2], means(full)[2], rtol=0.05, atol=0.02)


def test_four_bits_take_half_of_that_for_the_importance():
    made = {bits: learner(layers=(128, 64), kept_bits=bits) for bits in (32, 8, 4)}
    room = {}
    for bits, each in made.items():
        each.learn(*blobs(["a", "b"], width=256))
        each.learn(*blobs(["c"], width=256))
        room[bits] = sum(t.nbytes for name, t in each.tensors.items() if name.startswith("consolidation."))
    assert room[4] < 0.55 * room[8] < 0.16 * room[32]
    for name, omega in made[32].importance.items():
        assert (made[4].importance[name] - omega).norm() < 0.2 * omega.norm(), name
    torch.testing.assert_close(means(made[4])[2], means(made[32])[2], rtol=0.1, atol=0.05)


def test_the_packed_decoder_does_not_move_from_increment_to_increment():
    made = learner(kept_bits=8)
    made.learn(*blobs(["a", "b"]))
    before = {name: tensor.clone() for name, tensor in made.tensors.items() if name.startswith("network.decoder")}
    made.learn(*blobs(["c"]))
    made.learn(*blobs(["d"]))
    for name, tensor in before.items():
        assert torch.equal(made.tensors[name], tensor), name


def test_a_state_whose_parts_do_not_fit_together_is_refused():
    state = Method.new(dataclasses.asdict(SMALL)).learn(*trying.blobs("ab")).state()
    with pytest.raises(ValueError, match=r"network.encoder.0.weight has the shape \[16, 8\], and not \[16, 5\]"):
        Method.from_state(State(state.arrays, {**state.meta, "n_features": 5}))
