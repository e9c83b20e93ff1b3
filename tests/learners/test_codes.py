"""The paper's four, asked without the paper's method: codes by plain loops, and what is said where nothing teaches."""

from itertools import pairwise
from math import expm1, sqrt

import numpy as np
import pytest

from engram.learners import registry
from engram.learners.base import State
from engram.learners.codes import MAS, Codes
from engram.learners.registry import MissingMethodError
from engram.learners.trying import assert_same_state, save_and_load

CONFIG = {"layers": [3, 2], "consolidation": "mas", "kept_bits": 32}


def state(config: dict[str, object] = CONFIG, *, slim: bool = False) -> State:
    """A network of 4, 3 and 2 units that knows three classes."""
    random = np.random.default_rng(0)

    def layers(prefix: str, *sizes: int) -> dict[str, np.ndarray]:
        made = {}
        for number, (inputs, outputs) in enumerate(pairwise(sizes)):
            made[f"{prefix}{2 * number}.weight"] = random.normal(size=(outputs, inputs)).astype(np.float32)
            made[f"{prefix}{2 * number}.bias"] = random.normal(size=outputs).astype(np.float32)
        return made

    arrays = {
        "network.feature_scale": np.array(0.5, np.float32),
        **layers("network.encoder.", 4, 3, 2),
        "classes.means": random.normal(size=(3, 2)).astype(np.float32),
        "classes.counts": np.array([5, 0, 7]),
    }
    if not slim:
        arrays |= layers("network.decoder.", 2, 3, 4) | layers("consolidation.importance.encoder.", 4, 3, 2)
    labels = ["a", "b", "c"]
    meta = {"config": config, "seed": 1, "tasks_learned": 2, "n_features": 4, "labels": labels, "slim": slim}
    return State(arrays, meta)


def by_hand(arrays: dict[str, np.ndarray], x: np.ndarray) -> list[float]:
    values = [float(one) * 0.5 for one in x]
    for number in (0, 2):
        weight, bias = (arrays[f"network.encoder.{number}.{name}"].tolist() for name in ("weight", "bias"))
        sums = [sum(w * v for w, v in zip(row, values, strict=True)) + b for row, b in zip(weight, bias, strict=True)]
        values = [one if one > 0 else expm1(one) for one in sums]
    cosines = []
    for mean in arrays["classes.means"].tolist():
        lengths = sqrt(sum(m * m for m in mean) * sum(v * v for v in values))
        cosines.append(sum(m * v for m, v in zip(mean, values, strict=True)) / lengths)
    return cosines


@pytest.mark.parametrize("name", ["mas", "si", "mas-lof", "si-lof", "prototypes"])
@pytest.mark.parametrize("slim", [False, True])
def test_answers_are_cosines_of_codes(name: str, slim: bool):
    learner = registry.find(name).from_state(state(slim=slim))
    x = np.random.default_rng(1).normal(size=(9, 4)).astype(np.float32) * 3
    expected = [by_hand(state().arrays, one) for one in x]
    np.testing.assert_allclose(learner.score(x).values, expected, rtol=1e-4, atol=1e-5)
    assert (learner.method, learner.score(x).novelty) == (name, None)
    assert learner.can_learn != slim


def test_it_is_written_as_it_was_forgets_and_renames():
    learner = MAS.from_state(state())
    assert_same_state(learner.state(), state())
    less = save_and_load(learner.forget("b").rename("c", "z"))
    assert (less.labels, less.counts().tolist()) == (("a", "z"), [5, 7])
    assert np.array_equal(less.class_vectors(), state().arrays["classes.means"][[0, 2]])
    with pytest.raises(ValueError, match="a class of that name exists"):
        learner.rename("a", "b")
    none = save_and_load(less.forget("a").forget("z"))
    with pytest.raises(ValueError, match="no class is known"):
        none.score(np.zeros((1, 4), np.float32))


def test_the_first_files_say_their_scale_in_the_header_and_not_that_they_are_slim():
    for slim in (False, True):
        first = state(slim=slim)
        scale = float(first.arrays.pop("network.feature_scale"))
        del first.meta["slim"]
        first.meta["feature_scale"] = scale
        assert_same_state(MAS.from_state(first).state(), state(slim=slim))


def test_without_the_extra_it_is_asked_and_not_taught(monkeypatch):
    monkeypatch.setattr(registry, "_others", dict)
    learner = MAS.from_state(state())
    for impossible in (
        lambda: MAS.new(),
        lambda: learner.learn(np.zeros((1, 4), np.float32), ["a"]),
        learner.drift,
    ):
        with pytest.raises(MissingMethodError, match="no method is called 'mas'"):
            impossible()
    assert MAS.from_state(state(slim=True)).drift() is None


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"layers": []}, "its layers are"),
        ({"layers": [3, -2]}, "its layers are"),
        ({"layers": [3, "2"]}, "its layers are"),
        ({"layers": [3, 3]}, "has the shape"),
        ({"consolidation": None}, "which a model of this method and these settings does not keep"),
        ({"kept_bits": 8}, "it has no network.decoder.0.weight.scale"),
    ],
)
def test_settings_that_do_not_fit_what_is_kept_are_refused(config: dict[str, object], said: str):
    with pytest.raises(ValueError, match=said):
        Codes.from_state(state(CONFIG | config))


@pytest.mark.parametrize("gone", sorted(state().arrays))
def test_an_array_that_is_missing_is_named(gone: str):
    whole = state()
    with pytest.raises(ValueError, match=gone):
        MAS.from_state(State({name: array for name, array in whole.arrays.items() if name != gone}, whole.meta))


def test_the_decoder_and_what_is_held_may_lie_in_four_bits_or_eight():
    whole, packed = state(CONFIG | {"kept_bits": 4}), {}
    for name, array in whole.arrays.items():
        if name.startswith(("network.decoder.", "consolidation.")) and array.ndim == 2:
            packed[f"{name}.scale"] = np.ones((len(array), 1), np.float32)
            even = array.shape[1] % 2 == 0
            packed[f"{name}.nibbles" if even else f"{name}.codes"] = np.zeros(
                (len(array), array.shape[1] // 2 if even else array.shape[1]), np.uint8
            )
        else:
            packed[name] = array
    learner = MAS.from_state(State(packed, whole.meta))
    assert_same_state(learner.state(), State(packed, whole.meta))
