"""A state that no learner of its method has is refused when it is read, in one line that names what is wrong."""

import functools

import numpy as np
import pytest

from engram.learners import registry
from engram.learners.absent import Absent
from engram.learners.base import State
from engram.learners.layout import SAMPLES, Kept, require_layout, whole
from engram.learners.registry import MissingMethodError
from engram.learners.trying import blobs, teach

VARIANTS = {
    "whitened": ("whitened", {}),
    "whitened in 32": ("whitened", {"kept_bits": 32}),
    "whitened in 64": ("whitened", {"kept_bits": 64, "width": 5}),
    "imagenet": ("imagenet", {}),
    "slda": ("slda", {}),
    "ncm": ("ncm", {}),
    "1nn": ("1nn", {}),
}
variants = pytest.mark.parametrize("variant", VARIANTS)
ADDED = {"consolidation.calibration", "consolidation.newest"}  # since the first files: may be missing


@functools.cache
def taught(variant: str) -> State:
    name, settings = VARIANTS[variant]
    learner = teach(lambda: registry.find(name).new(settings), "ab", "c", n=6)
    return learner.judged(*blobs("c", 6))[0].state()


def refusal(variant: str, arrays: dict[str, np.ndarray], meta: dict[str, object]) -> str:
    """What is said; nothing if the state is taken."""
    try:
        registry.find(VARIANTS[variant][0]).from_state(State(arrays, meta))
    except ValueError as error:
        assert "\n" not in str(error)
        return str(error)
    return ""


@variants
def test_an_array_that_is_missing_or_one_too_many_is_named(variant: str):
    state = taught(variant)
    assert refusal(variant, state.arrays, state.meta) == ""
    for gone in state.arrays:
        said = refusal(variant, {n: a for n, a in state.arrays.items() if n != gone}, state.meta)
        assert gone in said or (gone in ADDED and not said), gone
    for more in ("classes.more", "network.more", "samples.more"):
        said = refusal(variant, {**state.arrays, more: np.zeros(3)}, state.meta)
        assert said.startswith(f"it holds {more}, which")


@variants
def test_another_shape_or_number_format_is_named(variant: str):
    state = taught(variant)
    for changed, array in state.arrays.items():
        larger = [np.concatenate([array, np.take(array, [0], axis=i)], axis=i) for i in range(array.ndim)]
        for wrong in (*larger, array[None], array.astype(bool), array.astype(np.complex64)):
            said = refusal(variant, {**state.arrays, changed: wrong}, state.meta)
            assert changed in said or "samples." in said or "fit together" in said, (changed, wrong.shape, wrong.dtype)


@variants
def test_whole_numbers_out_of_their_bounds_are_named(variant: str):
    state = taught(variant)
    for changed, array in state.arrays.items():
        if array.dtype.kind == "i":
            wrong = array.copy()
            wrong.reshape(-1)[-1] = -1
            assert refusal(variant, {**state.arrays, changed: wrong}, state.meta).startswith(
                f"{changed} holds -1, which"
            )
        if changed in ("samples.targets", "consolidation.newest"):
            said = refusal(variant, {**state.arrays, changed: array + 3}, state.meta)
            assert "out of its bounds" in said or "fit together" in said


@pytest.mark.parametrize(
    ("changed", "value"),
    [
        ("consolidation.unit", -1.0),
        ("consolidation.unit", 1e300),
        ("consolidation.scatter", 60000.0),
        ("consolidation.scatter", -60000.0),
        ("consolidation.samples", 0),
        ("classes.counts", 0),
    ],
)
def test_what_whitening_multiplies_has_bounds(changed: str, value: float):
    """Beyond them its numbers would not be finite, and no amount added to a diagonal would ever be enough."""
    state = taught("whitened")
    wrong = np.full_like(state.arrays[changed], value)
    assert "out of its bounds" in refusal("whitened", {**state.arrays, changed: wrong}, state.meta)


@pytest.mark.parametrize(("at", "value"), [(0, -1.0), (1, -1.0), (2, 800.0), (2, -800.0), (100, -1.0)])
def test_what_is_calibrated_has_bounds(at: int, value: float):
    state = taught("whitened")
    wrong = state.arrays["consolidation.calibration"].copy()
    wrong[at] = value
    said = refusal("whitened", {**state.arrays, "consolidation.calibration": wrong}, state.meta)
    assert said == f"consolidation.calibration holds {value:g}, which is out of its bounds"


@pytest.mark.parametrize(("name", "array"), [("slda", "classes.counts"), ("ncm", "classes.counts")])
def test_a_class_without_a_sample_is_none(name: str, array: str):
    state = taught(name)
    assert "out of its bounds" in refusal(name, {**state.arrays, array: np.array([1, 0, 1])}, state.meta)


def test_a_class_without_a_stored_sample_is_none():
    state = taught("1nn")
    targets = np.minimum(state.arrays["samples.targets"], 1)
    assert "fit together" in refusal("1nn", {**state.arrays, "samples.targets": targets}, state.meta)


