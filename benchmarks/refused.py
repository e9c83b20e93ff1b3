"""Of pictures of known classes, how many does `--unknown auto` refuse? It promises about 5 %.

    python benchmarks/refused.py --features cub200=FILE [cifar100=FILE] [--known 5 10 20 50] [--pictures 5 20 50]
        [--draws 5] [--json PATH]

Each FILE is of `engram features --export`; two make a mixed set, whose classes are drawn from both. For every number of
classes and of pictures of each, classes are drawn, learned, and other pictures of theirs are asked about: all classes
at once, and half of them first, then one at a time. The table has the mean share refused over the draws and how far
they spread.
"""

from pathlib import Path

import numpy as np
import torch
from table import parser, row, show

from engram.bench.inputs import import_features
from engram.bench.protocol import split_tasks
from engram.model import Model

SHARE = 0.05
LEFT = 30  # pictures of a class to ask about, at most


def by_class(files):
    """The features of each class, named by its data set and label."""
    found = {}
    for dataset, file in (given.split("=", 1) for given in files):
        inputs = import_features(Path(file), dataset, "cpu")
        for part in (inputs.train, inputs.test):
            for label in set(part.y.tolist()):
                found.setdefault(f"{dataset} {label}", []).append(part.X[torch.from_numpy(part.y == label)].numpy())
    return {name: np.concatenate(parts) for name, parts in found.items()}


def refused(classes, names, pictures, base, seed, device):
    """The share of other pictures of these classes that are called unknown."""
    shuffle = np.random.default_rng(seed)
    drawn = {name: classes[name][shuffle.permutation(len(classes[name]))] for name in names}
    model = Model.new("whitened", seed=seed)
    for task in split_tasks(names, base):
        X = np.concatenate([drawn[name][:pictures] for name in task])
        model, _ = model.learn(X, np.repeat(task, [min(pictures, len(drawn[name])) for name in task]).tolist())
    others = np.concatenate([drawn[name][pictures : pictures + LEFT] for name in names])
    return float(np.mean(model.answer(others).novelty > model.unknown_above(SHARE)))


def main():
    options = parser(__doc__)
    options.add_argument("--features", nargs="+", required=True, metavar="NAME=FILE")
    options.add_argument("--known", type=int, nargs="+", default=[5, 10, 20, 50], metavar="N")
    options.add_argument("--pictures", type=int, nargs="+", default=[5, 20, 50], metavar="N")
    options.add_argument("--draws", type=int, default=5, metavar="N")
    options = options.parse_args()
    classes = by_class(options.features)
    rows = []
    for pictures in options.pictures:
        enough = [name for name, X in classes.items() if len(X) >= pictures + 5]
        for known in options.known:
            if len(enough) < known:
                continue
            for how, base in (("at once", known), ("half, then one at a time", known // 2)):
                shares = []
                for seed in range(options.draws):
                    names = np.random.default_rng(seed).permutation(enough)[:known].tolist()
                    shares.append(refused(classes, names, pictures, base, seed, options.device))
                spread = f"({min(shares):.3f} to {max(shares):.3f})"
                rows.append(row(f"{known} classes, {pictures} pictures, {how}", float(np.mean(shares)), spread))
    data = " and ".join(given.split("=")[0] for given in options.features)
    show(rows, options.device, options.json, data=data, draws=options.draws)


if __name__ == "__main__":
    main()
