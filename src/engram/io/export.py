"""A model as one graph, pictures in and answers out, for programs that have no engram.

The graph takes pictures as uint8 (batch, height, width, 3), RGB and upright, of any size; everything after that is
inside: resizing, cropping, normalisation, backbone, the method's scores and what they mean. docs/export.md shows how
other programs use it.
"""

import contextlib
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engram.backbones import Backbone
from engram.errors import ModelFileError
from engram.io import onnx_file
from engram.io.atomic import replacing
from engram.learner import Learner

TOLERANCE = 1e-4
RESIZED = 0.05  # the same for a picture that is resized, as Pillow and the graph round pixels in different ways
INPUT = "pictures"
# The method's score of each class, its probability; how much a picture looks like any class, whether that reaches the
# threshold; and the position of the best class among `labels`. The file also has `label`, the name of that class.
OUTPUTS = ("similarities", "probabilities", "familiarity", "known", "best")
_LICENCES = {"efficientnet_lite": "Apache-2.0", "resnet50": "BSD-3-Clause", "vgg": "BSD-3-Clause"}
Array = np.ndarray[Any, Any]


class Graph(nn.Module):
    """Backbone and method in one module, as it is exported."""

    def __init__(
        self, backbone: Backbone, learner: Learner, temperature: float, unknown_below: float | None, resizes: bool
    ) -> None:
        super().__init__()
        self.backbone, self.score, self.resizes = backbone, learner.scorer(), resizes
        self.temperature, self.unknown_below = temperature, -np.inf if unknown_below is None else unknown_below

    def forward(self, pictures: Tensor) -> dict[str, Tensor]:
        """Answers to uint8 pictures (batch, height, width, 3)."""
        preprocess, batch = self.backbone.preprocess, pictures.permute(0, 3, 1, 2)
        pixels = preprocess.resample(batch) if self.resizes else batch
        scores, familiarity = self.score(self.backbone(preprocess.normalise(pixels)))
        probabilities, known = (scores / self.temperature).softmax(dim=1), familiarity >= self.unknown_below
        made = (scores.float(), probabilities.float(), familiarity.float(), known, scores.argmax(dim=1))
        return dict(zip(OUTPUTS, made, strict=True))


def export(
    backbone: Backbone,
    learner: Learner,
    out: Path,
    *,
    temperature: float,
    unknown_below: float | None,
) -> dict[str, Any]:
    """Write an ONNX file, if it answers as the model does; return what the graph takes and gives.

    `learner` and `backbone` are on the CPU.
    """
    if not learner.labels:
        raise ValueError("the model knows no class; teach one first")
    if out.suffix != ".onnx":
        raise ValueError(f"{out} must end in .onnx")
    if not out.resolve().parent.is_dir():
        raise ValueError(f"{out.resolve().parent} is not a folder; make it first")
    side = backbone.preprocess.size
    if side is None:
        raise ValueError(f"{backbone.identity} takes pictures of any size, and a graph needs one")
    resizes = backbone.preprocess.traceable
    graph = Graph(backbone, learner, temperature, unknown_below, resizes).eval()
    size = "height, width" if resizes else f"{side}, {side}"
    about: dict[str, Any] = {
        "labels": [str(label) for label in learner.labels],
        "input": f"{INPUT}: uint8 (batch, {size}, 3), RGB",
        "output": ", ".join(OUTPUTS),
        "unknown_below": unknown_below,
        "licence": _licence(backbone),
        "preprocess": backbone.preprocess.describe(),
        "backbone": backbone.identity,
        "method": learner.method,
    }
    samples = _samples(side)
    with torch.no_grad(), _without_chatter(), replacing(out) as written:
        run = _write(graph, samples, written, about)
        about["difference"] = _compare(graph, learner, run, samples)
    return about


def _licence(backbone: Backbone) -> str:
    known = (terms for name, terms in _LICENCES.items() if backbone.identity.startswith(name))
    return f"the network's published weights: {next(known, 'see where they come from')}; the rest: whoever taught it"


@contextlib.contextmanager
def _without_chatter() -> Iterator[None]:
    """Torch's exporter warns about its own insides and about packages that are not needed."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


Run = Callable[[Array], Mapping[str, Array]]


def _compare(graph: Graph, learner: Learner, run: Run, samples: Tensor) -> float:
    """The largest difference between the file's scores and the model's, relative to scores above 1.

    Asked in a batch of several and in one of 1, and about pictures that have to be resized, tall and wide.
    """
    side, backbone, preprocess = samples.shape[1], graph.backbone, graph.backbone.preprocess
    asked = [(samples, TOLERANCE), (samples[:1], TOLERANCE)]
    if graph.resizes:
        asked += [(samples[2:, : side * 2 // 3], RESIZED), (samples[2:, :, : side * 2 // 3], RESIZED)]
    differences = []
    for pictures, tolerance in asked:
        pixels = np.stack([preprocess.image(picture) for picture in pictures.numpy()])
        expected = learner.scores(backbone(preprocess.normalise(torch.from_numpy(pixels))))
        found = run(pictures.numpy())["similarities"]
        differences.append(float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max())))
        if not differences[-1] <= tolerance:
            raise ModelFileError(
                f"the graph's answers differ from the model's by {differences[-1]:.1e}; it was not written"
            )
    return max(differences[:2])


def _samples(side: int) -> Tensor:
    """Noise, coarse patterns and a plain grey: pictures that have nothing in common."""
    generator = torch.Generator().manual_seed(0)
    fine = torch.rand(2, 3, side, side, generator=generator)
    coarse = nn.functional.interpolate(torch.rand(2, 3, 4, 4, generator=generator), side, mode="bicubic").clamp(0, 1)
    grey = torch.full((1, 3, side, side), 0.5)
    return (torch.cat([fine, coarse, grey]) * 255).to(torch.uint8).permute(0, 2, 3, 1).contiguous()


def _trace(graph: Graph, samples: Tensor) -> torch.export.ExportedProgram:
    """The graph for any batch and, if it resizes, any size."""
    free = {0: torch.export.Dim("batch", min=1)}
    if not graph.resizes:
        return torch.export.export(graph, (samples[:2],), dynamic_shapes={INPUT: free})
    free |= {1: torch.export.Dim("height", min=1), 2: torch.export.Dim("width", min=1)}
    shown = samples[:2, :-1].contiguous()  # neither square nor of the network's size, lest torch takes that for a rule
    return torch.export.export(graph, (shown,), dynamic_shapes={INPUT: free})


def _write(graph: Graph, samples: Tensor, path: Path, about: dict[str, Any]) -> Run:
    onnx_file.write(_trace(graph, samples), path, INPUT, OUTPUTS, about)
    session = onnx_file.open_session(path)
    return lambda pictures: dict(zip(OUTPUTS, session.run(OUTPUTS, {INPUT: pictures}), strict=True))
