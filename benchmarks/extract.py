"""How much of the bare model's rate is left when pictures have to be read and decoded first.

    python benchmarks/extract.py --device cpu --backbone efficientnet_lite0 --json out.json
    python benchmarks/extract.py --device cuda --backbone vgg16 --weights FILE --json out.json

Bare: the model on float batches that lie in memory (on the device), nothing else, with all of torch's threads and the
best of several batch sizes; once as `create` returns it, and once with the channels-last memory layout, which is part
of what extraction does for its speed. Extraction: files decoded, resized, normalised, features back in host memory.
They take turns in one run, so that whatever else the machine does hits all; the ratios are of their medians.

Pictures for 224-pixel backbones are CUB-200-2011's where ENGRAM_DATA has them, else JPEGs of the same size made on the
spot; for 32-pixel backbones arrays, CIFAR-100's or noise.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from engram.backbones import create
from engram.datasets import cifar100, cub200
from engram.device import resolve_device
from engram.images import extract

BAR = 0.9


def jpegs(folder, count):
    """Make photograph-like JPEGs: smooth colours with some noise, 500×375 as CUB's are."""
    rng = np.random.default_rng(0)
    paths = []
    for i in range(min(count, 64)):
        smooth = Image.fromarray(rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)).resize((500, 375), 3)
        noisy = np.asarray(smooth, np.int16) + rng.integers(-12, 13, (375, 500, 3))
        paths.append(Path(folder) / f"{i}.jpg")
        Image.fromarray(noisy.clip(0, 255).astype(np.uint8)).save(paths[-1], quality=92)
    return [paths[i % len(paths)] for i in range(count)]


def pictures(size, count, folder):
    real = Path(os.environ.get("ENGRAM_DATA", "absent"))
    if size == 32:
        if (real / "cifar-100-python").is_dir():
            data = cifar100()
            array = np.concatenate([data.train.images, data.test.images])
            return np.resize(array, (count, 32, 32, 3)), "CIFAR-100 arrays"
        return np.random.default_rng(0).integers(0, 256, (count, 32, 32, 3), dtype=np.uint8), "noise arrays, 32×32"
    if (real / "CUB_200_2011").is_dir():
        paths = cub200().train.images
        return [paths[i % len(paths)] for i in np.random.default_rng(0).permutation(count)], "CUB-200-2011 JPEGs"
    return jpegs(folder, count), "JPEGs made on the spot, 500×375"


def bare(backbone, device, size, batch_size, layout, count):
    """Return images per second of the model alone."""
    backbone.to(device).to(memory_format=layout)
    batch = torch.rand(batch_size, 3, size, size, device=device).contiguous(memory_format=layout)
    rounds = max(1, count // batch_size)
    with torch.inference_mode():
        backbone(batch)
        synchronise(device)
        start = time.perf_counter()
        for _ in range(rounds):
            backbone(batch)
        synchronise(device)
    return rounds * batch_size / (time.perf_counter() - start)


def synchronise(device):
    if device.type == "cuda":
        torch.cuda.synchronize()


def row(name, value, unit, bar=None):
    return {"name": name, "value": value, "bar": bar, "unit": unit}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--backbone", default="efficientnet_lite0")
    parser.add_argument("--weights")
    parser.add_argument("--count", type=int, help="pictures per round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-size", type=int, help="of the extraction; by default it chooses itself")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()

    device = resolve_device(options.device)
    backbone = create(options.backbone, weights=options.weights)
    size = backbone.preprocess.size
    small = size == 32
    count = options.count or (60_000 if small else 4096) // (1 if device.type == "cuda" else 16)
    sizes = ((16, 64, 128) if small else (4, 16, 32)) if device.type == "cpu" else ((256, 1024) if small else (64, 256))
    layouts = {"as created": torch.contiguous_format, "channels last": torch.channels_last}

    with tempfile.TemporaryDirectory() as folder:
        images, what = pictures(size, count, folder)
        extract(images[: count // 8], backbone, device=device)  # warm up: files in the system's cache, kernels chosen
        best = {
            name: max(sizes, key=lambda batch, layout=layout: bare(backbone, device, size, batch, layout, count // 4))
            for name, layout in layouts.items()
        }
        alone = {name: [] for name in layouts}
        extracted = []
        for _ in range(options.rounds):
            for name, layout in layouts.items():
                alone[name].append(bare(backbone, device, size, best[name], layout, count))
            start = time.perf_counter()
            found = extract(images, backbone, batch_size=options.batch_size, device=device)
            extracted.append(len(found.values) / (time.perf_counter() - start))
            del found  # giving gigabytes back takes time, and is not to be the next round's

    where = torch.cuda.get_device_name() if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    print(f"{options.backbone} on {where}; {count} × {what}; {options.rounds} rounds")
    rate = {name: statistics.median(rates) for name, rates in alone.items()}
    mine = statistics.median(extracted)
    rows = [row(f"bare model {name}, batch {best[name]}", rate[name], "images/s") for name in layouts]
    rows.append(row("extraction", mine, "images/s"))
    rows.append(row("extraction / bare model as created", mine / rate["as created"], "ratio", BAR))
    rows.append(row("extraction / bare model channels last", mine / rate["channels last"], "ratio", BAR))
    for line in rows:
        bar = "" if line["bar"] is None else f"   (bar: at least {line['bar']})"
        print(f"{line['name']:44} {line['value']:12.2f} {line['unit']}{bar}")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "device": where, "pictures": what}, indent=1) + "\n")


if __name__ == "__main__":
    main()
