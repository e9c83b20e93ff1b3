"""What the checks of a learner use: made-up samples, comparisons, and all arrays that can be reached from an object."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.files import model_file
from engram.learners.base import Array, Features, Label, Learner, State

Factory = Callable[[], Learner]


def blobs(labels: Sequence[str], n: int = 24, width: int = 8, seed: int = 0) -> tuple[Features, list[str]]:
    """`n` samples of each label around a centre of its own."""
    random = np.random.default_rng(seed)
    centres = {label: np.random.default_rng(i).normal(size=width) * 4 for i, label in enumerate("abcdefghij")}
    x = np.concatenate([centres[label[0]] + random.normal(size=(n, width)) for label in labels])
    return x.astype(np.float32), [label for label in labels for _ in range(n)]


def teach(make: Factory, *tasks: Sequence[str], n: int = 24) -> Learner:
    """A fresh learner, taught `n` samples of each label, task by task."""
    learner = make()
    for task in tasks:
        learner = learner.learn(*blobs(task, n))
    return learner


def predict(learner: Learner, x: Features, candidates: Sequence[Label] | None = None) -> list[Label]:
    """The best class of each sample."""
    return [learner.labels[row] for row in learner.answer(x, 1, candidates).rows[:, 0].tolist()]


def share_right(learner: Learner, task: Sequence[str], among: Sequence[Label] | None = None) -> float:
    """How many new samples of these classes are answered rightly."""
    x, y = blobs(task, seed=1)
    return float(np.mean([one == other for one, other in zip(predict(learner, x, among), y, strict=True)]))


def save_and_load(learner: Learner) -> Learner:
    """The learner, written to a model file and read back."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.engram"
        state = learner.state()
        model_file.write(path, state.arrays, {"learner": state.meta})
        arrays, header = model_file.read(path)
    return type(learner).from_state(State(arrays, header["learner"]))


def refusal(impossible: Callable[[], object]) -> str:
    """The words with which something impossible is refused."""
    try:
        impossible()
    except ValueError as error:
        return str(error)
    raise AssertionError("something impossible was accepted")


def copy_of(state: State) -> State:
    """The state as it is now, whatever is done to its arrays."""
    return State({name: array.copy() for name, array in state.arrays.items()}, dict(state.meta))


def assert_same_state(one: State, two: State) -> None:
    """Equal bit for bit, in arrays and description."""
    assert one.meta == two.meta, f"{one.meta} differs from {two.meta}"
    assert one.arrays.keys() == two.arrays.keys(), one.arrays.keys() ^ two.arrays.keys()
    for name, array in one.arrays.items():
        assert array.dtype == two.arrays[name].dtype, f"array {name} is {two.arrays[name].dtype}, not {array.dtype}"
        assert np.array_equal(array, two.arrays[name]), f"array {name} differs"


def assert_close(found: Array, expected: Array, what: str, rounding: float = 1e-4) -> None:
    """Equal but for rounding, relative to the largest."""
    assert found.shape == expected.shape, f"{what}: shape {found.shape}, not {expected.shape}"
    allowed = rounding * max(1e-6, float(np.abs(expected).max()))
    assert float(np.abs(found - expected).max()) <= allowed, f"{what} differ"


def directions(rows: Array) -> NDArray[np.float64]:
    """Every row at length 1, whatever it was scaled by."""
    rows = rows.astype(np.float64)
    unit: NDArray[np.float64] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    return unit


def reachable_arrays(root: object) -> Iterator[Array]:
    """Every array that can be reached from an object, each stretch of memory once.

    Follows attributes, slots, containers and functions with what they hold; a tensor counts as the array it shares its
    memory with. A view counts with all the memory it keeps alive.
    """
    seen: set[int] = set()
    owners: set[int] = set()
    stack: list[Any] = [root]
    keep = []  # alive as long as their ids are compared
    while stack:
        item = stack.pop()
        if id(item) in seen or item is None or isinstance(item, str | bytes | int | float | type | np.dtype):
            continue
        seen.add(id(item))
        keep.append(item)
        if hasattr(item, "untyped_storage"):
            stack.extend([item.detach().cpu().numpy(), item.grad])
        elif isinstance(item, np.ndarray):
            owner = item
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            if owner.ctypes.data not in owners and owner.size > 1:
                owners.add(owner.ctypes.data)
                yield owner
            if item.dtype == object:
                stack.extend(item.flat)
        elif isinstance(item, dict):
            stack.extend([*item.keys(), *item.values()])
        elif isinstance(item, list | tuple | set | frozenset):
            stack.extend(item)
        elif callable(item):
            stack.extend(cell.cell_contents for cell in getattr(item, "__closure__", None) or ())
            held = ("__dict__", "__self__", "__defaults__", "__kwdefaults__", "func", "args", "keywords")
            stack.extend(getattr(item, name, None) for name in held)
        else:
            stack.append(getattr(item, "__dict__", None))
            slots = [name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())]
            stack.extend(getattr(item, name, None) for name in slots)
