"""What the arrays that a learner keeps have to be: their names, shapes, number formats and bounds.

A file can have a right checksum and still hold anything. With this it is refused when it is read, not when it is used.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engram.learners.base import State, has_row_per_class
from engram.settings import require_kind

Array = NDArray[Any]
SAMPLES = -1  # in a shape: as many as there are stored samples


class Kept(NamedTuple):
    """What an array has to be: its shape, number formats and bounds, and whether it may be missing."""

    shape: tuple[int, ...]
    dtypes: tuple[Any, ...] = (np.float32,)
    least: float | Array | None = None
    most: float | Array | None = None
    optional: bool = False


Layout = dict[str, Kept]


def whole(*shape: int, least: int = 0, most: int | None = None, optional: bool = False) -> Kept:
    """Whole numbers in 64 bits, none of them negative."""
    return Kept(shape, (np.int64,), least, most, optional)


def require_layout(arrays: Mapping[str, Array], layout: Layout) -> None:
    """ValueError names the first array that is missing, one too many, or not what it has to be."""
    if missing := [name for name, kept in layout.items() if name not in arrays and not kept.optional]:
        raise ValueError(f"it has no {missing[0]}")
    if strange := sorted(arrays.keys() - layout.keys()):
        raise ValueError(f"it holds {strange[0]}, which a model of this method and these settings does not keep")
    stored = [len(a) for n, a in arrays.items() if a.ndim and layout[n].shape[:1] == (SAMPLES,)]
    for name, array in arrays.items():
        kept = layout[name]
        if array.dtype not in map(np.dtype, kept.dtypes):
            formats = " or ".join(str(np.dtype(one)) for one in kept.dtypes)
            raise ValueError(f"{name} is {array.dtype}, and not {formats}")
        wanted = tuple(min(stored) if size == SAMPLES and stored else size for size in kept.shape)
        if array.shape != wanted:
            raise ValueError(f"{name} has the shape {list(array.shape)}, and not {list(wanted)}")
        bounded = kept.least is not None or kept.most is not None
        wide = (
            array.astype(np.float32) if bounded and array.dtype == np.float16 else array
        )  # ten times quicker to compare
        for bound, is_beyond in ((kept.least, np.less), (kept.most, np.greater)):
            if bound is not None and (beyond := is_beyond(wide, bound)).any():
                raise ValueError(f"{name} holds {float(array[beyond].flat[0]):g}, which is out of its bounds")


def read_state(state: State, layout: Layout) -> dict[str, Array]:
    """The arrays of a state, once they and its description were looked at.

    What only earlier versions kept, to take lessons back with, is left out.
    """
    require_description(state)
    arrays = {name: array for name, array in state.arrays.items() if not name.startswith("lessons.")}
    require_layout(arrays, layout if state.meta["tasks_learned"] > 0 else {})
    return arrays


def require_description(state: State) -> None:
    """ValueError says what no learner of any method would say of itself."""
    meta = state.meta
    for name, kind, least in (("seed", int, 0), ("tasks_learned", int, 0), ("n_features", int | None, 1)):
        require_kind(name, meta[name], kind)
        if meta[name] is not None and not least <= meta[name] < 2**63:
            raise ValueError(f"{name} must be at least {least} and have less than 64 bits, not {meta[name]}")
    labels, taught = meta["labels"], meta["tasks_learned"] > 0
    if not isinstance(labels, list) or len({*labels}) != len(labels) or len({type(one) for one in labels}) > 1:
        raise ValueError("its classes and their names do not fit together: each has one of its own")
    if not all(type(label) in (str, int) for label in labels):
        raise ValueError("a class is called by a text or a whole number")
    if (labels and not taught) or (taught and meta["n_features"] is None):
        raise ValueError("its classes, its number of tasks and its number of features do not fit together")
    if not {array.shape[:1] for name, array in state.arrays.items() if has_row_per_class(name)} <= {(len(labels),)}:
        raise ValueError("its classes and the rows kept of them do not fit together")
