"""The benchmark: rows x class orders, task by task, resumable, everything measured written down."""

import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import engram
from engram.bench import published
from engram.bench.learners import on_device, passes
from engram.bench.metrics import confusion, memory_at, psi
from engram.bench.offline import Ideal, offline_ideal
from engram.bench.presets import Preset
from engram.bench.protocol import Samples, TaskResult, answers, class_order, run, split_tasks
from engram.bench.results_file import write_json, write_results
from engram.bench.torchrun import from_first, is_first
from engram.files import model_file
from engram.learners.base import Learner, Progress, State

Json = dict[str, Any]


@dataclass(frozen=True)
class Bench:
    """What to run: features of one data set, the protocol, and where results and unfinished work go."""

    dataset: str
    backbone: str
    train: Samples
    test: Samples
    out: Path
    base: int
    step: int = 1
    order_seeds: Sequence[int] = (0, 1, 2)
    initialisations: int = 1  # how often every class order is run
    device: str = "auto"
    checkpoint_every: float = 0.0  # seconds between checkpoints; 0 makes one after every task

    def courses(self) -> list[tuple[int, int]]:
        """Every class order with every initialisation."""
        return [(order, number) for order in self.order_seeds for number in range(self.initialisations)]

    def work(self, presets: Sequence[Preset]) -> float:
        """How much there is to do, in samples x epochs."""
        return len(self.courses()) * sum(self.row_work(preset) for preset in presets)

    def row_work(self, preset: Preset) -> float:
        """One row on one class order, classes taken to be of one size."""
        share = self.base / len(set(self.train.y.tolist()))
        base, increment = (passes(preset.learner, preset.config, first) for first in (True, False))
        return len(self.train.y) * (share * base + (1 - share) * increment)


# preset, order seed, task number, number of tasks, the epoch just done (None: the task is), work done of Bench.work
BenchProgress = Callable[[str, int, int, int, Progress | None, float], None]


def run_bench(bench: Bench, presets: Sequence[Preset], progress: BenchProgress | None = None) -> Json:
    """Run every preset on every class order and write `results.json`; what was finished before is not run again."""
    split_tasks(class_order(bench.train.y.tolist(), 0), bench.base, bench.step)  # if it cannot be, that is said now
    measure_ideal(bench)
    done = 0.0
    for preset in presets:
        for order, initialisation in bench.courses():
            run_course(bench, preset, order, initialisation, progress, done)
            done += bench.row_work(preset)
    results = {"format": 1, "run": about(bench), "records": [make_record(bench, preset) for preset in presets]}
    write_results(bench.out / "results.json", results)
    return results


def run_course(
    bench: Bench,
    preset: Preset,
    seed: int,
    initialisation: int,
    progress: BenchProgress | None = None,
    done: float = 0.0,
) -> Json:
    """One preset on one class order, from the last checkpoint on; when it is finished only numbers stay on disk.

    The order has its seed. What the learner draws, its first weights above all, has another for every initialisation.
    """
    order = class_order(bench.train.y.tolist(), seed)
    tasks = split_tasks(order, bench.base, bench.step)
    files = _Files(
        bench.out / "state" / (f"{preset.name}-order{seed}" + (f"-init{initialisation}" if initialisation else "")),
        {"config": _plain(preset.config), "backbone": bench.backbone, "order": order, "tasks": tasks},
    )
    if finished := from_first(files.finished):
        return finished
    learner, results = files.resume(preset.learner, bench.device)
    learner = learner or preset.new(seed + 1000 * initialisation, bench.device)
    saved = time.monotonic()
    sizes = [len(bench.train.of(task).y) for task in tasks]
    work = [size * passes(preset.learner, preset.config, number == 0) for number, size in enumerate(sizes)]
    start = done
    done += sum(work[: len(results)])
    tell = progress or (lambda *_: None)

    def epoch_done(number: int, epoch: Progress) -> None:
        nonlocal done
        done += sizes[number]
        tell(preset.name, seed, number, len(tasks), epoch, done)

    best = results[-1].best if results else ()
    taught = learner
    for taught, result in run(learner, bench.train, bench.test, tasks, epoch_done, best):
        results.append(result)
        done = start + sum(work[: len(results)])
        tell(preset.name, seed, result.task, len(tasks), None, done)
        if is_first() and time.monotonic() - saved >= bench.checkpoint_every:
            files.checkpoint(taught, results)
            saved = time.monotonic()
    found = answers(taught, bench.test, tasks)
    course = {
        "seed": seed,
        "init": initialisation,
        "classes": order,
        "tasks": [{k: v for k, v in asdict(result).items() if k != "best"} for result in results],
        "confusion": confusion(found, bench.test, order),
        "predictions": _positions(found, bench),
        "memory": memory_at(taught, (100, 1000)),
    }
    if is_first():
        files.finish(course)
    return course