DESCRIPTIONS = [
    ({"seed": "x"}, "seed must be a whole number, not 'x'"),
    ({"seed": -1}, "seed must be at least 0 and have less than 64 bits, not -1"),
    ({"seed": 2**63}, "seed must be at least 0 and have less than 64 bits"),
    ({"seed": True}, "seed must be a whole number, not True"),
    ({"tasks_learned": 1.5}, "tasks_learned must be a whole number, not 1.5"),
    ({"tasks_learned": -1}, "tasks_learned must be at least 0"),
    ({"tasks_learned": 0}, "do not fit together"),
    ({"n_features": 0}, "n_features must be at least 1"),
    ({"n_features": None}, "fit together"),
    ({"labels": "abc"}, "each has one of its own"),
    ({"labels": ["a", "b", "b"]}, "each has one of its own"),
    ({"labels": ["a", "b", None]}, "each has one of its own"),
    ({"labels": ["a", "b", 3]}, "each has one of its own"),
    ({"labels": [1.5, 2.5, 3.5]}, "a text or a whole number"),
    ({"labels": [True, False]}, "a text or a whole number"),
    ({"labels": ["a", "b"]}, "fit together"),
    ({"tasks_learned": 0, "labels": []}, "fit together"),
]


@pytest.mark.parametrize(("changes", "said"), DESCRIPTIONS, ids=str)
@pytest.mark.parametrize("variant", ["whitened", "ncm"])
def test_a_description_that_no_learner_gives_is_refused(variant: str, changes: dict[str, object], said: str):
    state = taught(variant)
    assert said in refusal(variant, state.arrays, {**state.meta, **changes})
    with pytest.raises(ValueError, match=r".") as refused:  # also where the method is not here
        Absent.of("gone", State(state.arrays, {**state.meta, **changes}), None, "it is gone")
    assert said in str(refused.value)


@pytest.mark.parametrize("width", [9, 10**9])
@pytest.mark.parametrize("variant", ["whitened", "ncm", "slda", "1nn"])
def test_another_number_of_features_is_refused(variant: str, width: int):
    state = taught(variant)
    assert "has the shape" in refusal(variant, state.arrays, {**state.meta, "n_features": width})


def test_settings_in_a_file_are_checked_as_typed_ones_are():
    state = taught("whitened")
    config = state.meta["config"]
    for change in ({"kept_bits": 8}, {"width": 0}, {"colour": "red"}):
        assert next(iter(change)) in refusal("whitened", state.arrays, {**state.meta, "config": config | change})


def test_an_untaught_learner_has_no_arrays():
    state = taught("ncm")
    meta = {**state.meta, "tasks_learned": 0, "labels": [], "n_features": None}
    assert refusal("ncm", {name: array[:0] for name, array in state.arrays.items()}, meta).startswith(
        "it holds classes."
    )
    assert refusal("ncm", {}, meta) == ""


def test_samples_are_as_many_everywhere():
    layout = {"a": Kept((SAMPLES, 2)), "b": whole(SAMPLES, most=4), "c": Kept((1,), optional=True)}
    a, b = np.zeros((3, 2), np.float32), np.array([0, 4, 1])
    require_layout({"a": a, "b": b}, layout)
    require_layout({"a": a[:0], "b": b[:0]}, layout)
    with pytest.raises(ValueError, match=r"(a|b) has the shape"):
        require_layout({"a": a, "b": b[:2]}, layout)
    with pytest.raises(ValueError, match="b holds 5, which is out of its bounds"):
        require_layout({"a": a, "b": b + 1}, layout)
    with pytest.raises(ValueError, match=r"c has the shape \[2\], and not \[1\]"):
        require_layout({"a": a, "b": b, "c": np.zeros(2, np.float32)}, layout)


# --- a method that is not here ----------------------------------------------------------------------------------------


def absent(**recorded: object) -> Absent:
    state = taught("ncm")
    said = registry.find("ncm").described() | recorded
    return Absent.of("theirs", state, said, "install theirs")


def test_a_model_whose_method_is_missing_is_looked_at_and_says_so_when_it_is_asked():
    one, (x, y) = absent(leaves_out=False, title="Theirs"), blobs("ab")
    assert (one.method, one.labels, one.counts().tolist()) == ("theirs", ("a", "b", "c"), [6, 6, 6])
    assert (one.described()["title"], one.described()["leaves_out"]) == ("Theirs", False)
    assert (one.can_learn, one.seed, one.updates, one.n_features) == (True, 0, 2, 8)
    for impossible in (
        lambda: one.learn(x, y), lambda: one.score(x), lambda: one.answer(x), lambda: one.forget("a"),
        lambda: one.rename("a", "z"), lambda: Absent.from_state(one.state()),
    ):  # fmt: skip
        with pytest.raises(MissingMethodError):
            impossible()


def test_its_state_is_what_was_read():
    one = absent()
    assert one.state() is one.kept
    assert one.state().memory() == taught("ncm").memory()


def test_files_that_say_nothing_of_a_method_are_of_one_that_is_known():
    one = Absent.of("icarl", State({}, taught("ncm").meta | {"config": {"base_epochs": 3}}), None, "")
    assert (one.described()["title"], one.described()["keeps_samples"], one.described()["trains"]) == (
        "iCaRL",
        True,
        True,
    )
    other = Absent.of("nobody's", State({}, taught("ncm").meta), None, "")
    assert (other.described()["title"], other.described()["trains"]) == ("nobody's", False)


@pytest.mark.parametrize("change", [{"title": 3}, {"keeps_samples": "yes"}, {"leaves_out": None}])
def test_what_a_file_says_of_its_method_is_checked(change: dict[str, object]):
    with pytest.raises(ValueError, match=next(iter(change))):
        absent(**change)


def test_an_unknown_method_is_named_and_those_that_there_are():
    with pytest.raises(MissingMethodError, match=r"'unheard-of'; there are whitened, imagenet"):
        registry.find("unheard-of")
    assert [registry.find(name).method for name in registry.BUILT_IN] == list(registry.BUILT_IN)
