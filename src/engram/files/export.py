"""A model as one ONNX graph, pictures in and answers out, for programs that have no engram.

The graph takes pictures as uint8 (batch, height, width, 3), RGB and upright, of any size; everything after that is
inside: resizing, cropping, the encoder, the method's scores and what they mean. docs/export.md shows how other programs
use it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from engram.encoders.base import Features, Pixels, Preprocess
from engram.encoders.graph import Graph
from engram.encoders.onnx import OnnxEncoder, open_graph
from engram.errors import ModelFileError
from engram.files.atomic import replacing
from engram.files.steps import Steps, add_steps

Array = np.ndarray[Any, Any]
Score = Callable[[Features], tuple[Array, Array | None, float]]  # scores, novelty, temperature: a learner's `score`

TOLERANCE = 1e-4
RESIZED = 0.05  # the same for a picture that is resized, as Pillow and the graph round pixels in different ways
INPUT = "pictures"
# The name of the best class and its position among `labels`; the probability of each class and the method's score of
# it; how unlike every class a picture is, and whether that is above the threshold.
OUTPUTS = ("label", "best", "probabilities", "scores", "novelty", "unknown")
_MODES = {"bilinear": "linear", "bicubic": "cubic"}


def export(
    out: Path,
    encoder: OnnxEncoder,
    steps: Steps,
    score: Score,
    *,
    labels: Sequence[str],
    unknown_above: float | None,
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Write the graph of an encoder and a learner's steps, if it answers as its `score` does; return its metadata.

    The metadata are `about`, and beside it what the graph takes and gives.
    """
    if not out.resolve().parent.is_dir():
        raise ValueError(f"{out.resolve().parent} is not a folder; make it first")
    metadata = {
        **about,
        "labels": list(labels),
        "input": f"{INPUT}: uint8 (batch, height, width, 3), RGB",
        "output": ", ".join(OUTPUTS),
        "unknown_above": unknown_above,
        "preprocess": encoder.preprocess.describe(),
        "encoder": encoder.identity.text,
    }
    expected = [
        _Expected.of(pictures, tolerance, encoder, score) for pictures, tolerance in _samples(encoder.preprocess.size)
    ]
    graph = Graph("engram")
    pictures = graph.input(INPUT, np.uint8, ["batch", "height", "width", 3])
    features = encoder.read().add_to(graph, _add_resize(graph, pictures, encoder.preprocess))
    values = add_steps(graph, steps, features)
    _add_answers(graph, values, list(labels), expected[0].temperature, unknown_above)
    content = graph.to_bytes(
        {key: each if isinstance(each, str) else json.dumps(each) for key, each in metadata.items()}
    )
    difference = _compare(content, expected)
    with replacing(out) as temporary:
        temporary.write_bytes(content)
    return {**metadata, "difference": difference}


def _add_resize(graph: Graph, pictures: str, preprocess: Preprocess) -> str:
    """Resize and crop as `Preprocess.image` does. Pixels differ by 1 or 2 of 255 here and there."""
    if preprocess.interpolation not in _MODES:
        raise ValueError(f"no graph can resize pictures by {preprocess.interpolation!r} as Pillow does")
    add, size = graph.add, preprocess.size

    def number(value: int) -> str:
        return graph.constant(np.array([value]))

    if preprocess.resize == "exact":
        sides = graph.constant(np.array([size, size]))
    else:  # without a question, so that one graph does for all sizes: for the shorter side it is `short` itself
        short, height_width = number(preprocess.resize_to or size), add("Shape", pictures, start=1, end=3)
        width_height = add("Gather", height_width, graph.constant(np.array([1, 0])))
        sides = add("Max", short, add("Div", add("Mul", short, height_width), width_height))
    whole = add("Concat", add("Shape", pictures, end=1), number(3), sides, axis=0)
    resized = add(
        "Resize", add("Transpose", pictures, perm=[0, 3, 1, 2]), "", "", whole, mode=_MODES[preprocess.interpolation],
        antialias=1, exclude_outside=1, cubic_coeff_a=-0.5, coordinate_transformation_mode="half_pixel",
    )  # fmt: skip
    spare = add("Sub", sides, number(size))  # half of it, rounded to the even number, in integers alone
    first = add("Add", add("Div", spare, number(2)), add("Div", add("Mod", spare, number(4)), number(3)))
    cropped = add("Slice", resized, first, add("Add", first, number(size)), graph.constant(np.array([2, 3])))
    return add("Transpose", cropped, perm=[0, 2, 3, 1])


