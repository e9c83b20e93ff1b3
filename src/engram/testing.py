"""`check_learner`: what every method has to hold to, in the manner of scikit-learn's `check_estimator`.

Each check takes a factory that makes a fresh, untrained learner (small and quick: the checks train it many times) and
raises AssertionError when the learner falls short.
"""

import copy
import tempfile
from collections.abc import Callable, Iterator
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


def check_unseen_labels_are_accepted(make: Factory) -> None:
    """A label is announced by appearing, one or several at a time, and is then predicted."""
    learner = make()
    learner.learn(*blobs(["a", "b"]))
    learner.learn(*blobs(["c"]))
    learner.learn(*blobs(["e", "d"]))
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
    learner = make()
    far = np.random.default_rng(0).normal(size=(200, 8)) * 100
    learner.learn(*blobs(["a", "b"]))
    assert set(learner.predict(far)) <= {"a", "b"}
    learner.learn(*blobs(["c"]))
    learner.rename("a", "z")
    learner.forget("b")
    assert set(learner.predict(far)) <= {"z", "c"}
    assert learner.scores(far).shape == (200, 2)


def check_saving_and_going_on_is_going_on(make: Factory) -> None:
    """Save, load and learn on: the same bits as never having saved."""
    learner = make()
    learner.learn(*blobs(["a", "b"]))
    learner.learn(*blobs(["c"]))
    reloaded = through_a_file(learner)
    for each in (learner, reloaded):
        each.learn(*blobs(["d"]))
    assert_same_state(learner.state(), reloaded.state())


def check_runs_are_repeatable(make: Factory) -> None:
    """The same data and seed give the same bits."""
    one, two = make(), make()
    for learner in (one, two):
        torch.rand(3)  # the global random state is nobody's business
        learner.learn(*blobs(["a", "b"]))
        learner.learn(*blobs(["c"]))
    assert_same_state(one.state(), two.state())


def check_training_data_is_only_where_it_is_declared(make: Factory) -> None:
    """No array reachable from the learner holds a training sample; of one that says it keeps some, only `samples.…`."""
    learner = make()
    tasks = [blobs(["a", "b"]), blobs(["c"])]
    for X, y in tasks:
        learner.learn(X, y)
    samples = _directions(np.concatenate([X for X, _ in tasks]))
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
    learner = make()
    learner.learn(*blobs(["a", "b"]))
    learner.learn(*blobs(["c"]))
    table = learner.memory()
    reachable = sum(values.nbytes for values in reachable_arrays(learner))
    assert table.total == reachable, f"the table says {table.total} bytes, {reachable} are reachable"
    assert sum(table.by_group().values()) == table.total


def check_single_samples(make: Factory) -> None:
    """A task of one sample, at first or later, is a task."""
    learner = make()
    learner.learn(*blobs(["a"], n=1))
    learner.learn(*blobs(["b"], n=1))
    learner.learn(*blobs(["c", "d"], n=1))
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
    learner = make()
    learner.learn(*blobs(["a", "b"]))
    before = copy.deepcopy(learner.state())
    X, y = blobs(["c"])
    for bad_X, bad_y in (
        (np.where(X.mean() < X, np.nan, X), y),
        (np.where(X.mean() < X, np.inf, X), y),
        (X[:, :5], y),
        (X[:0], y[:0]),
        (X, y[:-1]),
        (X, [7] * len(X)),
        (X, [None] * len(X)),
    ):
        try:
            learner.learn(bad_X, bad_y)
        except ValueError:
            assert_same_state(before, learner.state())
        else:
            raise AssertionError("bad input was accepted")
    impossible: tuple[Callable[[], None], ...] = (
        lambda: learner.forget("nobody"),
        lambda: learner.rename("nobody", "c"),
        lambda: learner.rename("a", "b"),
    )
    for action in impossible:
        try:
            action()
        except ValueError:
            assert_same_state(before, learner.state())
        else:
            raise AssertionError("an impossible forget or rename was accepted")


def check_interruption_changes_nothing(make: Factory) -> None:
    """A `learn` that is interrupted leaves the learner as it was."""
    learner = make()
    learner.learn(*blobs(["a", "b"]))
    before = copy.deepcopy(learner.state())

    def interrupt(progress: object) -> None:
        raise KeyboardInterrupt

    try:
        learner.learn(*blobs(["c"]), progress=interrupt)
    except KeyboardInterrupt:
        assert_same_state(before, learner.state())


CHECKS = (
    check_unseen_labels_are_accepted,
    check_only_seen_labels_are_predicted,
    check_saving_and_going_on_is_going_on,
    check_runs_are_repeatable,
    check_training_data_is_only_where_it_is_declared,
    check_memory_table_is_exact,
    check_single_samples,
    check_input_forms,
    check_bad_input_changes_nothing,
    check_interruption_changes_nothing,
)


def through_a_file(learner: Learner) -> Learner:
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
