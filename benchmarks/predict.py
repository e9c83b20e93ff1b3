"""The five nearest of a million classes, against numpy.

    python benchmarks/predict.py --device cpu --json predict.json

1,000,000 means of 1024 numbers (4.1 GB), a batch of 64 codes. numpy: one matrix product with means scaled to length
one beforehand, then argpartition. Ours: `engram.nn.distance.nearest`, which takes the means as they are kept.
"""

import resource
import statistics
import sys
import time

import numpy as np
import torch
from table import parser, row, show

from engram.device import resolve_device
from engram.nn.distance import nearest

TOP = 5


def resident():
    """The largest memory the process ever had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def by_numpy(unit_means, codes):
    unit = codes / np.linalg.norm(codes, axis=1, keepdims=True)
    similarity = unit @ unit_means.T
    top = np.argpartition(similarity, -TOP, axis=1)[:, -TOP:]
    order = np.argsort(-np.take_along_axis(similarity, top, axis=1), axis=1)
    return np.take_along_axis(top, order, axis=1)


def timed(function, device):
    start = time.perf_counter()
    answer = function()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, answer


def main():
    options = parser(__doc__)
    options.add_argument("--classes", type=int, default=1_000_000)
    options.add_argument("--width", type=int, default=1024)
    options.add_argument("--batch", type=int, default=64)
    options.add_argument("--rounds", type=int, default=5)
    options = options.parse_args()
    device = resolve_device(options.device)
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(options.classes, options.width, generator=generator)
    kept = means.to(device)
    codes = torch.randn(options.batch, options.width, generator=generator)

    before = resident()
    nearest(codes.to(device), kept, TOP)
    extra = resident() - before if device.type == "cpu" else 0
    mine, theirs, agree = [], [], []
    # Scaled in place: lengths do not change which means are near, and a second copy would not fit everywhere.
    unit_means = means.numpy() if device.type == "cuda" else kept.numpy()
    for chunk in np.array_split(unit_means, 64):
        chunk /= np.linalg.norm(chunk, axis=1, keepdims=True)
    for _ in range(options.rounds):
        seconds, (_, rows) = timed(lambda: nearest(codes.to(device), kept, TOP), device)
        mine.append(seconds)
        seconds, answer = timed(lambda: by_numpy(unit_means, codes.numpy()), device)
        theirs.append(seconds)
        agree.append((rows.cpu().numpy() == answer).mean())
    flops = 2 * options.batch * options.classes * options.width
    ours, numpys = statistics.median(mine), statistics.median(theirs)
    rows = [
        row(f"nearest {TOP} of {options.classes:,} classes, batch of {options.batch}", ours, "s"),
        row("the same by numpy", numpys, "s"),
        row("numpy / ours", numpys / ours, "ratio", ">= 1"),
        row("arithmetic", flops / ours / 1e9, "GFLOP/s"),
        row("answers that agree with numpy's", statistics.fmean(agree), "share", ">= 0.999"),
        row("memory beside the means", extra / 1e6, "MB", "<= 100" if device.type == "cpu" else ""),
    ]
    show(rows, device, options.json)


if __name__ == "__main__":
    main()
