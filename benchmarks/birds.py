#!/usr/bin/env python3
"""Real pictures: 20 species of birds at first, then 10 more one by one, as `engram learn` does it.

    birds.py --data DIR [--base 20] [--new 10] [--orders 3] [--json PATH]

DIR holds CUB_200_2011/. For every order, 40 species are drawn. The first 20 are the base; the next 10 are learned one
by one; a second model is trained on all 30 at once; the last 10 stay unseen, to see how many of their pictures are
called unknown. Accuracy is on the official test pictures of the 30. Learning has the defaults of `engram learn`.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from engram import data
from engram.store import Model, ModelStore, Plan, Unreadable, evaluate_images, learn_classes, predict_images

UNSEEN = 10


def by_species(split: data.Split) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path, name in zip(split.images, split.labels, strict=True):
        found.setdefault(name, []).append(path)
    return found


def accuracy(model: Model, pictures: dict[str, list[Path]], names: list[str]) -> float:
    paths = [path for name in names for path in pictures[name]]
    return evaluate_images(model, paths, [name for name in names for _ in pictures[name]]).accuracy


def share_unknown(model: Model, pictures: dict[str, list[Path]], names: list[str]) -> float:
    assert model.notes.unknown is not None
    given = list(predict_images(model, [p for n in names for p in pictures[n]], unknown=model.notes.unknown.similarity))
    assert not any(isinstance(one, Unreadable) for one in given)
    return float(np.mean([one.label == "unknown" for one in given]))


def one_order(seed: int, birds: data.Dataset, n_base: int, n_new: int, folder: Path) -> dict[str, object]:
    assert birds.test is not None
    train, test = by_species(birds.train), by_species(birds.test)
    drawn = np.random.default_rng(seed).permutation(birds.classes).tolist()[: n_base + n_new + UNSEEN]
    base, new, unseen = drawn[:n_base], drawn[n_base:-UNSEEN], drawn[-UNSEEN:]

    began = time.perf_counter()
    place = ModelStore(folder / f"{seed}.engram")
    first = learn_classes(place, {name: train[name] for name in base}, Plan())
    alone = accuracy(place.read(), test, base)
    later = learn_classes(place, {name: train[name] for name in new}, Plan())
    model = place.read()

    once = ModelStore(folder / f"{seed}-once.engram")
    learn_classes(once, {name: train[name] for name in base + new}, Plan())
    return {
        "seed": seed,
        "base_seconds": first.seconds,
        "seconds_per_species": [one.seconds for one in later.learned],
        "base_alone": alone,
        "base_after": accuracy(model, test, base),
        "new_after": accuracy(model, test, new),
        "all_after": accuracy(model, test, base + new),
        "all_at_once": accuracy(once.read(), test, base + new),
        "known_called_unknown": share_unknown(model, test, base + new),
        "unseen_called_unknown": share_unknown(model, test, unseen),
        "model_bytes": place.path.stat().st_size,
        "seconds": time.perf_counter() - began,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR")
    parser.add_argument("--base", type=int, default=20, metavar="N")
    parser.add_argument("--new", type=int, default=10, metavar="N")
    parser.add_argument("--orders", type=int, default=3, metavar="N")
    parser.add_argument("--json", type=Path, metavar="PATH")
    arguments = parser.parse_args()

    birds = data.cub200(arguments.data)
    with tempfile.TemporaryDirectory() as folder:
        orders = []
        for seed in range(arguments.orders):
            orders.append(one_order(seed, birds, arguments.base, arguments.new, Path(folder)))
            print(json.dumps(orders[-1]), flush=True)
    print(f"{os.cpu_count()} CPU cores, {torch.get_num_threads()} threads, {arguments.orders} orders: mean (spread)")
    for key in list(orders[0])[1:]:
        values = [np.max(order[key]) for order in orders]
        print(f"{key:<24}{np.mean(values):>9.3f} ({np.min(values):.3f} to {np.max(values):.3f})")
    gap = np.mean([order["all_at_once"] - order["all_after"] for order in orders])
    print(f"{'all at once ahead by':<24}{gap:>9.3f}")
    if arguments.json:
        about = {"cpu": platform.processor(), "threads": torch.get_num_threads(), "torch": torch.__version__}
        arguments.json.write_text(json.dumps({**about, "gap": gap, "orders": orders}, indent=2) + "\n")


if __name__ == "__main__":
    main()
