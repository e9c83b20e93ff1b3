"""A state that no learner of its method has is refused when it is read, in one line that names what is wrong."""

import functools
import json

import numpy as np
import pytest
import torch
from every import make, quick, slimmed

from engram import IncrementalClassifier
from engram.errors import ModelFileError
from engram.io import model_file
from engram.learner import MOST_EPOCHS, State
from engram.methods import METHODS
from engram.nn.layout import SAMPLES, Kept, floats, require_layout, whole
from engram.testing import assert_same_state, blobs, teach

# Settings that change which tensors there are, beside each method's own.
VARIANTS = [(name, {}) for name in METHODS] + [
    ("whitened", {"kept_bits": 32}),
    ("whitened", {"kept_bits": 64}),
    ("whitened", {"encoder": {"layers": (6, 4), "base_epochs": 1}}),
    ("mas", {"kept_bits": 8}),
    ("mas", {"kept_bits": 4}),
    ("si", {"kept_bits": 4, "layers": (16, 5)}),
    ("prototypes", {"consolidation": None}),
]
variants = pytest.mark.parametrize(
    ("name", "changes"), VARIANTS, ids=lambda value: value if isinstance(value, str) else ",".join(value) or "-"
)


@functools.cache
def taught(name: str, changes: str) -> State:
    return teach(lambda: make(name, **json.loads(changes)), ["a", "b"], ["c"], n=6).state()


def state_of(name: str, changes: dict[str, object]) -> State:
    return taught(name, json.dumps(changes))


def refusal(name: str, tensors: dict[str, torch.Tensor], meta: dict[str, object]) -> str:
    """What is said; nothing if the state is taken."""
    try:
        METHODS[name].from_state(State(tensors, meta), "cpu")
    except ValueError as error:
        assert "\n" not in str(error)
        return str(error)
    return ""


@variants
def test_what_a_method_keeps_is_what_it_says_it_keeps(name, changes):
    learner = METHODS[name].from_state(state_of(name, changes), "cpu")
    assert learner._layout(3, 8) is not None
    for state in (learner.state(), slimmed(learner)):
        assert refusal(name, state.tensors, state.meta) == ""
    learner.forget("b")
    assert refusal(name, learner.state().tensors, learner.state().meta) == ""
    learner.forget("a")
    learner.forget("c")
    assert refusal(name, learner.state().tensors, learner.state().meta) == ""
    untaught = make(name, **changes).state()
    assert refusal(name, untaught.tensors, untaught.meta) == ""


@variants
def test_a_tensor_that_is_missing_or_one_too_many_is_named(name, changes):
    state = state_of(name, changes)
    for gone in state.tensors:
        if gone != "consolidation.calibration":  # which is measured only where it can be
            said = refusal(name, {n: t for n, t in state.tensors.items() if n != gone}, state.meta)
            packed = gone.removesuffix(".nibbles")
            assert gone in said or packed in said or "fit together" in said, gone
    for more in ("classes.more", "network.more", "samples.more", "examples.7"):
        said = refusal(name, {**state.tensors, more: torch.zeros(3)}, state.meta)
        assert said.startswith(f"it holds {more}, which a model of this method and these settings does not keep")
    slim = {**state.meta, "slim": True}
    if METHODS[name].only_for_learning:
        assert refusal(name, state.tensors, slim).startswith("it holds ")
        assert refusal(name, slimmed(METHODS[name].from_state(state, "cpu")).tensors, state.meta)


@variants
def test_another_shape_or_number_format_is_named(name, changes):
    state = state_of(name, changes)
    for changed, tensor in state.tensors.items():
        larger = [torch.cat([tensor, tensor.narrow(i, 0, 1)], dim=i) for i in range(tensor.ndim)]
        for wrong in (*larger, tensor[None], tensor.bool(), tensor.to(torch.complex64)):
            said = refusal(name, {**state.tensors, changed: wrong}, state.meta)
            other = changed.startswith("samples.") and "samples." in said  # one of those that no longer fit
            assert changed in said or other or "fit together" in said, (changed, tuple(wrong.shape), wrong.dtype)
        if tensor.dtype == torch.float32 and (name, changed) != ("whitened", "consolidation.scatter"):
            said = refusal(name, {**state.tensors, changed: tensor.half()}, state.meta)
            assert said.startswith(f"{changed} is float16, and not float32")


