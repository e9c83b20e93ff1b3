"""Does a model know what it does not know, and do its probabilities mean what they say?

    python benchmarks/unknown.py cub200 --features cub200.safetensors [--known 10 20 50] [--draws 5] [--json PATH]

The file is written by `engram features --export`. For every draw of classes, half of the known ones are learned at
first and the others one at a time. Then every test sample of a known class is compared with every test sample of all
other classes: the area under the ROC curve of familiarity, and the share of unknown samples below it where 5 % of the
known are. No model has that threshold, as it takes test samples to find; so the one that the learner found itself, by
leave-one-out, is shown beside it. The nearest class mean by the cosine of raw features is there for comparison.

Expected calibration error (15 bins of the top probability, weighted by their samples) is measured on test samples after
half of all classes have been learned at once, and after up to 50 more, one at a time.
"""

from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score
from table import parser, row, show

from engram import IncrementalClassifier
from engram.bench.inputs import import_features
from engram.bench.protocol import class_order, split_tasks
from engram.model import Model

REFUSED = 0.05  # of known samples
BINS = 15
MOST_ADDED = 50  # classes
LOWEST = {10: (0.86, 0.55), 20: (0.83, 0.45), 50: (0.78, 0.30)}  # for CUB-200 with EfficientNet-Lite0
CALIBRATED = "<= 0.05"


def tell_apart(model, inputs, known):
    """Area under ROC, the share of unknown caught, and known refused and unknown caught by the model's threshold."""
    for task in split_tasks(known, len(known) // 2):
        own = inputs.train.of(task)
        model, _ = model.learn(own.X.cpu().numpy(), own.y.tolist(), judge=False)
    answers = model.answer(inputs.test.X.cpu().numpy())
    novelty = -answers.scores[:, 0] if answers.novelty is None else answers.novelty
    is_known = np.isin(inputs.test.y, np.asarray(known))
    found = {
        "area under ROC": roc_auc_score(~is_known, novelty),
        "unknown caught": np.mean(novelty[~is_known] > np.quantile(novelty[is_known], 1 - REFUSED)),
    }
    own_threshold = model.unknown_above(REFUSED)
    if own_threshold is not None:
        found["known refused by own threshold"] = np.mean(novelty[is_known] > own_threshold)
        found["unknown caught by own threshold"] = np.mean(novelty[~is_known] > own_threshold)
    return found


def calibration_error(probabilities, right):
    """Σ over bins of (share of samples) · |accuracy - mean probability|."""
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    gaps = np.bincount(bins, right, BINS) - np.bincount(bins, probabilities, BINS)
    return np.abs(gaps).sum() / len(right)


def probabilities(method, inputs, order, device):
    """Expected calibration error, accuracy and mean top probability after the base and after the last class."""
    base, *later = split_tasks(order, len(set(inputs.train.y)) // 2)
    clf = IncrementalClassifier(method, random_state=0, device=device)
    found = {}
    for when, tasks in (("base", [base]), ("last class", later)):
        for task in tasks:
            own = inputs.train.of(task)
            clf.partial_fit(own.X.cpu().numpy(), own.y)
        test = inputs.test.of(clf.classes_.tolist())
        proba = clf.predict_proba(test.X.cpu().numpy())
        top, right = proba.max(axis=1), clf.classes_[proba.argmax(axis=1)] == test.y
        found[f"calibration error after the {when}"] = calibration_error(top, right)
        found[f"accuracy after the {when}"] = right.mean()
        found[f"mean top probability after the {when}"] = top.mean()
    return found


def rows_of(draws, beginning, bars):
    """One line for each thing measured: its mean over the draws, and how far they spread."""
    for name in draws[0]:
        values = [draw[name] for draw in draws]
        spread = f"({min(values):.3f} to {max(values):.3f})"
        yield row(f"{beginning}: {name}", float(np.mean(values)), spread, bars.get(name, ""))


def main():
    options = parser(__doc__)
    options.add_argument("dataset", help="cub200 or cifar100")
    options.add_argument("--features", type=Path, required=True, metavar="FILE")
    options.add_argument("--known", type=int, nargs="+", default=[10, 20, 50], metavar="N")
    options.add_argument("--draws", type=int, default=5, metavar="N")
    options.add_argument("--method", default="whitened", help="compared with the cosine of raw features")
    options = options.parse_args()
    inputs = import_features(options.features, options.dataset, options.device)
    orders = [class_order(inputs.train.y.tolist(), seed) for seed in range(options.draws)]

    rows = []
    barred = options.dataset == "cub200" and inputs.backbone.startswith("efficientnet_lite0")
    for known in options.known:
        for method in (options.method, "ncm"):
            draws = []
            for seed, order in enumerate(orders):
                draws.append(tell_apart(Model.new(method, seed=seed), inputs, order[:known]))
            lowest = LOWEST.get(known, ()) if barred and method == "whitened" else ()
            bars = {name: f">= {bar}" for name, bar in zip(draws[0], lowest, strict=False)}
            rows += rows_of(draws, f"{known} known, {method}", bars)
    most = len(orders[0]) // 2 + MOST_ADDED
    draws = [probabilities(options.method, inputs, order[:most], options.device) for order in orders]
    bars = {name: CALIBRATED for name in draws[0] if name.startswith("calibration error")}
    rows += rows_of(draws, options.method, bars)
    show(rows, options.device, options.json, dataset=options.dataset, backbone=inputs.backbone, draws=options.draws)


if __name__ == "__main__":
    main()
