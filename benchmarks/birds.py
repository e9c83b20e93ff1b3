"""Real pictures: 20 species of birds at first, then 10 more one by one; is that as good as all 30 at once?

    python benchmarks/birds.py --data DIR [--base 20] [--new 10] [--orders 3] [--backbone NAME] [--json PATH]

DIR holds CUB_200_2011/. For every order, 40 species are drawn. The first 20 are the base, the next 10 are learned one
by one, and a second model learns all 30 at once. Accuracy is on the official test pictures of the 30, and so is the
number of answers in which the two models differ. The last 10 species stay unseen, to see how many of their pictures the
model calls unknown by itself. The methods have the settings that `engram learn` gives them. What one would try first
learns all 30 at once, beside them.
"""

import time
from pathlib import Path

import numpy as np
from baselines import baselines
from newcomer import open_eyes, predict, teach, together
from table import parser, row, show

from engram.bench.datasets import cub200

UNSEEN = 10
DIFFER = "answers that differ"


def measure(method, settings, draw, seed, device):
    """What one method reaches on one draw of species."""
    train, test, base, new = draw
    began = time.perf_counter()
    model = teach(method, [together({name: train[name] for name in base})], seed, **settings)
    first = time.perf_counter()
    alone = accuracy(model, test, base)
    seconds = []
    for name in new:
        started = time.perf_counter()
        model, _ = model.learn(*together({name: train[name]}), judge=False)
        seconds.append(time.perf_counter() - started)
    once = teach(method, [together({name: train[name] for name in base + new})], seed, **settings)
    X, _ = together({name: test[name] for name in base + new})
    found = {
        "base, before": alone,
        "base, after": accuracy(model, test, base),
        "new, after": accuracy(model, test, new),
        "all, one by one": accuracy(model, test, base + new),
        "all, at once": accuracy(once, test, base + new),
        "pictures asked about": float(len(X)),
        DIFFER: float(np.sum(predict(model, X) != predict(once, X))),
        "seconds for the base": first - began,
        "seconds for a species, at most": max(seconds),
    }
    threshold = model.unknown_above(0.05)
    if threshold is not None:
        unseen, _ = together({name: X for name, X in test.items() if name not in base + new})
        found["known called unknown"] = float(np.mean(model.answer(X).novelty > threshold))
        found["unseen called unknown"] = float(np.mean(model.answer(unseen).novelty > threshold))
    return found


def accuracy(model, pictures, names):
    X, y = together({name: pictures[name] for name in names})
    return float(np.mean(predict(model, X) == y))


def by_species(split, names, look):
    """Features of the pictures of some species."""
    labels = np.array(split.labels)
    return {name: look([split.images[i] for i in np.flatnonzero(labels == name)]) for name in names}


def main():
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True, metavar="DIR")
    options.add_argument("--base", type=int, default=20, metavar="N")
    options.add_argument("--new", type=int, default=10, metavar="N")
    options.add_argument("--orders", type=int, default=3, metavar="N")
    options.add_argument("--backbone", default="efficientnet_lite0")
    options.add_argument("--cache", type=Path, metavar="DIR")
    options.add_argument("--paper", default="mas", metavar="METHOD", help="the paper's method, to compare with")
    options = options.parse_args()
    compared = {
        "whitened": ("whitened", {}),
        "whitened, 32 bits": ("whitened", {"kept_bits": 32}),
        options.paper: (options.paper, {}),
    }
    birds = cub200(options.data)
    look, identity = open_eyes(options)
    found = {name: [] for name in (*compared, *baselines())}
    for seed in range(options.orders):
        species = np.random.default_rng(seed).permutation(birds.classes).tolist()
        species = species[: options.base + options.new + UNSEEN]
        train, test = by_species(birds.train, species, look), by_species(birds.test, species, look)
        draw = (train, test, species[: options.base], species[options.base : -UNSEEN])
        for name, (method, settings) in compared.items():
            found[name].append(measure(method, settings, draw, seed, options.device))
        known = species[:-UNSEEN]
        for name, model in baselines().items():
            model.fit(*together({one: train[one] for one in known}))
            found[name].append({"all, at once": accuracy(model, test, known)})
    rows = []
    for name, orders in found.items():
        for what in orders[0]:
            values = [order[what] for order in orders]
            spread = f"({min(values):.4g} to {max(values):.4g})"
            bar = "<= 0" if what == DIFFER and name != options.paper else ""
            rows.append(row(f"{name}: {what}", float(np.mean(values)), spread, bar))
    drawn = f"{options.base} + {options.new}"
    show(rows, options.device, options.json, backbone=identity, species=drawn, orders=options.orders)


if __name__ == "__main__":
    main()
