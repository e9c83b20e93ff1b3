"""More than one machine: how fast 1 and 2 workers are, what a worker needs, and what adding up sums costs.

    python benchmarks/scale.py rate memory reduction estimate --json scale.json

`rate` runs the default backbone over made-up photographs, in processes of one thread each; `memory` a light network, so
that 20,000 pictures take minutes; `reduction` takes made-up features of 1,280 numbers; `estimate` applies a model of
cost to 100 million pictures of 100,000 classes (`--per-second`: what one worker does).
"""

import math
import pickle
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from table import parser, row, show

from engram import IncrementalClassifier
from engram.backbones import Backbone, Preprocess
from engram.cluster import BLOCK, Setting, Summary, combine, cut_blocks
from engram.cluster.blocks import CLASSES
from engram.cluster.dask_job import AT_ONCE, connect, run_blocks
from engram.store import Plan

WIDTH = 1280


def photographs(folder, n=64, size=(500, 375)):
    """JPEGs as large as those of a data set of photographs."""
    rng = np.random.default_rng(0)
    paths = []
    for i in range(n):
        coarse = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        paths.append(folder / f"{i}.jpg")
        coarse.resize(size, Image.Resampling.BICUBIC).save(paths[-1], quality=90)
    return paths


def light_network():
    """As many features as a real one has, in no time: what is measured with it is everything else."""
    torch.manual_seed(0)
    pool, flat = torch.nn.AdaptiveAvgPool2d(16), torch.nn.Flatten()
    network = torch.nn.Sequential(pool, flat, torch.nn.Linear(768, WIDTH), torch.nn.ReLU())
    return Backbone(network, name="light@224", dim=WIDTH, preprocess=Preprocess(size=224))


