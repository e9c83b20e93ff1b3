"""`check_learner`: what every method has to hold to, in the manner of scikit-learn's `check_estimator`.

Each check takes a factory that makes a fresh, untrained learner (small and quick: the checks train it many times) and
raises AssertionError when the learner falls short.
"""

import contextlib
import copy
import functools
import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from engram.io import model_file
from engram.learner import Learner, State

Factory = Callable[[], Learner]


def check_learner(make: Factory) -> None:
    """Run every check."""
    for check in CHECKS:
        check(make)


def blobs(labels: list[Any], n: int = 24, width: int = 8, seed: int = 0) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """`n` samples of each label around a centre of its own."""
    rng = np.random.default_rng(seed)
    centres = {label: np.random.default_rng(i).normal(size=width) * 4 for i, label in enumerate("abcdefghij")}
    X = np.concatenate([centres[str(label)[0]] + rng.normal(size=(n, width)) for label in labels])
    return X, np.repeat(np.asarray(labels), n)


def teach(make: Factory, *tasks: list[str], n: int = 24) -> Learner:
    """A fresh learner, taught `n` samples of each label, task by task."""
    learner = make()
    for task in tasks:
        learner.learn(*blobs(task, n))
    return learner


def check_unseen_labels_are_accepted(make: Factory) -> None:
    """A label is announced by appearing, one or several at a time, and is then predicted."""
    learner = teach(make, ["a", "b"], ["c"], ["e", "d"])
    assert learner.labels[:3] == ["a", "b", "c"], learner.labels
    assert set(learner.labels) == set("abcde"), learner.labels
    tasks = [["d", "e"]] if learner.about.forgets else [["a", "b"], ["c"], ["d", "e"]]
    everything = [label for task in tasks for label in task]
    accuracy = 0.0
    for task in tasks:
        X, y = blobs(task, seed=1)
        answers = learner.predict(X, among=task) if learner.about.told_the_task else learner.predict(X)
        accuracy += (answers == y).mean() * len(task) / len(everything)
    assert accuracy > 0.5, f"accuracy {accuracy} on well separated classes"


def check_only_seen_labels_are_predicted(make: Factory) -> None:
    """Whatever the input, the answer is a class that was taught; a forgotten or renamed one is not."""
    learner = teach(make, ["a", "b"])
    far = np.random.default_rng(0).normal(size=(200, 8)) * 100
    assert set(learner.predict(far)) <= {"a", "b"}
    learner.learn(*blobs(["c"]))
    learner.rename("a", "z")
    learner.forget("b")
    assert set(learner.predict(far)) <= {"z", "c"}
    assert learner.scores(far).shape == (200, 2)


def check_saving_and_going_on_is_going_on(make: Factory) -> None:
    """Save, load and learn on: the same bits as never having saved."""
    learner = teach(make, ["a", "b"], ["c"])
    reloaded = save_and_load(learner)
    for each in (learner, reloaded):
        each.learn(*blobs(["d"]))
    assert_same_state(learner.state(), reloaded.state())


def check_runs_are_repeatable(make: Factory) -> None:
    """The same data and seed give the same bits."""
    one = teach(make, ["a", "b"], ["c"])
    torch.rand(3)  # the global random state is nobody's business
    assert_same_state(one.state(), teach(make, ["a", "b"], ["c"]).state())


def check_training_data_is_only_where_it_is_declared(make: Factory) -> None:
    """No array reachable from the learner holds a training sample; of one that says it keeps some, only `samples.…`."""
    learner = teach(make, ["a", "b"], ["c"])
    samples = _directions(np.concatenate([blobs(["a", "b"])[0], blobs(["c"])[0]]))
    tensors = learner.state().tensors
    declared = [tensor.cpu().numpy() for name, tensor in tensors.items() if name.startswith("samples.")]
    found = False
    for values in reachable_arrays(learner):
        if values.size % samples.shape[1] == 0:
            rows = _directions(values.reshape(-1, samples.shape[1]))
            if (rows @ samples.T).max() >= 1 - 1e-6:
                found = True
                known = any(np.array_equal(values, tensor) for tensor in declared)
                assert known, "a training sample, perhaps scaled, is stored"
    assert found == learner.about.keeps_samples, "the method says that it keeps samples, but there are none"


def _directions(rows: NDArray[Any]) -> NDArray[np.float64]:
    rows = rows.astype(np.float64)
    unit: NDArray[np.float64] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    return unit


def check_memory_table_is_exact(make: Factory) -> None:
    """The table's sum is the bytes of all tensors reachable from the learner."""
    learner = teach(make, ["a", "b"], ["c"])
    table = learner.memory()
    reachable = sum(values.nbytes for values in reachable_arrays(learner))
    assert table.total == reachable, f"the table says {table.total} bytes, {reachable} are reachable"
    assert sum(table.by_group().values()) == table.total


