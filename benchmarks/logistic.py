#!/usr/bin/env python3
"""What a sensible person would do instead: scikit-learn's LogisticRegression on all data at once, old data included.

    python benchmarks/logistic.py cub200 --data DIR --backbone resnet50 --weights FILE --json logistic.json

Features are standardised, and the penalty is chosen among a few on a tenth of the training data that is held out.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from engram.bench.inputs import load_features
from engram.bench.runner import git_revision

PENALTIES = (1e-4, 1e-3, 1e-2, 1e-1)  # C


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset")
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--backbone", default="efficientnet_lite0:joined")
    parser.add_argument("--weights", type=Path, metavar="FILE")
    parser.add_argument("--cache", type=Path, metavar="DIR")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--json", type=Path, metavar="PATH")
    options = parser.parse_args()
    data = load_features(
        options.dataset, options.data, backbone=options.backbone, weights=options.weights, cache=options.cache,
        device=options.device,
    )  # fmt: skip
    X, y, held_X, held_y = data.train.X.cpu().numpy(), data.train.y, data.test.X.cpu().numpy(), data.test.y
    mean, spread = X.mean(axis=0), X.std(axis=0) + 1e-6
    X, held_X = (X - mean) / spread, (held_X - mean) / spread
    shown, tried = train_test_split(np.arange(len(y)), test_size=0.1, stratify=y, random_state=0)

    def fit(C, rows):
        return LogisticRegression(C=C, max_iter=options.iterations).fit(X[rows], y[rows])

    began = time.perf_counter()
    scores = {}
    for C in PENALTIES:
        scores[C] = fit(C, shown).score(X[tried], y[tried])
        print(f"C={C}: {scores[C]:.4f} on held-out training data, {time.perf_counter() - began:.0f} s", flush=True)
    best = max(scores, key=scores.get)
    began = time.perf_counter()
    accuracy = fit(best, np.arange(len(y))).score(held_X, held_y)
    seconds = time.perf_counter() - began
    print(f"{options.dataset}, {data.backbone}: C={best}, accuracy {accuracy:.4f}, {seconds:.0f} s")
    if options.json:
        record = {"dataset": options.dataset, "backbone": data.backbone, "C": best, "accuracy": accuracy}
        record |= {"seconds": seconds, "git_revision": git_revision()}
        options.json.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
