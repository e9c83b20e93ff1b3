"""What somebody gets who teaches a few classes of pictures, and later as many more, one at a time.

    python benchmarks/newcomer.py --data DIR [--classes 10] [--pictures 40] [--draws 3] [--backbone NAME] [--json PATH]

DIR holds one folder of pictures per class (of CUB-200, that is CUB_200_2011/images). Each draw takes twice --classes of
them at random, and --pictures of each, at random, to learn from; the accuracy is that at the end, over all classes, on
the pictures left (classes with fewer than five of these are not drawn). The features are computed once. The methods
have the settings that `engram learn` gives them. Nearest mean, shrunk LDA and logistic regression have all the data at
once.
"""

from pathlib import Path

import numpy as np
from baselines import baselines
from table import parser, row, show

from engram.bench.cache import FeatureCache
from engram.datasets.folders import class_folders
from engram.encoders.registry import create
from engram.learners import registry
from engram.model import Model

FEWEST_LEFT = 5  # pictures of a class to test with


def open_eyes(options):
    """A function from paths of pictures to their features, and which network that is."""
    network, cache = create(options.backbone, options.device), FeatureCache(options.cache)
    return lambda paths: cache.features(paths, network).values, network.identity.text


def teach(method, tasks, seed, **settings):
    """A model that has learned task after task; each is features and labels."""
    model = Model.new(method, {**registry.find(method).few_samples, **settings}, seed=seed)
    for X, y in tasks:
        model, _ = model.learn(X, y, judge=False)
    return model


def predict(model, X):
    """The label of each sample."""
    if not isinstance(model, Model):  # scikit-learn's, beside it
        return model.predict(X)
    return np.asarray(model.learner.labels)[model.answer(X).rows[:, 0]]


def draw(folders, names, pictures, seed, look):
    """Some pictures of each class to learn from, the others to test with: name -> features."""
    shuffle = np.random.default_rng(seed)
    train, test = {}, {}
    for name in names:
        features = look([folders[name][i] for i in shuffle.permutation(len(folders[name]))])
        train[name], test[name] = features[:pictures], features[pictures:]
    return train, test


def together(features):
    """Classes side by side: features and labels."""
    return np.concatenate(list(features.values())), np.repeat(list(features), [len(X) for X in features.values()])


def main():
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True, metavar="DIR")
    options.add_argument("--classes", type=int, default=10, metavar="N", help="at first, and as many one at a time")
    options.add_argument("--pictures", type=int, default=40, metavar="N", help="of each class")
    options.add_argument("--draws", type=int, default=3, metavar="N")
    options.add_argument("--methods", nargs="+", default=["whitened", "mas", "slda", "ncm"])
    options.add_argument("--backbone", default="efficientnet_lite0")
    options.add_argument("--cache", type=Path, metavar="DIR")
    options = options.parse_args()
    folders = class_folders(options.data)
    enough = [name for name, paths in folders.items() if len(paths) >= options.pictures + FEWEST_LEFT]
    if len(enough) < 2 * options.classes:
        raise SystemExit(f"only {len(enough)} classes have {options.pictures + FEWEST_LEFT} pictures; lower --pictures")
    look, identity = open_eyes(options)
    accuracies, tested = {}, []
    for seed in range(options.draws):
        names = np.random.default_rng(seed).permutation(enough)[: 2 * options.classes].tolist()
        train, test = draw(folders, names, options.pictures, seed, look)
        base, later = names[: options.classes], names[options.classes :]
        tasks = [together({name: train[name] for name in base})] + [together({name: train[name]}) for name in later]
        everything = together(train)
        X, y = together(test)
        found = {method: predict(teach(method, tasks, seed), X) for method in options.methods}
        found |= {f"{name} on all at once": one.fit(*everything).predict(X) for name, one in baselines().items()}
        for name, answers in found.items():
            accuracies.setdefault(name, []).append(float(np.mean(answers == y)))
        tested.append(len(y))
    rows = [
        row(name, float(np.mean(values)), "(" + ", ".join(f"{value:.3f}" for value in values) + ")")
        for name, values in accuracies.items()
    ]
    about = {"backbone": identity, "classes": f"{options.classes} + {options.classes}"}
    about |= {"pictures": options.pictures, "tested": tested}
    show(rows, options.device, options.json, **about)


if __name__ == "__main__":
    main()
