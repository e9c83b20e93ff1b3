#!/usr/bin/env python3
"""How far do frozen features go by themselves? Offline probes on all classes at once, nothing learned but statistics.

    probe.py --data DIR --dataset cifar100 --backbone vgg16 --weights FILE [--device auto] [--json PATH]

NCM is the nearest class mean (by cosine and by Euclidean distance), LDA one shared covariance over the class means.
Prints a table, beside the values a prototype measured on the same features where there are any; a probe that is more
than 0.02 away is marked and makes the exit status 1. DIR holds cifar-100-python/ or CUB_200_2011/.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engram.bench import datasets
from engram.datasets.dataset import Split
from engram.encoders.base import Encoder
from engram.encoders.registry import create
from engram.images.stream import encode_all
from engram.paper.device import resolve_device

TOLERANCE = 0.02
MEASURED = {
    ("cifar100", "vgg16"): {"ncm": 0.469, "lda": 0.601},
    ("cifar100", "vgg19"): {"ncm": 0.397, "lda": 0.566},
    ("cifar100", "resnet50"): {"ncm": 0.575, "lda": 0.718},
    ("cub200", "resnet50"): {"ncm": 0.528, "lda": 0.677},
}


def chunks(features: np.ndarray, labels: Tensor, device: torch.device) -> Iterator[tuple[Tensor, Tensor]]:
    for start in range(0, len(features), 4096):
        stop = start + 4096
        yield torch.from_numpy(features[start:stop]).to(device), labels[start:stop]


def class_means(features: np.ndarray, labels: Tensor, classes: int, device: torch.device) -> Tensor:
    sums = torch.zeros(classes, features.shape[1], dtype=torch.float64, device=device)
    for batch, names in chunks(features, labels, device):
        sums.index_add_(0, names, batch.double())
    return sums / torch.bincount(labels, minlength=classes)[:, None]


def pooled_covariance(features: np.ndarray, labels: Tensor, means: Tensor, device: torch.device) -> Tensor:
    scatter = torch.zeros(features.shape[1], features.shape[1], device=device)
    for batch, names in chunks(features, labels, device):
        # Centred before the product, so that single precision is enough.
        centred = batch - means[names].float()
        scatter.addmm_(centred.T, centred)
    return scatter.double() / len(features)


def linear_rule(covariance: Tensor, means: Tensor, shrinkage: float) -> tuple[Tensor, Tensor]:
    """LDA with equal priors: scores x·W + b, the covariance pulled towards a multiple of the identity."""
    sphere = covariance.diagonal().mean()
    shrunk = covariance * (1 - shrinkage)
    shrunk.diagonal().add_(shrinkage * sphere)
    weights = torch.cholesky_solve(means.T, torch.linalg.cholesky(shrunk))
    return weights, -0.5 * (means.T * weights).sum(0)


def accuracy(features: np.ndarray, labels: Tensor, weights: Tensor, bias: Tensor, device: torch.device) -> float:
    right = 0
    for batch, names in chunks(features, labels, device):
        right += int(((batch.double() @ weights + bias).argmax(1) == names).sum())
    return right / len(features)


def probe(
    train: tuple[np.ndarray, Tensor], test: tuple[np.ndarray, Tensor], shrinkage: float, device: torch.device
) -> dict[str, float]:
    means = class_means(*train, int(train[1].max()) + 1, device)
    # All three are linear in x: |x - m|² is smallest where x·m - |m|²/2 is largest.
    zeros = torch.zeros(len(means), dtype=torch.float64, device=device)
    rules = {
        "ncm cosine": (torch.nn.functional.normalize(means).T, zeros),
        "ncm euclidean": (means.T, -0.5 * means.square().sum(1)),
        "lda": linear_rule(pooled_covariance(*train, means, device), means, shrinkage),
    }
    return {name: accuracy(*test, *rule, device) for name, rule in rules.items()}


def features_of(
    split: Split, classes: list[str], encoder: Encoder, device: torch.device, every: int
) -> tuple[np.ndarray, Tensor]:
    """Extract the features of every n-th image; where some cannot be read there is nothing to compare."""
    shown = sys.stderr.isatty()

    def progress(done: int, total: int) -> None:
        print(f"\r{done}/{total} images", end="" if done < total else "\n", file=sys.stderr, flush=True)

    found = encode_all(split.images[::every], encoder, progress=progress if shown else None)
    if found.unreadable:
        raise SystemExit(f"{len(found.unreadable)} pictures cannot be read; the first: {found.unreadable[0]}")
    number = {name: index for index, name in enumerate(classes)}
    labels = torch.tensor([number[name] for name in split.labels[::every]], device=device)
    return found.features, labels


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--dataset", choices=("cifar100", "cub200"), required=True)
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--weights", type=Path, metavar="FILE", help="else ENGRAM_WEIGHTS, else the backbone's own")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--shrinkage", type=float, default=0.01, help="of LDA's covariance (default %(default)s)")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take every N-th image, for a quick look")
    parser.add_argument("--json", type=Path, metavar="PATH")
    arguments = parser.parse_args()

    device = resolve_device(arguments.device)
    backbone = create(arguments.backbone, arguments.device, weights=arguments.weights)
    dataset = getattr(datasets, arguments.dataset)(arguments.data)
    began = time.perf_counter()
    train, test = (
        features_of(split, dataset.classes, backbone, device, arguments.every)
        for split in (dataset.train, dataset.test)
    )
    seconds = time.perf_counter() - began
    results = probe(train, test, arguments.shrinkage, device)

    whole = arguments.every == 1
    measured = MEASURED.get((arguments.dataset, arguments.backbone), {}) if whole else {}
    rms = float(np.sqrt(np.mean([np.mean(np.square(rows)) for rows in np.array_split(train[0], 64)])))
    count = len(train[0]) + len(test[0])
    print(f"{arguments.dataset}, {backbone.identity.text}, {backbone.dim}-d, rms {rms:.3f}")
    print(f"{count} images in {seconds:.1f} s, {count / seconds:.0f} images/s on {device}")
    print(f"{'probe':<16}{'accuracy':>10}{'prototype':>11}")
    missed = []
    for name, value in results.items():
        # The prototype's NCM is the paper's, by cosine.
        expected = measured.get({"ncm cosine": "ncm", "lda": "lda"}.get(name, ""))
        off = expected is not None and abs(value - expected) > TOLERANCE
        missed += [name] if off else []
        print(f"{name:<16}{value:>10.3f}{'' if expected is None else f'{expected:>11.3f}'}{'  OFF' if off else ''}")
    if arguments.json:
        record = {
            "dataset": arguments.dataset,
            "backbone": backbone.identity.text,
            "preprocess": backbone.preprocess.describe(),
            "train": len(train[0]),
            "test": len(test[0]),
            "every": arguments.every,
            "shrinkage": arguments.shrinkage,
            "rms": rms,
            "device": str(device),
            "torch": torch.__version__,
            "seconds": seconds,
            "accuracy": results,
            "prototype": measured,
        }
        arguments.json.write_text(json.dumps(record, indent=2) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
