"""What seeing pictures costs without torch: over a bare loop, over the torch code of before, and as one question.

    python benchmarks/light.py --json light.json

Made-up photographs (JPEG, 500×375). The bare loop opens, resizes and stacks pictures with Pillow and asks the same
ONNX Runtime session, in the same batches and threads. Processes start with warm disks; a question is one picture.
Ratios are medians of rounds in which both are measured one after the other.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from table import parser, row, show

from engram.encoders.onnx import INPUT, OUTPUT, OnnxEncoder
from engram.encoders.registry import read_network
from engram.images.stream import cores, encode_all

NAME = "efficientnet_lite0:joined"
IMPORTS = "import numpy, onnxruntime, typer, rich.console, rich.table; from PIL import Image"
ENCODE = (
    "import sys; from engram.encoders.registry import create; from engram.images.stream import encode_all; "
    f"encode_all(sys.argv[1:2], create({NAME!r}))"
)
FROM_FILE = (
    "import sys, numpy, onnxruntime as ort; from PIL import Image; "
    "from engram.encoders.registry import create; from engram.images.stream import prepare; "
    "from engram.encoders.base import Preprocess; options = ort.SessionOptions(); options.intra_op_num_threads = 1; "
    "options.inter_op_num_threads = 1; session = ort.InferenceSession(sys.argv[2], options); "
    f"session.run(None, {{{INPUT!r}: prepare(sys.argv[1], Preprocess(224, interpolation='bicubic'))[None]}})"
)
# Not getrusage: that begins with what the parent held when it forked.
PEAK = "; print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"


def photographs(folder: Path, n: int) -> list[Path]:
    """Soft colours with some grain: about as many bytes as a photograph has."""
    rng, paths = np.random.default_rng(0), []
    for i in range(n):
        soft = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((500, 375), Image.BICUBIC)
        grain = np.asarray(soft, np.int16) + rng.normal(0, 6, (375, 500, 3)).astype(np.int16)
        paths.append(folder / f"{i}.jpg")
        Image.fromarray(np.clip(grain, 0, 255).astype(np.uint8)).save(paths[-1], quality=85)
    return paths


def bare_loop(paths: Sequence[Path], encoder: OnnxEncoder, threads: int) -> np.ndarray:
    def work(some: Sequence[Path]) -> np.ndarray:
        pixels = []
        for path in some:
            with Image.open(path) as image:
                margin = (image.width - image.height) / 2
                box = (margin, 0, image.width - margin, image.height)
                pixels.append(np.asarray(image.convert("RGB").resize((224, 224), Image.BICUBIC, box)))
        return encoder._session.run([OUTPUT], {INPUT: np.stack(pixels)})[0]

    with ThreadPoolExecutor(threads) as pool:
        return np.concatenate(
            list(pool.map(work, [paths[at : at + encoder.batch] for at in range(0, len(paths), encoder.batch)]))
        )


def by_torch(paths: Sequence[Path]) -> Callable[[], np.ndarray]:
    from engram import backbones
    from engram.images import extract

    backbone = backbones.create(NAME)
    return lambda: extract(paths, backbone, device="cpu").values


def process(code: str, *arguments: object) -> Callable[[], str]:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return lambda: subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Spent(NamedTuple):
    """Seconds on the clock, and of processors: the second hardly changes on a machine that others use as well."""

    clock: float
    processors: float


def compare(functions: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[Spent]]:
    """What each takes, one after the other in every round; the first round warms up."""
    taken: dict[str, list[Spent]] = {name: [] for name in functions}
    for at in range(rounds + 1):
        for name, function in functions.items():
            start, before = time.perf_counter(), sum(os.times()[:4])
            function()
            if at:
                taken[name].append(Spent(time.perf_counter() - start, sum(os.times()[:4]) - before))
    return taken


def rows_of(name: str, above: list[Spent], below: list[Spent], bar: str) -> list[dict[str, Any]]:
    """The median ratio of a round, on the clock and of processors."""
    clock, processors = (statistics.median(a[at] / b[at] for a, b in zip(above, below, strict=True)) for at in (0, 1))
    return [row(name, clock, "ratio", bar), row(f"{name}, of processor time", processors, "ratio")]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pictures", type=int, default=200)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--questions", type=int, default=11)
    options = options.parse_args()
    encoder, threads = OnnxEncoder(read_network(NAME), device="cpu"), cores()
    with tempfile.TemporaryDirectory() as folder:
        paths = photographs(Path(folder), options.pictures)
        seeing = compare(
            {
                "bare": lambda: bare_loop(paths, encoder, threads),
                "new": lambda: encode_all(paths, encoder),
                "torch": by_torch(paths),
            },
            options.rounds,
        )
        file = Path(folder) / "network.onnx"
        file.write_bytes(encoder.graph())
        asking = compare(
            {
                "imports": process(IMPORTS),
                "encode": process(ENCODE, paths[0]),
                "file": process(FROM_FILE, paths[0], file),
            },
            options.questions,
        )
        peak = int(process(ENCODE + PEAK, paths[0])()) * 1024
    adds = [a.processors - b.processors for a, b in zip(asking["encode"], asking["file"], strict=True)]
    rows = [
        row("pictures a second", len(paths) / statistics.median(one.clock for one in seeing["new"]), "/s"),
        *rows_of("pictures a second, over a bare loop's", seeing["bare"], seeing["new"], ">= 0.95"),
        *rows_of("pictures a second, over torch's", seeing["torch"], seeing["new"], ">= 2.2"),
        row("features of one picture, whole process", statistics.median(one.clock for one in asking["encode"]), "s"),
        *rows_of("the same, over the bare imports", asking["encode"], asking["imports"], "<= 2.5"),
        row("what making the graph adds, of processor time", statistics.median(adds), "s", "<= 0.1"),
        row("peak memory of that process", peak / 1e6, "MB", "<= 190"),
    ]
    show(rows, "cpu", options.json, threads=threads)


if __name__ == "__main__":
    main()
