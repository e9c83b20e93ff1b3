"""The picture of docs/method.md: how far a digit's own class is ahead of the next one, before and after whitening.

python docs/whitening.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from engram import IncrementalClassifier

METHODS = {"ncm": "features as they are", "whitened": "whitened"}


def margins(method, train, test):
    """Cosine to the own class less the largest cosine to another, of every test sample."""
    clf = IncrementalClassifier(method).fit(*train)
    cosines, y = clf.decision_function(test[0]), test[1]
    own = cosines[np.arange(len(y)), y]
    cosines[np.arange(len(y)), y] = -np.inf
    return own - cosines.max(axis=1)


def main():
    """Draw it."""
    X, y = load_digits(return_X_y=True)
    X, held, y, truth = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    figure, axes = plt.subplots(2, 1, figsize=(7, 4.2), sharex=True, layout="constrained")
    for axis, (method, title) in zip(axes, METHODS.items(), strict=True):
        found = margins(method, (X, y), (held, truth))
        bins = np.linspace(-0.6, 1.1, 69)
        axis.hist(found[found > 0], bins, color="#3b6fb6", label="right")
        axis.hist(found[found <= 0], bins, color="#c2452d", label="wrong")
        axis.set_title(f"{title}: {np.mean(found > 0):.1%} right", loc="left", fontsize=11)
        axis.set_yticks([])
        axis.spines[["top", "right", "left"]].set_visible(False)
    axes[0].legend(frameon=False)
    axes[1].set_xlabel("cosine to the own class mean, less the largest cosine to another")
    figure.savefig(Path(__file__).with_name("whitening.png"), dpi=140)


if __name__ == "__main__":
    main()
