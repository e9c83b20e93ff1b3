"""What one class more costs when there are already many.

    python benchmarks/growth.py --device cpu --json growth.json

Synthetic features, the real learner. First, time and peak memory to learn class 1,000 over class 10, with an encoder
large enough to matter. Then 10,000 classes one after another with a small encoder: what is kept grows by one mean, its
count and its name per class, and by nothing else.
"""

import gc
import resource
import statistics
import sys
import time

import numpy as np
import torch
from table import parser, row, show

from engram.learners.trying import reachable_arrays
from engram.paper.device import resolve_device
from engram.paper.prototypes import Method

SAMPLES = 32


def class_of(number, width):
    rng = np.random.default_rng(number)
    return (rng.normal(size=width) + 0.5 * rng.normal(size=(SAMPLES, width))).astype(np.float32)


def learn(learner, number, width):
    X = class_of(number, width)
    y = [f"class {number}"] * SAMPLES
    device = learner.torch_learner.device
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    after = learner.learn(X, y)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return after, time.perf_counter() - start


def peak(device):
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def late_over_early(device, early, late, rounds=15):
    """Seconds to learn class `early` and class `late`, in turns, and the peak memory when they were learned."""
    width = 512
    settings = {"layers": (512, 512), "base_epochs": 1, "increment_epochs": 20, "feature_rms": 1.0}
    learner = Method.new(settings).on(device)
    states, memory = {}, {}
    for number in range(1, late + 1):
        if number in (early, late):
            states[number] = learner
        learner, _ = learn(learner, number, width)
        memory[number] = peak(device)
    seconds = {early: [], late: []}
    for _ in range(rounds):
        for at, before in states.items():
            seconds[at].append(learn(before, at, width)[1])
    return {at: (statistics.median(values), memory[at]) for at, values in seconds.items()}


def kept_per_class(device, classes):
    """Bytes reachable from the learner after `classes` classes over those after 100, per class."""
    width = 32
    settings = {"layers": (32, 16), "base_epochs": 1, "increment_epochs": 1, "feature_rms": 1.0}
    learner = Method.new(settings).on(device)
    kept, resident = {}, {}
    for number in range(1, classes + 1):
        learner, _ = learn(learner, number, width)
        if number in (100, classes):
            gc.collect()
            bytes_kept = sum(learner.bytes_kept().values())
            assert bytes_kept - sum(values.nbytes for values in reachable_arrays(learner)) in range(0, 16)  # a scalar
            names = sum(len(name.encode()) for name in learner.labels)
            kept[number], resident[number] = (bytes_kept, names), peak(device)
    grown = classes - 100
    mean = settings["layers"][-1] * 4
    return {
        "mean and count": mean + 8,
        "tensors": (kept[classes][0] - kept[100][0]) / grown,
        "name": (kept[classes][1] - kept[100][1]) / grown,
        "process": (resident[classes] - resident[100]) / grown,
    }


def main():
    options = parser(__doc__)
    options.add_argument("--late", type=int, default=1000)
    options.add_argument("--classes", type=int, default=10_000)
    options = options.parse_args()
    device = resolve_device(options.device)
    early = 10
    # The process's peak on a CPU only ever rises, so the many small classes come last.
    costs = late_over_early(device, early, options.late)
    (soon, soon_memory), (later, later_memory) = costs[early], costs[options.late]
    grown = kept_per_class(device, options.classes)
    rows = [
        row(f"seconds to learn class {early}", soon, "s"),
        row(f"seconds to learn class {options.late:,}", later, "s"),
        row("seconds, late over early", later / soon, "ratio", "<= 1.05"),
        row("peak memory, late over early", later_memory / soon_memory, "ratio", "<= 1.05"),
        row("one mean and its count", grown["mean and count"], "bytes"),
        row(f"kept tensors per class, 100 to {options.classes:,}", grown["tensors"], "bytes"),
        row("kept beyond mean and count", grown["tensors"] - grown["mean and count"], "bytes", "<= 0"),
        row("a name", grown["name"], "bytes"),
        row("the whole process, per class", grown["process"], "bytes"),
    ]
    show(rows, device, options.json)


if __name__ == "__main__":
    main()
