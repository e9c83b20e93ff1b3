"""A model as one graph, images in and scores out, for programs that have no engram.

The graph takes pictures as uint8 (batch, 3, height, width), RGB, resized and cropped as the backbone asks; everything
after that is inside: normalisation, backbone, and the method's scores.
"""

import contextlib
import json
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engram.backbones import Backbone
from engram.errors import ModelFileError
from engram.io.atomic import replacing
from engram.learner import Learner

TOLERANCE = 1e-4
INPUT, OUTPUT = "pictures", "similarities"


class Graph(nn.Module):
    """Backbone and method in one module, as it is exported."""

    def __init__(self, backbone: Backbone, learner: Learner) -> None:
        super().__init__()
        self.backbone, self.score = backbone, learner.scorer()

    def forward(self, pictures: Tensor) -> Tensor:
        """The score of each class."""
        return self.score(self.backbone(self.backbone.preprocess.normalise(pictures)))


def export(backbone: Backbone, learner: Learner, out: Path) -> dict[str, Any]:
    """Write OUT.onnx or OUT.pt2, if it answers as the model does; return what the graph takes and gives.

    `learner` and `backbone` are on the CPU.
    """
    if not learner.labels:
        raise ValueError("the model knows no class; teach one first")
    writers = {".onnx": (_write_onnx, _run_onnx), ".pt2": (_write_pt2, _run_pt2)}
    if out.suffix not in writers:
        raise ValueError(f"{out} must end in .onnx or .pt2")
    if not out.resolve().parent.is_dir():
        raise ValueError(f"{out.resolve().parent} is not a folder; make it first")
    write, run = writers[out.suffix]
    graph = Graph(backbone, learner).eval()
    side = graph.backbone.preprocess.size
    if side is None:
        raise ValueError(f"{backbone.identity} takes pictures of any size, and a graph needs one")
    about: dict[str, Any] = {
        "labels": [str(label) for label in learner.labels],
        "input": f"{INPUT}: uint8 (batch, 3, {side}, {side}), RGB",
        "output": f"{OUTPUT}: float32 (batch, {len(learner.labels)}), the score of each class",
        "preprocess": backbone.preprocess.describe(),
        "backbone": backbone.identity,
        "method": learner.method,
    }
    batch = torch.export.Dim("batch", min=1)
    with torch.no_grad(), _without_chatter():
        program = torch.export.export(graph, (_samples(side)[:2],), dynamic_shapes={"pictures": {0: batch}})
        with replacing(out) as written:
            write(program, written, about)
            about["difference"] = _compare(backbone, learner, lambda pictures: run(written, pictures), side)
    return about


@contextlib.contextmanager
def _without_chatter() -> Iterator[None]:
    """Torch's exporters warn about their own insides and about packages that are not needed."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _compare(backbone: Backbone, learner: Learner, run: Any, side: int) -> float:
    """The largest difference between the file's scores and the model's, relative to scores above 1.

    Asked in a batch of several and in one of 1.
    """
    samples, largest = _samples(side), 0.0
    for pictures in (samples, samples[:1]):
        expected = learner.scores(backbone(backbone.preprocess.normalise(pictures)))
        largest = max(largest, float(np.abs(run(pictures) - expected).max() / max(1.0, np.abs(expected).max())))
    if not largest <= TOLERANCE:
        raise ModelFileError(f"the graph's answers differ from the model's by {largest:.1e}; it was not written")
    return largest


def _samples(side: int) -> Tensor:
    """Noise, coarse patterns and a plain grey: pictures that have nothing in common."""
    generator = torch.Generator().manual_seed(0)
    fine = torch.rand(2, 3, side, side, generator=generator)
    coarse = nn.functional.interpolate(torch.rand(2, 3, 4, 4, generator=generator), side, mode="bicubic").clamp(0, 1)
    grey = torch.full((1, 3, side, side), 0.5)
    return (torch.cat([fine, coarse, grey]) * 255).to(torch.uint8)


def _write_onnx(program: torch.export.ExportedProgram, path: Path, about: dict[str, Any]) -> None:
    try:
        import onnx
        import onnxruntime  # noqa: F401  (for the check)
        import onnxscript  # noqa: F401  (for torch)
    except ImportError as error:
        raise ValueError(f"{error.name} is not installed; pip install 'engram-learn[onnx]'") from None
    made = torch.onnx.export(program, input_names=[INPUT], output_names=[OUTPUT], dynamo=True, verbose=False)
    if made is None:
        raise RuntimeError("torch.onnx.export returned no graph")  # it does if it writes a file itself
    proto = made.model_proto
    for key, value in about.items():
        proto.metadata_props.add(key=key, value=value if isinstance(value, str) else json.dumps(value))
    proto.producer_name = "engram"
    onnx.checker.check_model(proto, full_check=True)
    onnx.save(proto, path)


def _run_onnx(path: Path, pictures: Tensor) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run([OUTPUT], {INPUT: pictures.numpy()})[0]


def _write_pt2(program: torch.export.ExportedProgram, path: Path, about: dict[str, Any]) -> None:
    with path.open("wb") as file:
        torch.export.save(program, file, extra_files={"engram.json": json.dumps(about)})


def _run_pt2(path: Path, pictures: Tensor) -> Any:
    with path.open("rb") as file:
        program = torch.export.load(file)
    return program.module()(pictures).numpy()
