"""A model as one ONNX graph: which steps a learner's answers are made of."""

from functools import singledispatch
from pathlib import Path
from typing import Any

import numpy as np

from engram.encoders.onnx import OnnxEncoder
from engram.files import steps
from engram.files.export import export
from engram.files.steps import Step, Steps
from engram.learners.base import Features, Learner, Scores
from engram.learners.codes import Codes
from engram.learners.imagenet import BINS, DOUBT, LOST, SPREAD, USUAL, BesideImageNet
from engram.learners.ncm import NCM
from engram.learners.nearest_neighbour import NearestNeighbour
from engram.learners.slda import SLDA
from engram.learners.whitened import Whitened
from engram.model import Model
from engram.stats import projection
from engram.stats.linalg import solve
from engram.stats.whitening import BACKGROUND

_LICENCES = {"efficientnet_lite": "Apache-2.0", "resnet50": "BSD-3-Clause", "vgg": "BSD-3-Clause"}


def export_model(model: Model, out: Path, unknown_above: float | None = None) -> dict[str, Any]:
    """Write a model as one ONNX file, if it answers as the model does; return what the graph takes and gives.

    `unknown_above` is the novelty from which on a picture is unknown; without it, the model's own.
    """
    if not model.learner.labels:
        raise ValueError("the model knows no class; teach one first")
    if out.suffix != ".onnx":
        raise ValueError(f"{out} must end in .onnx")
    encoder = model.open_encoder("cpu")
    if not isinstance(encoder, OnnxEncoder):
        raise ValueError(f"{encoder.identity.text} is no ONNX graph, and so cannot be part of one")

    def score(x: Features) -> Scores:
        values, novelty, usual = model.learner.score(x)
        return Scores(values, novelty, model.temperature or usual)

    known = (terms for name, terms in _LICENCES.items() if encoder.identity.text.startswith(name))
    licence = f"the network's published weights: {next(known, 'see where they come from')}; the rest: whoever taught it"
    return export(
        out,
        encoder,
        steps_of(model.learner),
        score,
        labels=[str(label) for label in model.learner.labels],
        unknown_above=model.unknown_above() if unknown_above is None else unknown_above,
        about={"licence": licence, "method": model.method},
    )


@singledispatch
def steps_of(learner: Learner) -> Steps:
    """The steps from features to scores; ValueError for a method that cannot be exported."""
    raise ValueError(f"a model of the method {learner.method} cannot be exported")


@steps_of.register
def _(learner: Whitened) -> Steps:
    if learner.recency:
        raise ValueError("a model with recency cannot be exported")
    space, unit, d = learner.space, np.float64(learner.unit or 1.0), learner.n_features or 0
    width, (rows, inverse) = len(space.origin), space.spread
    # Where nothing is left of a direction, rounding may leave less.
    root = np.linalg.cholesky(inverse.astype(np.float64) + np.eye(len(inverse)) * 1e-12)
    solved = solve(space.factor, np.eye(len(space.factor), dtype=space.factor.dtype)) / unit
    mapped = [*steps.signed_root()] if learner.settings.transform == "sqrt" else [Step("z", "Identity", ("features",))]
    if width < d:
        mapped.append(Step("z", "MatMul", ("z", projection.signs(d, width, learner.seed))))
    return [
        *mapped,
        *steps.whitened(
            space.origin * unit,
            solved,
            space.means,
            space.squares,
            space.lengths,
            space.means[rows].T @ root,
            BACKGROUND,
        ),
    ]


@steps_of.register
def _(learner: NCM) -> Steps:
    assert learner.sums is not None
    return steps.nearest_mean(learner.sums.means)


@steps_of.register
def _(learner: SLDA) -> Steps:
    return steps.linear(*learner.readout)


@steps_of.register
def _(learner: NearestNeighbour) -> Steps:
    assert learner.stored is not None
    assert learner.targets is not None
    return steps.nearest_sample(learner.stored, learner.targets)


@steps_of.register
def _(learner: Codes) -> Steps:
    kept, layers = learner.kept, range(0, 2 * len(learner.settings["layers"]), 2)
    weights = [(kept[f"network.encoder.{at}.weight"], kept[f"network.encoder.{at}.bias"]) for at in layers]
    return [*steps.code(kept["network.feature_scale"], weights), *steps.nearest_mean(kept["classes.means"], "code")]


@steps_of.register
def _(learner: BesideImageNet) -> Steps:
    if learner.head is None:
        return steps_of(learner.taught)
    first = steps.head(learner.head.weight.astype(np.float32), learner.head.bias, learner.head.shown)
    if learner.said is None:
        return first
    n = learner.alike.sum()
    weights = np.r_[learner.alike, DOUBT] / (n + DOUBT) / LOST
    middles = np.r_[(np.arange(BINS) + 0.5) / BINS, USUAL]
    widths = np.r_[np.full(BINS, SPREAD * (1 + n) ** -0.2), SPREAD]
    taught, temperature = steps_of(learner.taught), learner.taught.calibration.temperature
    return [*first, *steps.beside_head(taught, temperature, learner.directions, middles, widths, weights)]