def job(paths, total, backbone):
    """Blocks of `total` pictures in ten classes, and what they have in common."""
    clf = IncrementalClassifier(backbone=backbone, random_state=0, device="cpu")
    share = -(-total // 10)
    classes = {f"class {c}": [paths[(c * share + i) % len(paths)] for i in range(share)] for c in range(10)}
    return classes, Setting(clf.blank(), backbone, "cpu")


def forget_peak(dask_worker=None):
    """Let Linux count a process's largest memory from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def peak(dask_worker=None):
    """The largest memory of a worker since then, in bytes."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["VmHWM"].split()[0]) * 1024


def rate(paths, workers, total, block):
    """Pictures per second, and per second of processor time, once every worker has begun."""
    with connect(f"local:{workers}") as client:
        classes, setting = job(paths, workers * block, Plan().new_backbone())
        run_blocks(client, cut_blocks(classes, setting, block), setting)
        classes, setting = job(paths[::-1], total, Plan().new_backbone())
        start, busy = time.perf_counter(), sum(client.run(time.process_time).values())
        run_blocks(client, cut_blocks(classes, setting, block), setting)
        seconds, busy = time.perf_counter() - start, sum(client.run(time.process_time).values()) - busy
        return total / seconds, total / busy


def memory(paths, totals, block):
    """The most that one worker holds at a time while it looks at so many pictures."""
    with connect("local:1") as client:
        seen = {}
        for at, total in enumerate(totals):
            classes, setting = job(paths[at:] + paths[:at], total, light_network())
            client.run(forget_peak)
            run_blocks(client, cut_blocks(classes, setting, block), setting)
            seen[total] = max(client.run(peak).values())
        return seen


def range_of(number, classes, samples=2):
    """The sums of one range of classes."""
    rng = np.random.default_rng(number)
    clf = IncrementalClassifier(random_state=0, device="cpu")
    learner = clf.blank()
    y = np.repeat([f"class {number * CLASSES + c}" for c in range(classes)], samples)
    learner.learn(np.abs(rng.normal(size=(len(y), WIDTH))).astype(np.float32), y)
    return Summary(learner, len(y))


def reduction(classes):
    """Bytes and seconds of adding up two blocks in every range, and of taking all ranges in."""
    sizes = [min(CLASSES, classes - start) for start in range(0, classes, CLASSES)]
    moved = combining = 0.0
    summaries = []
    for number, size in enumerate(sizes):
        blocks = [range_of(number, size) for _ in range(2)]
        moved += len(pickle.dumps(blocks[0]))  # one of the two travels to where the other is
        start = time.perf_counter()
        summaries.append(combine(blocks))
        combining += time.perf_counter() - start
        moved += len(pickle.dumps(summaries[-1]))
    clf = IncrementalClassifier(random_state=0, device="cpu")
    start = time.perf_counter()
    clf.absorb(*(summary.learner for summary in summaries))
    return moved, combining, time.perf_counter() - start


def estimate(pictures, classes, workers, per_second, width, block, network):
    """Hours, bytes and memory by the model of docs/scale.md."""
    blocks = math.ceil(pictures / block)
    scatter, means = 8 * (width + 1) * math.ceil(width / 2), 8 * width * min(CLASSES, classes)
    ranges = math.ceil(classes / CLASSES)
    per_range = math.ceil(blocks / ranges)
    sums = math.ceil(per_range / AT_ONCE)
    of_block = scatter + 8 * width * math.ceil(classes * block / pictures)
    moved = blocks * of_block * (1 + 1 / AT_ONCE) + ranges * (scatter + means)
    return {
        "blocks": (blocks, ""),
        "looking": (pictures / (workers * per_second) / 3600, "h"),
        "a block's sums": (of_block / 1e6, "MB"),
        "additions of a range, one after the other": (sums, ""),
        "moved": (moved / 1e9, "GB"),
        "moving it, every worker on a link of its own": (moved / network / workers / 3600, "h"),
        "a worker sends": (of_block * per_second / block / 1e6, "MB/s"),
        "the process that saves holds": ((2 * 8 * width * classes + ranges * scatter) / 1e9, "GB"),
        "blocks kept for a restart": (blocks * of_block / 1e9, "GB"),
    }


def main():
    arguments = parser(__doc__)
    arguments.add_argument("what", nargs="+", choices=["rate", "memory", "reduction", "estimate"])
    arguments.add_argument("--pictures", type=int, default=512, help="of rate")
    arguments.add_argument("--most", type=int, default=20_000, help="pictures of memory")
    arguments.add_argument("--block", type=int, default=32, help="pictures of a block, for rate and memory")
    arguments.add_argument("--per-second", type=float, nargs="+", default=[20.0, 2000.0], help="of estimate, a worker")
    options = arguments.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        paths = photographs(Path(folder))
        if "rate" in options.what:
            speeds = {n: rate(paths, n, options.pictures * n, options.block) for n in (1, 2)}
            for n, (speed, effort) in speeds.items():
                results += [row(f"{n} workers", speed, "pictures/s"), row(f"{n} workers", effort, "pictures/CPU s")]
            results.append(row("2 workers over 1", speeds[2][0] / speeds[1][0], "", ">= 1.8"))
        if "memory" in options.what:
            seen = memory(paths, [1000, options.most // 4, options.most], 256)
            results += [
                row(f"{total:,} pictures: the most a worker held", held / 1e6, "MB") for total, held in seen.items()
            ]
            results.append(row("last over first", seen[options.most] / seen[1000], "", "<= 1.1"))
    if "reduction" in options.what:
        for classes in (1000, 10_000, 100_000):
            moved, combining, absorbing = reduction(classes)
            results.append(row(f"{classes:,} classes: moved", moved / 1e9, "GB"))
            results.append(row(f"{classes:,} classes: adding up, all workers together", combining, "s"))
            results.append(row(f"{classes:,} classes: taking in, in one process", absorbing, "s"))
    if "estimate" in options.what:
        for speed in options.per_second:
            about = estimate(100_000_000, 100_000, 64, speed, 2432, BLOCK, 1.25e9)
            results += [
                row(f"64 workers of {speed:,.0f}/s: {what}", value, unit) for what, (value, unit) in about.items()
            ]
    show(results, options.device, options.json)


if __name__ == "__main__":
    main()