def check_single_samples(make: Factory) -> None:
    """A task of one sample, at first or later, is a task."""
    learner = teach(make, ["a"], ["b"], ["c", "d"], n=1)
    assert set(learner.labels) == set("abcd")
    X, _ = blobs(["a"], n=1)
    assert np.isfinite(learner.scores(X)).all()


def check_input_forms(make: Factory) -> None:
    """float32, float64 and non-contiguous input mean the same."""
    X, y = blobs(["a", "b"])
    X = X.astype(np.float32)
    states = []
    for form in (X, X.astype(np.float64), np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        learner = make()
        learner.learn(form, y)
        states.append(learner.state())
        assert np.array_equal(learner.predict(form), learner.predict(X))
    for state in states[1:]:
        assert_same_state(states[0], state)


def check_bad_input_changes_nothing(make: Factory) -> None:
    """NaN, a wrong width, nothing at all, unequal lengths, mixed labels: ValueError, and the learner is as it was."""
    learner = teach(make, ["a", "b"])
    before = copy.deepcopy(learner.state())
    X, y = blobs(["c"])
    for impossible in (
        lambda: learner.learn(np.where(X.mean() < X, np.nan, X), y),
        lambda: learner.learn(np.where(X.mean() < X, np.inf, X), y),
        lambda: learner.learn(X[:, :5], y),
        lambda: learner.learn(X[:0], y[:0]),
        lambda: learner.learn(X, y[:-1]),
        lambda: learner.learn(X, [7] * len(X)),
        lambda: learner.learn(X, [None] * len(X)),
        lambda: learner.forget("nobody"),
        lambda: learner.rename("nobody", "c"),
        lambda: learner.rename("a", "b"),
        lambda: learner.rename("a", 3),
    ):
        _refusal(impossible)
        assert_same_state(before, learner.state())


def _refusal(impossible: Callable[[], object]) -> str:
    """The words with which something impossible is refused."""
    try:
        impossible()
    except ValueError as error:
        return str(error)
    raise AssertionError("something impossible was accepted")


def check_interruption_changes_nothing(make: Factory) -> None:
    """Interrupted in its first or last epoch, `learn` leaves the learner as it was, and can be called again."""
    undisturbed = teach(make, ["a", "b"])
    before = copy.deepcopy(undisturbed.state())
    epochs: list[object] = []
    undisturbed.learn(*blobs(["c"]), progress=epochs.append)
    for last in {1, len(epochs)} - {0}:
        learner, told = teach(make, ["a", "b"]), itertools.count(1)

        def interrupt(progress: object, last: int = last, told: Iterator[int] = told) -> None:
            if next(told) == last:
                raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            learner.learn(*blobs(["c"]), progress=interrupt)
            assert not epochs, "the interruption was swallowed"
        if epochs:
            assert_same_state(before, learner.state())
            learner.learn(*blobs(["c"]))
        assert_same_state(undisturbed.state(), learner.state())


def check_nearest_is_the_best_of_scores(make: Factory) -> None:
    """`nearest` gives the k largest scores, best first, of all classes or `among` some; `scorer` tells the same."""
    learner = teach(make, ["a", "b"], ["c", "d"])
    X, _ = blobs(["a", "b", "c", "d"], n=6, seed=2)
    scores = learner.scores(X)
    with torch.no_grad():
        traced, familiar = learner.scorer()(torch.from_numpy(X.astype(np.float32)).to(learner.device))
    assert_close(traced.cpu().numpy(), scores, "what scorer() makes")
    assert_close(familiar.cpu().numpy(), learner.familiarity(X), "the familiarity that scorer() tells")
    for among in (None, ["d", "a", "b"]):
        known = list(range(4)) if among is None else [learner.labels.index(label) for label in among]
        expected = -np.sort(-scores[:, known], axis=1)
        for k in (1, 2, 9):
            best, rows = learner.nearest(X, k, among)
            assert best.shape == rows.shape == (len(X), min(k, len(known))), f"{k} nearest have shape {rows.shape}"
            assert set(rows.flat) <= set(known), "nearest leaves the classes it was to choose among"
            assert all(len(set(row)) == len(row) for row in rows.tolist()), "nearest names a class twice"
            assert_close(best, expected[:, : best.shape[1]], f"the {k} best")
            assert_close(np.take_along_axis(scores, rows, axis=1), best, "the scores of the nearest rows")
        answers = [learner.labels[row] for row in learner.nearest(X, 1, among)[1][:, 0]]
        assert learner.predict(X, among).tolist() == answers, "predict is not the nearest class"


def check_what_is_known_of_classes(make: Factory) -> None:
    """`counts` are of the samples taught, `class_vectors` has a row for every class; both may be None."""
    learner = teach(make, ["a", "b"], ["c", "d"], n=6)
    taught = dict.fromkeys("abcd", 6)

    def compare() -> None:
        counts, vectors = learner.counts(), learner.class_vectors()
        assert counts is None or dict(zip(learner.labels, counts, strict=True)) == taught, f"{counts}, not {taught}"
        assert vectors is None or (vectors.ndim == 2 and len(vectors) == len(taught)), "not a vector for each class"
        assert vectors is None or len(np.unique(vectors, axis=0)) == len(taught), "two classes have the same vector"

    compare()
    learner.learn(*blobs(["c"], n=3, seed=1))
    learner.forget("a")
    learner.rename("b", "z")
    taught = {"z": 6, "c": 9, "d": 6}
    compare()


def check_every_class_can_be_forgotten(make: Factory) -> None:
    """Forgotten one by one, the first first: scores stay finite, and what is forgotten can be taught again."""
    learner = teach(make, ["a", "b"], ["c"])
    X, _ = blobs(["d"])
    for label in ("a", "b"):
        learner.forget(label)
        assert np.isfinite(learner.scores(X)).all(), f"{label} forgotten, scores are not finite"
    learner.learn(*blobs(["d"]))
    learner.forget("c")
    learner.forget("d")
    assert not learner.labels
    learner.learn(*blobs(["a", "d"]))
    assert (learner.predict(X, among=["a", "d"]) == "d").mean() > 0.5, "what is learned afterwards is not known"


def check_settings_are_checked(make: Factory) -> None:
    """A setting that does not exist, or that is no number where one belongs, is refused by its name."""
    kind = type(make())
    numbers = [field.name for field in fields(kind.config_type) if field.type in (int, float)]
    for name in ("no_such_setting", *numbers):
        words = _refusal(functools.partial(kind.configure, {name: "much"}))
        assert name in words, f"{name} is refused without its name: {words}"
    assert kind.configure() == kind.config_type(**kind.defaults)


CHECKS: tuple[Callable[[Factory], None], ...] = tuple(
    check for name, check in globals().items() if name.startswith("check_") and check is not check_learner
)


def save_and_load(learner: Learner) -> Learner:
    """The learner, written to a model file and read back."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.engram"
        state = learner.state()
        model_file.write(path, state.tensors, {"learner": state.meta})
        tensors, header = model_file.read(path)
    return type(learner).from_state(State(tensors, header["learner"]), str(learner.device))


def assert_same_state(one: State, two: State) -> None:
    """Equal bit for bit, in tensors and description."""
    assert one.meta == two.meta, f"{one.meta} differs from {two.meta}"
    assert one.tensors.keys() == two.tensors.keys(), one.tensors.keys() ^ two.tensors.keys()
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor, two.tensors[name]), f"tensor {name} differs"


def assert_close(found: NDArray[Any], expected: NDArray[Any], what: str) -> None:
    """Equal but for the rounding of single precision, relative to the largest."""
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}"
    allowed = 1e-4 * max(1e-6, float(np.abs(expected).max()))
    assert float(np.abs(found - expected).max()) <= allowed, f"{what} differ from scores"


def reachable_arrays(root: object) -> Iterator[NDArray[Any]]:
    """Every array or tensor that can be reached from an object, each stretch of memory once.

    Follows attributes, slots, containers, functions with what they hold, and gradients. A view counts with all the
    memory it keeps alive.
    """
    seen: set[int] = set()
    storages: set[int] = set()
    stack = [root]
    while stack:
        item = stack.pop()
        if id(item) in seen or item is None or isinstance(item, str | bytes | int | float | type):
            continue
        seen.add(id(item))
        if isinstance(item, torch.Tensor):
            storage = item.untyped_storage()
            if storage.data_ptr() not in storages and storage.nbytes():
                storages.add(storage.data_ptr())
                whole = torch.empty(0, dtype=item.dtype, device=item.device).set_(storage)
                shaped = item.detach() if item.numel() == whole.numel() else whole
                yield shaped.cpu().numpy()
            stack.append(item.grad)
        elif isinstance(item, np.ndarray):
            owner = item
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            if owner.ctypes.data not in storages:
                storages.add(owner.ctypes.data)
                yield owner
            if item.dtype == object:
                stack.extend(item.flat)
        elif isinstance(item, dict):
            stack.extend([*item.keys(), *item.values()])
        elif isinstance(item, list | tuple | set | frozenset):
            stack.extend(item)
        elif callable(item) and not isinstance(item, torch.nn.Module):
            stack.extend(cell.cell_contents for cell in getattr(item, "__closure__", None) or ())
            held = ("__dict__", "__self__", "__defaults__", "__kwdefaults__", "func", "args", "keywords")
            stack.extend(getattr(item, name, None) for name in held)
        else:
            stack.append(getattr(item, "__dict__", None))
            slots = [name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())]
            stack.extend(getattr(item, name, None) for name in slots)
