"""Images that are held back from training: which ones, and what the model's answers on them tell."""

import hashlib
import os
from collections.abc import Mapping, Sequence

import numpy as np

from engram.estimator import IncrementalClassifier
from engram.learner import Label
from engram.store.history import UNKNOWN_SHARE, Unknown
from engram.store.image_bytes import Source
from engram.store.report import Array, Check, Examples

EXAMPLES = 20  # features of images that are kept of a class, where some are
_ENOUGH = 5  # images held back, to calibrate on them


def hold_back(images: Sequence[Source], share: float) -> tuple[list[Source], list[Source]]:
    """Split the images of a class into those to learn from and a `share` to check with.

    The split depends on their names alone, so the same folder is split the same way again.
    """
    ordered = sorted(images, key=lambda image: hashlib.blake2b(os.fsencode(image.name)).digest())
    held = min(round(share * len(ordered)), len(ordered) - 1)
    return ordered[held:], ordered[:held]


def merge(*several: Examples) -> Examples:
    """The examples of several, class by class."""
    names = dict.fromkeys(name for examples in several for name in examples)
    return {name: np.concatenate([examples[name] for examples in several if name in examples]) for name in names}


def keep_some(clf: IncrementalClassifier, held: Mapping[Label, Array]) -> None:
    """Put the features of a few images that were held back among those that travel with the model."""
    for label, values in held.items():
        kept = clf.examples_.get(label, values[:0])
        if len(values) or len(kept):
            clf.examples_[label] = np.concatenate([values, kept])[:EXAMPLES].astype(np.float16)


def check(clf: IncrementalClassifier, examples: Examples) -> Check:
    """Ask about examples of known classes."""
    answers = {name: clf.predict(values) for name, values in examples.items() if len(values)}
    right = sum(str(answer) == name for name, given in answers.items() for answer in given)
    return Check(sum(map(len, answers.values())), right)


def calibrate(clf: IncrementalClassifier, trained: Array, examples: Examples) -> Unknown:
    """Find the familiarity that all but UNKNOWN_SHARE of known images reach, for a method with no rule of its own.

    Images the model learned from are more familiar than others, so examples are used if there are enough.
    """
    held_back = sum(map(len, examples.values())) >= _ENOUGH
    found = clf.familiarity(np.concatenate(list(examples.values())) if held_back else trained)
    return Unknown(round(lower_quantile(found, UNKNOWN_SHARE), 4), UNKNOWN_SHARE, len(found), held_back)


def recalibrate(clf: IncrementalClassifier, before: Unknown | None, examples: Examples) -> Unknown | None:
    """Calibrate again after an increment, if there are examples of every class; else leave it as it was.

    A model without calibration stays without.
    """
    complete = all(len(examples.get(str(name), ())) for name in clf.classes_)
    if before is None or not complete or sum(map(len, examples.values())) < _ENOUGH:
        return before
    return calibrate(clf, np.empty(0), examples)


def lower_quantile(scores: Array, share: float) -> float:
    """The score that the next one falls below with probability `share`.

    Of fewer than 3 / `share` cosine similarities, 1 - score is taken for exponentially distributed: after n of them,
    the next exceeds n(share^(-1/n) - 1) times their mean with probability `share`.
    """
    n = len(scores)
    if n * share >= 3 or np.abs(scores).max() > 1.001:  # other scores have no such bound
        return float(np.quantile(scores, share))
    return max(-1.0, 1 - float(n * (share ** (-1 / n) - 1) * (1 - scores.mean())))
