"""How a learner makes scores and novelty of features, written down as operators on arrays: what an export is made of.

Each step names what it makes, an operator of ONNX, and what it takes: names of earlier values, or arrays. `features`
are there to begin with; in the end there have to be `scores` (n, classes) and, if there is a rule for it, `novelty`
(n, 1).
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from engram.encoders.graph import Graph

Array = np.ndarray[Any, Any]
_SMALL = np.float32(1e-12)
_ALONG = np.array([1])  # the axis of a sample's numbers


class Step(NamedTuple):
    """One operator of ONNX on values and arrays."""

    makes: str
    operator: str
    takes: tuple[Any, ...]
    settings: Mapping[str, Any] = MappingProxyType({})


Steps = Sequence[Step]


def add_steps(graph: Graph, steps: Steps, features: str) -> dict[str, str]:
    """Add steps to a graph, in float32 whatever their arrays are: the values they make, by name."""
    values = {"features": features}

    def name(taken: Any) -> str:
        if isinstance(taken, str):
            return values[taken]
        array = np.asarray(taken)
        return graph.constant(array.astype(np.float32) if array.dtype.kind == "f" else array)

    for step in steps:
        values[step.makes] = graph.add(step.operator, *map(name, step.takes), **step.settings)
    return values


def signed_root() -> Steps:
    """Make `z` of features: their square roots, with their signs."""
    return [
        Step("sizes", "Abs", ("features",)),
        Step("roots", "Sqrt", ("sizes",)),
        Step("signs", "Sign", ("features",)),
        Step("z", "Mul", ("signs", "roots")),
    ]


def whitened(
    origin: Array, matrix: Array, means: Array, squares: Array, lengths: Array, spread: Array, background: float
) -> Steps:
    """Make scores and novelty of `z`, which lies at w = (z - origin)·matrix in a space with class means w_c.

    Scores are w·w_c / (‖w‖·lengths_c), novelty is (background·‖w·spread‖² - max_c(2w·w_c - squares_c)) / ‖w‖.
    """
    return [
        Step("centred", "Sub", ("z", origin)),
        Step("w", "MatMul", ("centred", matrix)),
        *_length("w"),
        Step("products", "MatMul", ("w", means.T)),
        Step("shares", "Div", ("products", "length")),
        Step("scores", "Div", ("shares", lengths)),
        Step("doubled", "Mul", ("products", np.float32(2))),
        Step("gains", "Sub", ("doubled", squares)),
        Step("gain", "ReduceMax", ("gains", _ALONG)),
        Step("spread", "MatMul", ("w", spread)),
        Step("explained", "ReduceSumSquare", ("spread", _ALONG)),
        Step("usual", "Mul", ("explained", np.float32(background))),
        Step("excess", "Sub", ("usual", "gain")),
        Step("novelty", "Div", ("excess", "length")),
    ]


def nearest_mean(means: Array, value: str = "features") -> Steps:
    """Make scores of a value: its cosines to class means."""
    unit = means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), _SMALL)
    return [*_length(value), Step("unit", "Div", (value, "length")), Step("scores", "MatMul", ("unit", unit.T))]


def linear(weight: Array, bias: Array) -> Steps:
    """Make scores of features: features·weightᵀ + bias."""
    return [Step("products", "MatMul", ("features", weight.T)), Step("scores", "Add", ("products", bias))]


def nearest_sample(samples: Array, rows: Array) -> Steps:
    """Make scores of features: less the distance to the nearest sample of each class; `rows` say whose samples are."""
    middle = samples.mean(axis=0)  # seen from there vectors are short: small differences are not rounded away
    points, counts = samples - middle, np.bincount(rows)
    order, starts = np.argsort(rows, kind="stable"), counts.cumsum() - counts
    own = order[starts[:, None] + np.minimum(np.arange(counts.max()), counts[:, None] - 1)]  # the last one again
    return [
        Step("centred", "Sub", ("features", middle)),
        Step("products", "MatMul", ("centred", -2 * points.T)),
        Step("partly", "Add", ("products", np.square(points).sum(axis=1))),
        Step("square", "ReduceSumSquare", ("centred", _ALONG)),
        Step("squares", "Add", ("partly", "square")),
        Step("by class", "Gather", ("squares", own), {"axis": 1}),
        Step("nearest", "ReduceMin", ("by class", np.array([2])), {"keepdims": 0}),
        Step("positive", "Max", ("nearest", np.float32(0))),
        Step("distances", "Sqrt", ("positive",)),
        Step("scores", "Neg", ("distances",)),
    ]


def code(scale: Array, layers: Sequence[tuple[Array, Array]]) -> Steps:
    """Make `code` of features: the layers of an encoder (weight and bias), each with an ELU behind it."""
    steps = [Step("code", "Mul", ("features", scale))]
    for weight, bias in layers:
        steps += [
            Step("products", "MatMul", ("code", weight.T)),
            Step("sums", "Add", ("products", bias)),
            Step("code", "Elu", ("sums",)),
        ]
    return steps


def head(weight: Array, bias: Array, shown: Array) -> Steps:
    """Make `said`, log p(k | x) of a head that is applied to the last of the features; scores are those `shown`."""
    first = np.array([-weight.shape[1]])
    return [
        Step("pooled", "Slice", ("features", first, np.array([np.iinfo(np.int64).max]), _ALONG)),
        Step("products", "MatMul", ("pooled", weight.T)),
        Step("logits", "Add", ("products", bias)),
        Step("said", "LogSoftmax", ("logits",), {"axis": 1}),
        Step("shown", "Gather", ("said", shown), {"axis": 1}),
        Step("scores", "Identity", ("shown",)),
    ]


def beside_head(
    taught: Steps, temperature: float, directions: Array, middles: Array, widths: Array, odds: Array
) -> Steps:
    """Make scores of classes that were taught and of those of a head, behind the steps of `head`.

    The odds that a sample is of a taught class are Σ_i odds_i·Φ((likeness - middles_i) / widths_i), its likeness the
    largest product of √p(k | x) with the `directions` of the taught classes.
    """
    return [
        Step("halves", "Mul", ("said", np.float32(0.5))),
        Step("roots", "Exp", ("halves",)),
        Step("likenesses", "MatMul", ("roots", directions.T)),
        Step("likeness", "ReduceMax", ("likenesses", _ALONG)),
        Step("gaps", "Sub", ("likeness", middles)),
        Step("deviations", "Div", ("gaps", widths * np.sqrt(2))),
        Step("errors", "Erf", ("deviations",)),
        Step("below", "Add", ("errors", np.float32(1))),
        Step("odds", "MatMul", ("below", odds[:, None] / 2)),
        Step("for", "Log", ("odds",)),
        Step("against", "Neg", ("for",)),
        Step("less if taught", "Softplus", ("against",)),
        Step("less if not", "Softplus", ("for",)),
        *taught,
        Step("warmed", "Div", ("scores", np.float32(temperature))),
        Step("likely", "LogSoftmax", ("warmed",), {"axis": 1}),
        Step("taught", "Sub", ("likely", "less if taught")),
        Step("of the head", "Sub", ("shown", "less if not")),
        Step("scores", "Concat", ("taught", "of the head"), {"axis": 1}),
        Step("best", "ReduceMax", ("scores", _ALONG)),  # and the taught classes' rule for novelty goes
        Step("novelty", "Neg", ("best",)),
    ]


def _length(value: str) -> Steps:
    return [Step("norm", "ReduceL2", (value, _ALONG)), Step("length", "Max", ("norm", _SMALL))]
