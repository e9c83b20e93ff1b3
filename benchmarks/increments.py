"""What one class more costs every method: seconds, when few classes are known and when many are, and bytes kept.

    python benchmarks/increments.py cub200 --features cub200-resnet50.safetensors --json increments.json

Half of the classes are learned at once; then one at a time, one that warms up and ten that are timed; then all but the
last eleven at once, and those one at a time again. Nothing is tested in between, and nothing else should run meanwhile.
"""

import time
from pathlib import Path
from statistics import fmean

import torch
from table import parser, row, show

from engram.bench.inputs import import_features
from engram.bench.learners import METHODS, bytes_kept, device_of
from engram.bench.presets import load_preset, preset_names
from engram.bench.protocol import class_order
from engram.bench.published import OWN
from engram.bench.runner import git_revision

FEW = 10  # FearNet sleeps once in so many


def learn(learner, train, labels):
    """The learner that has, and the seconds it took."""
    own = train.of(labels)
    start = time.perf_counter()
    after = learner.learn(own.X, own.y.tolist())
    if device_of(learner).type == "cuda":
        torch.cuda.synchronize()
    return after, time.perf_counter() - start


def cost(preset, train, device):
    """Mean seconds of ten increments soon after the base and of the last ten, and bytes kept after each ten."""
    order = class_order(train.y.tolist(), 0)
    learner = preset.new(device=device)
    train = train.for_learner(learner)
    early, late = order[len(order) // 2 :][: FEW + 1], order[-FEW - 1 :]
    learner, _ = learn(learner, train, order[: len(order) // 2])
    learner, first = one_by_one(learner, train, early)
    few = sum(bytes_kept(learner).values())
    learner, _ = learn(learner, train, order[len(order) // 2 + len(early) : -len(late)])
    learner, last = one_by_one(learner, train, late)
    return first, last, few, sum(bytes_kept(learner).values())


def one_by_one(learner, train, labels):
    """The learner that has learned some classes one at a time, and the mean of the seconds, without the first."""
    seconds = []
    for label in labels:
        learner, taken = learn(learner, train, [label])
        seconds.append(taken)
    return learner, fmean(seconds[1:])


def main():
    options = parser(__doc__)
    options.add_argument("dataset", choices=("cifar100", "cub200"))
    options.add_argument("--features", type=Path, required=True, help="file of engram features --export")
    options.add_argument("--method", action="append", help="may be repeated (default: all)")
    options = options.parse_args()
    train = import_features(options.features, options.dataset, options.device).train
    rows = []
    every = [name for name in dict.fromkeys([*OWN, *METHODS]) if f"{options.dataset}-{name}" in preset_names()]
    for method in options.method or every:
        first, last, few, many = cost(load_preset(f"{options.dataset}-{method}"), train, options.device)
        rows += [
            row(f"{method}: an early class", first, "s"),
            row(f"{method}: a late class", last, "s"),
            row(f"{method}: late / early", last / first, "ratio"),
            row(f"{method}: kept, early", few / 1e6, "MB"),
            row(f"{method}: kept, late", many / 1e6, "MB"),
        ]
        print(f"{method}: {first:.4f} s, {last:.4f} s", flush=True)
    show(rows, options.device, options.json, git_revision=git_revision())


if __name__ == "__main__":
    main()
