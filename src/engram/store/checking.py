"""What pictures that were held back tell: how well classes are known, and below which similarity nothing is."""

import numpy as np

from engram.estimator import IncrementalClassifier
from engram.store.plan import Array, Check, Examples
from engram.store.records import Unknown

UNKNOWN_SHARE = 0.05  # of known pictures, that are called unknown by mistake
_ENOUGH = 5  # pictures held back, to calibrate on them


def calibrate(clf: IncrementalClassifier, trained: Array, held: Array) -> Unknown:
    """Find the similarity that all but UNKNOWN_SHARE of known pictures reach.

    Pictures that were learned from lie closer to the means than others do, so those held back tell better.
    """
    held_back = len(held) >= _ENOUGH
    best = clf.nearest(held if held_back else trained, 1)[1][:, 0]
    similarity = lower_quantile(best, UNKNOWN_SHARE)
    return Unknown(round(similarity, 4), UNKNOWN_SHARE, len(best), held_back)


def lower_quantile(similarities: Array, share: float) -> float:
    """The similarity that the next one falls below with probability `share`.

    Too few to have some such among them are taken for exponentially distributed distances: after n of them, the next
    exceeds n(share^(-1/n) - 1) times their mean with probability `share`.
    """
    n = len(similarities)
    if n * share >= 3:
        return float(np.quantile(similarities, share))
    return max(-1.0, 1 - float(n * (share ** (-1 / n) - 1) * (1 - similarities.mean())))


def recalibrate(clf: IncrementalClassifier, before: Unknown | None, examples: Examples) -> Unknown | None:
    """Tell anew what is unknown, as an encoder that has moved gives other similarities, if there are examples of all.

    A model that says nothing about it is left so.
    """
    every = all(len(examples.get(str(name), ())) for name in clf.classes_)
    if before is None or not every or sum(map(len, examples.values())) < _ENOUGH:
        return before
    values = np.concatenate(list(examples.values()))
    return calibrate(clf, values, values)


def together(*several: Examples) -> Examples:
    """The examples of several, class by class."""
    names = dict.fromkeys(name for examples in several for name in examples)
    return {name: np.concatenate([examples[name] for examples in several if name in examples]) for name in names}


def check(clf: IncrementalClassifier, examples: Examples) -> Check:
    """Ask about examples of known classes."""
    pictures = right = 0
    for name, values in examples.items():
        if len(values):
            pictures += len(values)
            right += sum(str(answer) == name for answer in clf.predict(values))
    return Check(pictures, right)