def _add_answers(
    graph: Graph, values: Mapping[str, str], labels: list[str], temperature: float, unknown_above: float | None
) -> None:
    add, classes = graph.add, len(labels)
    scores, axis = values["scores"], graph.constant(np.array([1]))
    rule = values.get("novelty") or add("Neg", add("ReduceMax", scores, axis))  # for methods without a rule
    novelty = add("Squeeze", rule, axis)
    best = add("ArgMax", scores, axis=1, keepdims=0)
    warmed = add("Div", scores, graph.constant(np.float32(temperature)))
    threshold = graph.constant(np.float32(np.inf if unknown_above is None else unknown_above))
    made: dict[str, tuple[str, Any, list[int | str]]] = {
        "label": (add("Gather", graph.constant(np.array(labels)), best), str, ["batch"]),
        "best": (best, np.int64, ["batch"]),
        "probabilities": (add("Softmax", warmed, axis=1), np.float32, ["batch", classes]),
        "scores": (scores, np.float32, ["batch", classes]),
        "novelty": (novelty, np.float32, ["batch"]),
        "unknown": (add("Greater", novelty, threshold), np.bool_, ["batch"]),
    }
    for name in OUTPUTS:
        value, dtype, shape = made[name]
        graph.output(value, name, dtype, shape)


@dataclass(frozen=True)
class _Expected:
    """What the model says to some pictures, and how far from it a graph may be, relative to what is above 1."""

    pictures: Pixels
    tolerance: float
    scores: Array
    novelty: Array | None
    temperature: float

    @classmethod
    def of(cls, pictures: Pixels, tolerance: float, encoder: OnnxEncoder, score: Score) -> "_Expected":
        pixels = np.stack([encoder.preprocess.image(Image.fromarray(picture)) for picture in pictures])
        return cls(pictures, tolerance, *score(encoder.encode(pixels)))


def _compare(content: bytes, expected: Sequence[_Expected]) -> float:
    """The largest difference between the graph's answers and the model's to pictures that need no resizing."""
    session = open_graph(content)
    largest = 0.0
    for one in expected:
        scores, novelty = session.run(["scores", "novelty"], {INPUT: one.pictures})
        pairs = [(scores, one.scores)] + ([] if one.novelty is None else [(novelty, one.novelty)])
        difference = max(float(np.abs(a - b).max() / max(1.0, np.abs(b).max())) for a, b in pairs)
        if not difference <= one.tolerance:
            raise ModelFileError(f"the graph's answers differ from the model's by {difference:.1e}; it was not written")
        largest = max(largest, difference if one.tolerance == TOLERANCE else 0.0)
    return largest


def _samples(side: int) -> list[tuple[Pixels, float]]:
    """Noise, coarse patterns and plain grey: several, one, and some that are wide and tall, with their tolerances."""
    rng = np.random.default_rng(0)
    fine = rng.integers(0, 256, (2, side, side, 3), dtype=np.uint8)
    coarse = [np.asarray(Image.fromarray(each).resize((side, side), Image.Resampling.BICUBIC))
              for each in rng.integers(0, 256, (2, 4, 4, 3), dtype=np.uint8)]  # fmt: skip
    whole, part = np.stack([*fine, *coarse, np.full((side, side, 3), 128, np.uint8)]), side * 2 // 3
    return [(whole, TOLERANCE), (whole[:1], TOLERANCE), (whole[2:, :part], RESIZED), (whole[2:, :, :part], RESIZED)]
