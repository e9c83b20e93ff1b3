"""What teaching and asking cost without torch: the table of what the light core has to reach.

    python benchmarks/light.py --json light.json
    python benchmarks/light.py --install --before ../before/.venv/bin/python --before-source ../before/src

Made-up photographs (JPEG, 500×375). The bare loop opens, resizes and stacks pictures with Pillow and asks the same
ONNX Runtime session, in the same batches and threads. Processes start with warm disks; a question is one picture.
Ratios are medians of rounds in which both are measured one after the other, so that whatever else the machine does hits
both. `--before` is an environment with the version before, in torch, which is then asked about the same pictures;
`--install` makes an environment of the base alone and weighs it.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from table import parser, row, show

from engram.encoders.onnx import INPUT, OUTPUT, OnnxEncoder
from engram.encoders.registry import read_network
from engram.images.stream import cores, encode_all
from engram.learners.whitened import Whitened
from engram.store import ModelStore, Plan, learn_classes

ROOT = Path(__file__).resolve().parents[1]
NAME = "efficientnet_lite0:joined"
IMPORTS = "import numpy, onnxruntime, typer, rich.console; from PIL import Image"
COMMAND = "import sys; sys.argv[0] = 'engram'; from engram.cli import run\ntry: run()\nexcept SystemExit: pass\n"
# Not getrusage: that begins with what the parent held when it forked.
PEAK = "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
MODULES = "print(sum(name.partition('.')[0] == 'engram' for name in sys.modules))"
BEFORE = (
    "import sys, time; from engram import backbones; from engram.images import extract\n"
    f"network = backbones.create({NAME!r}); extract(sys.argv[1:9], network, device='cpu')\n"
    "began = time.perf_counter(); extract(sys.argv[1:], network, device='cpu'); print(time.perf_counter() - began)"
)


def photographs(folder: Path, n: int, seed: int = 0) -> list[Path]:
    """Soft colours with some grain: about as many bytes as a photograph has."""
    folder.mkdir()
    rng, paths = np.random.default_rng(seed), []
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


def last_line(text: object) -> float:
    return float(str(text).split()[-1])


def seeing(paths: Sequence[Path], options: Any) -> list[dict[str, Any]]:
    """How fast pictures become features."""
    encoder, threads = OnnxEncoder(lambda: read_network(NAME), device="cpu"), cores()
    taken = compare(
        {"bare": lambda: bare_loop(paths, encoder, threads), "new": lambda: encode_all(paths, encoder)}, options.rounds
    )
    rows = [
        row("pictures a second", len(paths) / statistics.median(one.clock for one in taken["new"]), "/s"),
        *rows_of("pictures a second, over a bare loop's", taken["bare"], taken["new"], ">= 0.95"),
    ]
    if options.before:
        there = {**os.environ, "PYTHONPATH": str(options.before_source or "")}
        command, ratios = [str(options.before), "-c", BEFORE, *map(str, paths)], []
        for _ in range(options.rounds):
            torch = last_line(subprocess.run(command, check=True, capture_output=True, text=True, env=there).stdout)
            began = time.perf_counter()
            encode_all(paths, encoder)
            ratios.append(torch / (time.perf_counter() - began))
        rows.append(row("pictures a second, over those of before", statistics.median(ratios), "ratio", ">= 2.2"))
    return rows


def asking(model: Path, picture: Path, rounds: int) -> list[dict[str, Any]]:
    """The whole command, from start to end."""
    question = ["predict", model, picture]
    taken = compare({"imports": process(IMPORTS), "predict": process(COMMAND, *question)}, rounds)
    return [
        row("engram predict, one picture", statistics.median(one.clock for one in taken["predict"]), "s"),
        *rows_of("engram predict, over bare imports", taken["predict"], taken["imports"], "<= 2.5"),
        row("peak memory of it", last_line(process(COMMAND + PEAK, *question)()) * 1024 / 1e6, "MB", "<= 190"),
        row("modules of ours that it loads", last_line(process(COMMAND + MODULES, *question)()), "", "<= 45"),
    ]


def teaching(folder: Path, paths: Sequence[Path], options: Any) -> list[dict[str, Any]]:
    """A base of many pictures, and one class more, over what the network alone takes."""
    encoder, threads = OnnxEncoder(lambda: read_network(NAME), device="cpu"), cores()
    for number, path in enumerate(paths):
        (folder / "base" / f"class {number % 10}").mkdir(parents=True, exist_ok=True)
        os.link(path, folder / "base" / f"class {number % 10}" / path.name)
    model = folder / "learned.engram"

    def learn() -> None:
        model.unlink(missing_ok=True)
        process(COMMAND, "learn", model, folder / "base", "--quiet")()

    taken = compare({"bare": lambda: bare_loop(paths, encoder, threads), "learn": learn}, max(1, options.rounds // 2))
    store, more = ModelStore(model), []
    some = photographs(folder / "more", 20 * (options.rounds + 1), seed=1)
    store.read().open_encoder()
    for at in range(options.rounds + 1):
        pictures = some[20 * at : 20 * at + 20]
        began = time.perf_counter()
        encode_all(pictures, store.read().open_encoder())
        between = time.perf_counter()
        learn_classes(store, {f"new {at}": pictures}, Plan())
        more.append(time.perf_counter() - between - (between - began))
    return [
        *rows_of(
            f"engram learn, a base of {len(paths):,} pictures, over a bare loop",
            taken["learn"],
            taken["bare"],
            "<= 1.15",
        ),
        row("a class of 20 pictures more, over its network time", statistics.median(more[1:]), "s", "<= 0.3"),
    ]


def answering(classes: int, rounds: int) -> list[dict[str, Any]]:
    """Answers to features, over whitening and the product alone."""
    rng, d = np.random.default_rng(0), 2432
    x = np.abs(rng.normal(size=(3000, d))).astype(np.float32)
    learner = Whitened.new().learn(x, [int(i) for i in np.arange(3000) % 1000])
    if classes != 1000 and learner.sums is not None:
        means = np.abs(rng.normal(0.7, 0.3, (classes, d))).astype(np.float32)
        counts = np.full(classes, 3)
        learner = replace(learner, sums=replace(learner.sums, labels=tuple(range(classes)), counts=counts, means=means))
    asked, space = x[:256], learner.space
    taken = compare(
        {
            "floor": lambda: space.whiten(learner.project(asked)) @ space.means.T,
            "answer": lambda: learner.answer(asked, 3),
        },
        rounds,
    )
    rate = len(asked) / statistics.median(one.clock for one in taken["answer"])
    return [
        row(f"answers a second to features, {classes:,} classes", rate, "/s"),
        *rows_of("the same, over whitening and the product alone", taken["answer"], taken["floor"], "<= 1.4"),
    ]


def installed(folder: Path) -> list[dict[str, Any]]:
    """Site-packages after `pip install .`, pip and setuptools included."""
    venv.create(folder, with_pip=True)
    command = [
        folder / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "--constraint",
        ROOT / "constraints.txt",
        ROOT,
    ]
    subprocess.run(command, check=True, capture_output=True)
    size = sum(
        path.stat().st_size for path in next(folder.glob("lib/python*/site-packages")).rglob("*") if path.is_file()
    )
    return [row("site-packages of pip install .", size / 1e6, "MB", "<= 260")]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--pictures", type=int, default=1000, help="of the base")
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--questions", type=int, default=11)
    options.add_argument("--install", action="store_true")
    options.add_argument("--before", type=Path, metavar="PYTHON")
    options.add_argument("--before-source", type=Path, metavar="SRC")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = photographs(folder / "pictures", options.pictures)
        rows = installed(folder / "venv") if options.install else []
        rows += seeing(paths[:200], options)
        rows += teaching(folder, paths, options)
        rows += asking(folder / "learned.engram", paths[0], options.questions)
    rows += [*answering(1000, options.rounds), *answering(100_000, options.rounds)]
    show(rows, "cpu", options.json, threads=cores())


if __name__ == "__main__":
    main()
