"""Where settings are tried: on the base classes' training data, so that no test data and no later class is seen.

Of the base classes of class order 0, a quarter of the training data is held out. Half of these classes are learned at
first and the others one at a time, as in the real protocol, and accuracy is measured on what was held out.
"""

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from sklearn.model_selection import train_test_split

from engram.bench.inputs import Inputs, import_features, load_features
from engram.bench.presets import Preset
from engram.bench.protocol import Samples, class_order, run, split_tasks

PARTS = ("base", "new", "all")


@dataclass(frozen=True)
class Split:
    """What to learn from and what is held out, both of base classes alone."""

    shown: Samples
    held: Samples


def split_base(train: Samples, seed: int = 0) -> Split:
    """The base classes of class order 0; `seed` says what is held out."""
    order = class_order(train.y.tolist(), 0)
    rows = np.flatnonzero(np.isin(train.y, np.asarray(order[: len(order) // 2])))
    shown, held = train_test_split(rows, test_size=0.25, stratify=train.y[rows], random_state=seed)
    return Split(train.at(shown), train.at(held))


def measure(preset: Preset, split: Split, device: str, seed: int = 0, step: int = 1) -> dict:
    """Mean accuracy on base, new and all classes over the increments, their course, and the seconds it took."""
    order = class_order(split.shown.y.tolist(), seed)
    learner = preset.new(seed, device)
    began = time.perf_counter()
    results = [result for _, result in run(learner, split.shown, split.held, split_tasks(order, len(order) // 2, step))]
    course = {part: [getattr(result, f"alpha_{part}") for result in results] for part in PARTS}
    means = {part: fmean(values[1:]) for part, values in course.items()}
    return {**means, "seconds": time.perf_counter() - began, "course": course}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the features come from."""
    parser.add_argument("dataset")
    parser.add_argument("--data", type=Path, metavar="DIR")
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--weights", type=Path, metavar="FILE")
    parser.add_argument("--features", type=Path, metavar="FILE", help="of engram features --export; needs no pictures")
    parser.add_argument("--cache", type=Path, metavar="DIR")
    parser.add_argument("--device", default="auto")


def read_features(arguments: argparse.Namespace) -> Inputs:
    """What the arguments name."""
    if arguments.features:
        return import_features(arguments.features, arguments.dataset, arguments.device)
    return load_features(
        arguments.dataset,
        arguments.data,
        backbone=arguments.backbone,
        weights=arguments.weights,
        cache=arguments.cache,
        device=arguments.device,
    )
