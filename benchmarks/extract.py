"""How much of the bare model's rate is left when pictures have to be read and decoded first.

    python benchmarks/extract.py --device cpu --backbone efficientnet_lite0 --json out.json
    python benchmarks/extract.py --device cuda --backbone vgg16 --weights FILE --json out.json

Bare: the model on float batches that lie in memory (on the device), nothing else; the best of several batch sizes and
both memory layouts, with all of torch's threads. Extraction: files decoded, resized, normalised, features back in host
memory. The two alternate in one run, so that whatever else the machine does hits both; the ratio is of their medians.

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
from engram.data import cifar100, cub200
from engram.device import resolve_device
from engram.features import extract

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
    layouts = (torch.contiguous_format, torch.channels_last)

    with tempfile.TemporaryDirectory() as folder:
        images, what = pictures(size, count, folder)
        extract(images[: count // 8], backbone, device=device)  # warm up: files in the system's cache, kernels chosen
        setups = [(bare(backbone, device, size, b, layout, count // 4), b, layout) for b in sizes for layout in layouts]
        _, best_batch, best_layout = max(setups, key=lambda setup: setup[0])
        alone, extracted = [], []
        for _ in range(options.rounds):
            alone.append(bare(backbone, device, size, best_batch, best_layout, count))
            start = time.perf_counter()
            found = extract(images, backbone, batch_size=options.batch_size, device=device)
            extracted.append(len(found.values) / (time.perf_counter() - start))
            del found  # giving gigabytes back takes time, and is not to be the next round's

    ratio = statistics.median(extracted) / statistics.median(alone)
    where = torch.cuda.get_device_name() if device.type == "cuda" else f"{torch.get_num_threads()} CPU threads"
    layout = str(best_layout).removeprefix("torch.")
    print(f"{options.backbone} on {where}; {count} × {what}; {options.rounds} rounds")
    rows = [
        {"name": f"bare model, batch {best_batch}, {layout}", "value": statistics.median(alone), "unit": "images/s"},
        {"name": "extraction", "value": statistics.median(extracted), "unit": "images/s"},
        {"name": "extraction / bare model", "value": ratio, "unit": "ratio"},
    ]
    for row in rows:
        row["bar"] = BAR if row["unit"] == "ratio" else None
        bar = "" if row["bar"] is None else f"   (bar: at least {row['bar']})"
        print(f"{row['name']:44} {row['value']:10.2f} {row['unit']}{bar}")
    if options.json:
        options.json.write_text(json.dumps({"rows": rows, "device": where, "pictures": what}, indent=1) + "\n")


if __name__ == "__main__":
    main()
