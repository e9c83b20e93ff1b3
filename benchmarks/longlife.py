"""Years of increments: 2,000 classes one at a time, and what is left of the oldest.

    python benchmarks/longlife.py --device cpu --json longlife.json --picture docs/longlife.png

Made-up features, as after a ReLU: class centres in 64 dimensions, so close together that a class has neighbours, 10
samples of each to learn from and 10 others to ask about. Ten classes first, then one at a time. Asked about are the
oldest ten classes, the newest ten, and 200 of all. The paper's method has the settings `engram learn` gives it for few
samples; the others have none.
"""

import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from table import parser, row, show

from engram.learners import registry
from engram.model import Model

METHODS = ("whitened", "slda", "ncm", "mas", "si")
WIDTH, LEARNED, ASKED, FIRST = 64, 10, 10, 10


def samples_of(number, n, part):
    centre = np.random.default_rng([number, 0]).normal(size=WIDTH)
    noise = np.random.default_rng([number, part]).normal(size=(n, WIDTH))
    return np.maximum(centre + noise, 0).astype(np.float32)


def questions(numbers):
    X = np.concatenate([samples_of(number, ASKED, 2) for number in numbers])
    return X, np.repeat([f"class {number}" for number in numbers], ASKED)


def accuracy(model, numbers):
    X, y = questions(numbers)
    labels = np.asarray(model.learner.labels)
    return float(np.mean(labels[model.answer(X).rows[:, 0]] == y))


def resident():
    """The largest memory the process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def live(method, points, device):
    """What a model can still do, and what it costs, when it knows as many classes as `points` says."""
    model = Model.new(method, registry.find(method).few_samples)
    learned, course = 0, []
    rng = np.random.default_rng(1)
    for point in points:
        start, before = time.perf_counter(), learned
        while learned < point:
            numbers = range(FIRST) if learned == 0 else [learned]
            X = np.concatenate([samples_of(number, LEARNED, 1) for number in numbers])
            model, _ = model.learn(X, np.repeat([f"class {number}" for number in numbers], LEARNED), judge=False)
            learned += len(numbers)
        course.append(
            {
                "classes": point,
                "oldest": accuracy(model, range(FIRST)),
                "newest": accuracy(model, range(learned - FIRST, learned)),
                "all": accuracy(model, rng.permutation(learned)[:200]),
                "seconds": (time.perf_counter() - start) / (learned - before),
                "bytes": sum(model.learner.state().memory().values()),
                "process": resident(),
            }
        )
        print(method, {name: round(value, 4) for name, value in course[-1].items()}, flush=True)
    return course


def draw(courses, path):
    """Oldest and all classes against how many are known, and what a class costs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.6), layout="constrained")
    panels = (("oldest", "accuracy, oldest ten"), ("all", "accuracy, all"), ("seconds", "seconds per class"))
    for axis, (field, title) in zip(figure.subplots(1, 3), panels, strict=True):
        for method, course in courses.items():
            axis.plot([at["classes"] for at in course], [at[field] for at in course], marker="o", ms=3, label=method)
        axis.set(title=title, xlabel="classes known", xscale="log")
        axis.grid(alpha=0.3)
        if field == "seconds":
            axis.set_yscale("log")
        else:
            axis.set_ylim(0, 1.02)
    figure.axes[0].legend()
    figure.savefig(path, dpi=110)


def main():
    options = parser(__doc__)
    options.add_argument("--classes", type=int, default=2000)
    options.add_argument("--method", action="append", help="may be repeated (default: all five)")
    options.add_argument("--picture", type=Path)
    options = options.parse_args()
    points = [n for n in (10, 20, 50, 100, 200, 500, 1000) if n < options.classes] + [options.classes]
    methods = options.method or METHODS
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as alone:  # so that each has its own peak
        courses = dict(zip(methods, alone.map(live, methods, repeat(points), repeat(options.device)), strict=True))
    rows = []
    for method, course in courses.items():
        last = course[-1]
        rows += [row(f"{method}: accuracy, {which}", last[which], "") for which in ("oldest", "newest", "all")]
        rows.append(row(f"{method}: a class", last["seconds"], "s"))
        rows.append(row(f"{method}: kept", last["bytes"] / 1e6, "MB"))
        rows.append(row(f"{method}: the whole process", last["process"] / 1e6, "MB"))
    show(rows, options.device, options.json)
    if options.picture:
        draw(courses, options.picture)


if __name__ == "__main__":
    main()
