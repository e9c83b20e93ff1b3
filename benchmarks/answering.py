"""How much of the bare network's rate is left when a model answers pictures from files.

    python benchmarks/answering.py MODEL FOLDER [--count 2000] [--rounds 3] [--json PATH]

MODEL is an engram model of pictures, FOLDER holds pictures, taken again and again until there are `--count`. Bare: the
network on batches that lie in memory, in channels-last layout with all of torch's threads, at the best of three batch
sizes. Answering: what `engram predict` does after it has started, from files to the three best classes with their
probabilities. They take turns, so that whatever else the machine does hits both; the ratio is of their medians.
"""

import statistics
import time
from pathlib import Path

import torch
from table import parser, row, show

from engram.datasets import scan_pictures
from engram.store import ModelStore, predict_images


def bare(backbone, count, batch_size):
    """Pictures per second of the network alone."""
    side = backbone.preprocess.size
    batch = torch.rand(batch_size, 3, side, side).contiguous(memory_format=torch.channels_last)
    with torch.inference_mode():
        backbone(batch)
        began = time.perf_counter()
        for _ in range(max(1, count // batch_size)):
            backbone(batch)
    return max(1, count // batch_size) * batch_size / (time.perf_counter() - began)


def answering(model, paths):
    """Pictures per second, answered."""
    began = time.perf_counter()
    answered = sum(1 for _ in predict_images(model, paths, unknown=model.unknown_below(), device="cpu"))
    return answered / (time.perf_counter() - began)


def main():
    options = parser(__doc__)
    options.add_argument("model", type=Path, metavar="MODEL")
    options.add_argument("folder", type=Path, metavar="FOLDER")
    options.add_argument("--count", type=int, default=2000, metavar="N")
    options.add_argument("--rounds", type=int, default=3, metavar="N")
    options = options.parse_args()
    model = ModelStore(options.model, device="cpu").read()
    found = scan_pictures(options.folder)[0]
    paths = [found[i % len(found)] for i in range(options.count)]
    answering(model, paths[: options.count // 8])  # files in the system's cache, the model ready to answer
    best = max((2, 4, 16), key=lambda size: bare(model.backbone, options.count // 8, size))
    alone, answered = [], []
    for _ in range(options.rounds):
        alone.append(bare(model.backbone, options.count, best))
        answered.append(answering(model, paths))
    rate = statistics.median(answered)
    rows = [
        row(f"bare network, batch {best}", statistics.median(alone), "pictures/s"),
        row("answering", rate, "pictures/s"),
        row("answering / bare network", rate / statistics.median(alone), "ratio", ">= 0.9"),
    ]
    show(rows, "cpu", options.json, backbone=model.backbone.identity, pictures=options.count)


if __name__ == "__main__":
    main()