class _Files:
    """What one row on one class order leaves on disk: a checkpoint while it runs, its numbers when it has ended."""

    def __init__(self, folder: Path, identity: Json) -> None:
        self.learner, self.course, self.identity = folder / "learner.engram", folder / "course.json", identity

    def checkpoint(self, learner: Learner, results: Sequence[TaskResult]) -> None:
        """The learner and the results of all it has learned, in one file."""
        state, tasks = learner.state(), [asdict(result) for result in results]
        self.learner.parent.mkdir(parents=True, exist_ok=True)
        model_file.write(self.learner, state.arrays, {"learner": state.meta, "tasks": tasks, "identity": self.identity})

    def resume(self, kind: type[Learner], device: str) -> tuple[Learner | None, list[TaskResult]]:
        """The learner and the results of the last checkpoint, if there is one."""
        checkpoint = from_first(self._read_checkpoint)
        if checkpoint is None:
            return None, []
        arrays, header = checkpoint
        learner = on_device(kind.from_state(State(arrays, header["learner"])), device)
        return learner, [TaskResult(**task) for task in header["tasks"]]

    def _read_checkpoint(self) -> tuple[dict[str, NDArray[Any]], Json] | None:
        if not self.learner.exists():
            return None
        arrays, header = model_file.read(self.learner)
        self._check(header["identity"])
        return arrays, header

    def finish(self, course: Json) -> None:
        """Keep the numbers; the learner has done its work."""
        write_json(self.course, {"identity": self.identity, "content": course})
        self.learner.unlink(missing_ok=True)

    def finished(self) -> Json | None:
        """The numbers, if the run has ended."""
        if not self.course.exists():
            return None
        stored = json.loads(self.course.read_text(encoding="utf-8"))
        self._check(stored["identity"])
        return dict(stored["content"])

    def _check(self, identity: Json) -> None:
        if identity != self.identity:
            folder = self.course.parent
            raise ValueError(f"{folder} holds another run's work; choose another --out, or remove that folder")


def measure_ideal(bench: Bench) -> Ideal:
    """The offline accuracy, measured once per folder."""
    path = bench.out / "state" / "ideal.json"

    def read() -> Json | None:
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None

    content = from_first(read)
    if content is not None and content.pop("backbone") == bench.backbone:
        return Ideal.from_json(content)
    ideal = offline_ideal(bench.train, bench.test)
    write_json(path, {"backbone": bench.backbone, **asdict(ideal)})
    return ideal


def make_record(bench: Bench, preset: Preset) -> Json:
    """A row of the results: everything that was measured, and what it comes to."""
    ideal = measure_ideal(bench)
    orders = [run_course(bench, preset, order, initialisation) for order, initialisation in bench.courses()]
    courses = [[TaskResult(**task) for task in order["tasks"]] for order in orders]
    constant = published.IDEAL.get(bench.dataset)
    return {
        "dataset": bench.dataset,
        "backbone": bench.backbone,
        "method": preset.method,
        "learner": preset.learner.method,
        "preset": preset.name,
        **({"name": preset.variant} if preset.variant else {}),
        "config": _plain(preset.config),
        "protocol": {
            "base": bench.base,
            "step": bench.step,
            "classes": len(orders[0]["classes"]),
            "order_seeds": list(bench.order_seeds),
            "initialisations": bench.initialisations,
        },
        "alpha_ideal": asdict(ideal),
        **_psi(courses, ideal.accuracy),
        "paper_ideal": {"alpha_ideal": constant, **_psi(courses, constant)} if constant else None,
        "average_incremental_accuracy": _over_orders(fmean(r.alpha_all for r in course) for course in courses),
        "final_accuracy": _over_orders(course[-1].alpha_all for course in courses),
        "forgetting": _over_orders(course[-1].forgetting for course in courses),
        "orders": [
            {key: order[key] for key in ("seed", "init", "classes")}
            | {"tasks": [_shorten(task) for task in order["tasks"]]}
            for order in orders
        ],
        "confusion": orders[0]["confusion"],
        "predictions": {
            "labels": np.unique(bench.test.y).tolist(),
            "truth": _positions(bench.test.y, bench),
            "courses": [order["predictions"] for order in orders],
        },
        "memory": orders[0]["memory"],
    }


def _positions(labels: NDArray[Any], bench: Bench) -> list[int]:
    """Of every label, in the sorted list of all classes."""
    return [int(place) for place in np.searchsorted(np.unique(bench.test.y), labels)]


def _psi(courses: Sequence[Sequence[TaskResult]], alpha_ideal: float) -> Json:
    measured = [psi(course, alpha_ideal) for course in courses]
    return {f"psi_{part}": _over_orders(getattr(m, part) for m in measured) for part in ("base", "new", "all")}


def _over_orders(found: Iterable[float]) -> Json:
    values = list(found)
    return {"mean": fmean(values), "std": stdev(values) if len(values) > 1 else 0.0, "values": values}


def about(bench: Bench) -> Json:
    """What was run, when, where, and by which revision."""
    cpu = platform.processor() or platform.machine()
    return {
        "engram": engram.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "git_revision": git_revision(),
        "device": torch.cuda.get_device_name() if bench.train.X.is_cuda else cpu,
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": " ".join(["engram", *sys.argv[1:]]),
        "seed": list(bench.order_seeds),
    }


def git_revision() -> str | None:
    """The commit that this code is of, where it is a working copy."""
    source = Path(__file__).parent
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=source, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() or None


def _shorten(task: Json) -> Json:
    return {key: round(value, 6) if isinstance(value, float) else value for key, value in task.items()}


def _plain(config: Any) -> Any:
    """As it is when it has been read back."""
    return json.loads(json.dumps(asdict(config)))