@variants
def test_whole_numbers_out_of_their_bounds_are_named(name, changes):
    state = state_of(name, changes)
    for changed, tensor in state.tensors.items():
        if tensor.dtype in (torch.int32, torch.int64):
            wrong = tensor.clone()
            wrong.view(-1)[-1] = -1
            assert refusal(name, {**state.tensors, changed: wrong}, state.meta).startswith(f"{changed} holds -1, which")
        if changed in ("samples.targets", "consolidation.newest"):
            said = refusal(name, {**state.tensors, changed: tensor + 3}, state.meta)
            assert "out of its bounds" in said or "fit together" in said


def test_what_whitening_multiplies_has_bounds():
    """Beyond them its numbers would not be finite, and no amount added to a diagonal would ever be enough."""
    state = state_of("whitened", {})
    for changed, value in (
        ("consolidation.unit", -1.0),
        ("consolidation.unit", 1e300),
        ("consolidation.scatter", 60000.0),
        ("consolidation.scatter", -60000.0),
        ("consolidation.samples", 0),
        ("classes.counts", 0),
    ):
        wrong = torch.full_like(state.tensors[changed], value)
        assert "out of its bounds" in refusal("whitened", {**state.tensors, changed: wrong}, state.meta), changed
    for at, value in ((0, -1.0), (2, 800.0), (2, -800.0), (100, -1.0)):
        wrong = state.tensors["consolidation.calibration"].clone()
        wrong[at] = value
        said = refusal("whitened", {**state.tensors, "consolidation.calibration": wrong}, state.meta)
        assert said == f"consolidation.calibration holds {value:g}, which is out of its bounds"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": "x"}, "seed must be a whole number, not 'x'"),
        ({"seed": -1}, "seed must be at least 0 and have less than 64 bits, not -1"),
        ({"seed": 2**63}, "seed must be at least 0 and have less than 64 bits"),
        ({"seed": True}, "seed must be a whole number, not True"),
        ({"tasks_learned": 1.5}, "tasks_learned must be a whole number, not 1.5"),
        ({"tasks_learned": -1}, "tasks_learned must be at least 0"),
        ({"tasks_learned": 0}, "its classes, its number of tasks and its number of features do not fit together"),
        ({"n_features": 0}, "n_features must be at least 1"),
        ({"n_features": None}, "its classes, its number of tasks and its number of features do not fit together"),
        ({"n_features": 9}, "has the shape"),
        ({"n_features": 10**9}, "has the shape"),
        ({"slim": 1}, "slim must be true or false, not 1"),
        ({"labels": "abc"}, "each has one of its own"),
        ({"labels": ["a", "b", "b"]}, "each has one of its own"),
        ({"labels": ["a", "b", None]}, "a label must be a str or an int"),
        ({"labels": ["a", "b", 3]}, "labels mix"),
        ({"tasks_learned": 0, "labels": []}, "fit together"),
    ],
)
@pytest.mark.parametrize("name", ["whitened", "ncm", "mas", "ewc"])
def test_a_description_that_no_learner_gives_is_refused(name, changes, said):
    state = state_of(name, {})
    assert said in refusal(name, state.tensors, {**state.meta, **changes})


def test_an_untaught_learner_has_no_tensors():
    state = state_of("ncm", {})
    meta = {**state.meta, "tasks_learned": 0, "labels": [], "n_features": None}
    tensors = {name: tensor[:0] for name, tensor in state.tensors.items()}
    assert refusal("ncm", tensors, meta).startswith("it holds classes.")
    assert refusal("ncm", {}, meta) == ""


EPOCHS = [
    (name, setting)
    for name, kind in METHODS.items()
    for setting in kind.config_type.__dataclass_fields__
    if setting.endswith("_epochs")
]


@pytest.mark.parametrize(("name", "setting"), EPOCHS)
def test_epochs_have_an_end_whether_typed_or_in_a_file(name, setting):
    said = f"{setting} must be "  # deepncm's are always 0
    kind = METHODS[name]
    with pytest.raises(ValueError, match=said):
        kind.configure({setting: MOST_EPOCHS + 1})
    state = state_of(name, {})
    assert refusal(name, state.tensors, {**state.meta, "config": {**state.meta["config"], setting: 10**9}}).startswith(
        said
    )
    if name != "deepncm":
        kind.configure({setting: MOST_EPOCHS})


