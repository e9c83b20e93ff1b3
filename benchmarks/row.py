"""One full row of the CIFAR-100 table, MAS, against the same row trained by the plain engine.

    python benchmarks/row.py --device cuda --data DIR --weights vgg16.safetensors --tf32 --json row.json

100 base epochs over 25,000 samples, then 50 classes x 50 epochs, evaluation after every task included. Both use the
same learner, protocol and random class order; only the engine differs.
"""

import time
from dataclasses import replace
from pathlib import Path

import torch
from table import parser, row, show

from engram.bench.inputs import load_features
from engram.bench.metrics import psi
from engram.bench.offline import RECIPES, offline_ideal
from engram.bench.presets import load_preset
from engram.bench.protocol import class_order, run, split_tasks
from engram.paper.engine import FAST, PLAIN
from engram.paper.prototypes import Method, Prototypes


def one_row(engine, config, inputs, tasks, device):
    made = Prototypes(config, seed=0, device=device)
    made.engine = engine
    learner = Method.around(made)
    start = time.perf_counter()
    results = [result for _, result in run(learner, inputs.train, inputs.test, tasks)]
    return time.perf_counter() - start, results


def main():
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--weights", type=Path)
    options.add_argument("--backbone", default="vgg16")
    options.add_argument("--cache", type=Path)
    options.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a setting of the row")
    options.add_argument("--base", type=int, default=50)
    options.add_argument("--tf32", action="store_true", help="faster, less exact matrix products on a GPU")
    options = options.parse_args()
    if options.tf32:
        torch.set_float32_matmul_precision("high")
    inputs = load_features(
        "cifar100", options.data, backbone=options.backbone, weights=options.weights, cache=options.cache,
        device=options.device,
    )  # fmt: skip
    config = load_preset("cifar100-mas", options.set).config
    tasks = split_tasks(class_order(inputs.train.y.tolist(), 0), options.base)
    ideal = offline_ideal(inputs.train, inputs.test, recipes=RECIPES[-1:]).accuracy

    started = time.perf_counter()  # compiles, with batches of the sizes to come
    one_row(FAST, replace(config, base_epochs=1), inputs, tasks[:3], options.device)
    warm_up = time.perf_counter() - started
    mine, results = one_row(FAST, config, inputs, tasks, options.device)
    plain, theirs = one_row(PLAIN, config, inputs, tasks, options.device)
    ours, reference = psi(results, ideal), psi(theirs, ideal)
    gap = max(abs(getattr(ours, part) - getattr(reference, part)) for part in ("base", "new", "all"))
    gpu = inputs.train.X.is_cuda
    rows = [
        row("compiling, once in a process; one base epoch and two classes", warm_up, "s"),
        row("row", mine, "s", "<= 40" if gpu else ""),
        row("row, base task", results[0].seconds, "s"),
        row("row, the other tasks", sum(result.seconds for result in results[1:]), "s"),
        row("row by the plain engine", plain, "s"),
        row("plain / row", plain / mine, "ratio", ">= 4" if gpu else ""),
        row("largest difference of a Ψ", gap, "", "<= 0.01"),
    ]
    rows += [row(f"Ψ_{part}", getattr(ours, part), "") for part in ("base", "new", "all")]
    show(rows, options.device, options.json, tf32=options.tf32)


if __name__ == "__main__":
    main()
