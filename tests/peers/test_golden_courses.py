"""A course of each of the paper's configurations and of every peer, on a few digits: accuracies and bytes as before."""

from pathlib import Path

import numpy as np
import pytest
import torch
from every import METHODS, make
from snapshots import Snapshots

from engram.bench.datasets import load
from engram.bench.protocol import Samples, class_order, run, split_tasks

# Training ends a little elsewhere on another processor; one of 20 pictures of a class is 0.05.
COURSES = Snapshots(Path(__file__).parent / "golden_courses.json", tolerance=0.05)
NAMES = [name for name in METHODS if name not in ("prototypes", "whitened-encoder", "whitened-recency")]
PAPER = ("mas", "si", "mas-lof", "si-lof")
FORGETTING: dict[str, object] = {"increment_epochs": 20, "increment_rate": 1e-2}  # unless consolidation hinders it
CLASSES, TRAIN, TEST = 6, 30, 20


@pytest.fixture(scope="module")
def digits():
    """Samples of six digits to learn, and to judge by."""
    found = []
    for split, most in ((load("digits").train, TRAIN), (load("digits").test, TEST)):
        labels = np.asarray(split.labels)
        rows = np.concatenate([np.flatnonzero(labels == str(digit))[:most] for digit in range(CLASSES)])
        found.append(Samples(torch.from_numpy(np.asarray(split.images)[rows]) / 16, labels[rows]))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_course_goes_as_before(digits, name):
    train, test = digits
    tasks = split_tasks(class_order(sorted(set(train.y.tolist())), seed=1), base=3)
    course = [result for _, result in run(make(name, **(FORGETTING if name in PAPER else {})), train, test, tasks)]
    measured = {part: [getattr(one, part) for one in course] for part in ("alpha_base", "alpha_new", "alpha_all")}
    kept = [{group: size for group, size in one.kept_bytes.items() if size} for one in course]
    COURSES.check(name, measured | {"kept_bytes": kept})