def test_the_settings_of_an_encoder_have_these_limits_too():
    with pytest.raises(ValueError, match="base_epochs must be at most 100,000"):
        METHODS["whitened"].configure({"encoder": {"base_epochs": 10**9}})


def test_samples_are_as_many_everywhere():
    layout = {"a": floats(SAMPLES, 2), "b": whole(SAMPLES, most=4), "c": Kept((1,), optional=True)}
    a, b = torch.zeros(3, 2), torch.tensor([0, 4, 1])
    require_layout({"a": a, "b": b}, layout)
    require_layout({"a": a[:0], "b": b[:0]}, layout)
    with pytest.raises(ValueError, match=r"(a|b) has the shape"):
        require_layout({"a": a, "b": b[:2]}, layout)
    with pytest.raises(ValueError, match="b holds 5, which is out of its bounds"):
        require_layout({"a": a, "b": b + 1}, layout)
    with pytest.raises(ValueError, match=r"c has the shape \[2\], and not \[1\]"):
        require_layout({"a": a, "b": b, "c": torch.zeros(2)}, layout)


def rewrite(path, change):
    """The same file with another content and a right checksum."""
    tensors, header = model_file.read(path)
    change(tensors, header)
    model_file.write(path, tensors, {name: value for name, value in header.items() if name != "tensors"})


@pytest.mark.parametrize("name", METHODS)
def test_a_signed_file_without_a_tensor_is_not_loaded(name, tmp_path):
    clf, learner = IncrementalClassifier(name, device="cpu"), METHODS[name].from_state(state_of(name, {}), "cpu")
    clf.learner_, clf._recorded, clf.notes_ = learner, None, {}
    clf.save(tmp_path / "m")
    assert IncrementalClassifier.load(tmp_path / "m", device="cpu").predict(np.zeros((1, 8))).shape == (1,)
    gone = next(iter(learner.tensors))
    rewrite(tmp_path / "m", lambda tensors, header: tensors.pop(gone))
    with pytest.raises(ModelFileError, match=r"m is not a model this version can use: it(s classes| has no)") as said:
        IncrementalClassifier.load(tmp_path / "m", device="cpu")
    assert "\n" not in str(said.value)


def test_pictures_held_back_in_files_of_before_are_dropped_by_the_next_save(tmp_path):
    clf = IncrementalClassifier("ncm", device="cpu").fit(*blobs(["a", "b"]))
    clf.save(tmp_path / "m")

    def hold_back(tensors, header):
        tensors["examples.0"] = torch.zeros(2, 8, dtype=torch.float16)
        header["examples"] = ["a"]

    rewrite(tmp_path / "m", hold_back)
    older = IncrementalClassifier.load(tmp_path / "m", device="cpu")
    assert_same_state(older.learner_.state(), clf.learner_.state())
    older.save(tmp_path / "m")
    tensors, header = model_file.read(tmp_path / "m")
    assert "examples.0" not in tensors
    assert "examples" not in header
    rewrite(tmp_path / "m", lambda tensors, header: header.update(examples=["a"]))
    with pytest.raises(ModelFileError, match="is not a model this version can use"):
        IncrementalClassifier.load(tmp_path / "m", device="cpu")


def test_the_command_says_it_in_one_line(engram, tmp_path):
    clf = IncrementalClassifier("mas", config=quick("mas"), device="cpu").fit(*blobs(["a", "b"]))
    clf.save(tmp_path / "m.engram")
    rewrite(tmp_path / "m.engram", lambda t, h: t.pop("consolidation.importance.encoder.0.weight"))
    for command in (["info", "m.engram"], ["doctor", "m.engram"], ["forget", "m.engram", "a", "--yes"]):
        done = engram(*command)
        assert (done.code, done.out) == (3, "") or done.code == 2
        assert done.err.strip().splitlines() == [
            "error: m.engram is not a model this version can use: it has no consolidation.importance.encoder.0.weight"
        ]
