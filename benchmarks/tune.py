#!/usr/bin/env python3
"""Try settings of a method where no test data and no later class is seen: on the base classes' training data alone.

    tune.py cub200 --data DIR --backbone resnet50 --weights FILE --preset cub200-slda --try shrinkage=0.01,0.1,0.3

Of the base classes of class order 0, a quarter of the training data is held out. Half of these classes are then learned
at first and the others one at a time, as in the real protocol, and accuracy is measured on what was held out. Every
combination of the values tried is run; prints a table, the settings with the best mean over all classes first.
"""

import argparse
import itertools
import json
import sys
import time
from pathlib import Path
from statistics import fmean

import numpy as np
from sklearn.model_selection import train_test_split

from engram.bench.inputs import import_features, load_features
from engram.bench.presets import load_preset
from engram.bench.protocol import Samples, class_order, run, split_tasks


def split_base(train: Samples, seed: int) -> tuple[Samples, Samples]:
    """The base classes of class order 0: what to learn from, and what is held out."""
    order = class_order(train.y.tolist(), 0)
    rows = np.flatnonzero(np.isin(train.y, np.asarray(order[: len(order) // 2])))
    shown, held = train_test_split(rows, test_size=0.25, stratify=train.y[rows], random_state=seed)
    return train.at(shown), train.at(held)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--weights", type=Path, metavar="FILE")
    parser.add_argument("--features", type=Path, metavar="FILE", help="of engram features --export; needs no pictures")
    parser.add_argument("--cache", type=Path, metavar="DIR")
    parser.add_argument("--preset", required=True)
    parser.add_argument("--try", dest="tries", action="append", default=[], metavar="NAME=VALUE,VALUE,…")
    parser.add_argument("--step", type=int, default=1, help="classes at a time")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="PATH")
    arguments = parser.parse_args()

    tries = []
    for text in arguments.tries:
        name, _, values = text.partition("=")
        tries.append([f"{name}={value}" for value in values.split(",")])
    if arguments.features:
        features = import_features(arguments.features, arguments.dataset, arguments.device)
    else:
        features = load_features(
            arguments.dataset,
            arguments.data,
            backbone=arguments.backbone,
            weights=arguments.weights,
            cache=arguments.cache,
            device=arguments.device,
        )
    shown, held = split_base(features.train, arguments.seed)
    order = class_order(shown.y.tolist(), arguments.seed)
    tasks = split_tasks(order, len(order) // 2, arguments.step)
    rows = []
    for changes in itertools.product(*tries):
        preset = load_preset(arguments.preset, changes)
        learner = preset.learner(preset.config, seed=arguments.seed, device=arguments.device)
        began = time.perf_counter()
        results = list(run(learner, shown, held, tasks))
        course = {part: [getattr(r, f"alpha_{part}") for r in results] for part in ("base", "new", "all")}
        row = {part: fmean(values[1:]) for part, values in course.items()}
        rows.append({"changes": list(changes), **row, "seconds": time.perf_counter() - began, "course": course})
        print(f"{' '.join(changes) or arguments.preset}: all {row['all']:.3f}", file=sys.stderr, flush=True)
    rows.sort(key=lambda row: -row["all"])
    print(f"{'base':>6}{'new':>7}{'all':>7}{'seconds':>9}  settings")
    for row in rows:
        print(f"{row['base']:6.3f}{row['new']:7.3f}{row['all']:7.3f}{row['seconds']:9.1f}  {' '.join(row['changes'])}")
    if arguments.json:
        record = {"dataset": arguments.dataset, "backbone": features.backbone, "preset": arguments.preset, "rows": rows}
        arguments.json.write_text(json.dumps(record, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
