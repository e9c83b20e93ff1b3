"""What answers: the one place that knows the implementation behind a model file, so that another can be compared.

`recipes.py` says how each file of `older/` was taught; `make_older.py` wrote them, and beside each what it answered.
Another implementation is checked against them once it is in `IMPLEMENTATIONS`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
import torch
from recipes import RECIPES, Labels, Recipe

from engram import IncrementalClassifier
from engram.images import extract
from engram.methods.imagenet import BesideImageNet

OLDER = Path(__file__).parent / "older"
TOLERANCE = 1e-4  # of the largest number
MOST_LEFT_OUT = 30  # samples


class Subject(Protocol):
    """One model of an implementation."""

    @classmethod
    def open(cls, path: Path) -> Self: ...

    @classmethod
    def teach(cls, recipe: Recipe, **settings: Any) -> Self: ...

    def learn(self, X: Any, y: Labels) -> None: ...

    def merge(self, other: Self) -> Self: ...

    def subtract(self, other: Self) -> Self: ...

    def answers(self, X: Any, lesson: tuple[Any, Labels]) -> dict[str, Any]: ...


@dataclass
class Estimator:
    """The scikit-learn estimator over torch."""

    clf: IncrementalClassifier

    @classmethod
    def open(cls, path: Path) -> Self:
        return cls(IncrementalClassifier.load(path, device="cpu"))

    @classmethod
    def teach(cls, recipe: Recipe, **settings: Any) -> Self:
        config = {**recipe.settings, **settings}
        clf = IncrementalClassifier(recipe.method, config=config, random_state=recipe.seed, device="cpu")
        if recipe.head:
            learner, random = BesideImageNet(config=BesideImageNet.configure(config), device="cpu"), np.random
            weight = random.RandomState(5).randn(len(recipe.head), recipe.d - 8).astype(np.float32)
            bias = random.RandomState(6).randn(len(recipe.head)).astype(np.float32)
            learner.adopt(recipe.head, torch.from_numpy(weight), torch.from_numpy(bias), recipe.d)
            clf.learner_, clf._recorded, clf.n_features_in_ = learner, None, recipe.d
            clf.notes_, clf.examples_ = {}, {}
        for number, (X, y) in enumerate(recipe.taught()):
            if recipe.summed:
                elsewhere = clf.blank()
                elsewhere.learn(X, y)
                clf.absorb(elsewhere)
            else:
                clf.partial_fit(X, y)
            if recipe.keeps == "lessons":
                clf.keep_lesson(number, X, y)
        for what, *labels in recipe.then:
            getattr(clf, what)(*labels)
        return cls(clf)

    def learn(self, X: Any, y: Labels) -> None:
        self.clf.partial_fit(X, y)

    def merge(self, other: Self) -> Self:
        return type(self)(self.clf.merge(other.clf))

    def subtract(self, other: Self) -> Self:
        return type(self)(self.clf.subtract(other.clf))

    def answers(self, X: Any, lesson: tuple[Any, Labels]) -> dict[str, Any]:
        clf, known = self.clf, set(self.clf.learned_order_) - set(self.clf.built_in_)
        if isinstance(X, list):
            X = extract(X, clf.backbone_, device="cpu").values
        best, below, familiarity = clf.nearest(X, 3), clf.unknown_below(), clf.familiarity(X)
        unknown = np.zeros(len(X), bool) if below is None else familiarity < below
        judged = [i for i, label in enumerate(lesson[1]) if label in known]
        left_out = clf.leave_one_out(_pick(lesson[0], judged), [lesson[1][i] for i in judged]) if judged else None
        return {
            "labels": clf.learned_order_,
            "counts": clf.learner_.counts(),
            "temperature": clf.learner_.temperature,
            "unknown_below": [below, clf.unknown_below(0.2)],
            "answers": [None if no else a for no, a in zip(unknown.tolist(), best.labels[:, 0].tolist(), strict=True)],
            "scores": clf.learner_.scores(X),
            "probabilities": best.probabilities,
            "familiarity": familiarity,
            "left_out": None if left_out is None else left_out.answers.tolist(),
            "left_out_probabilities": None if left_out is None else left_out.probabilities,
        }


IMPLEMENTATIONS: dict[str, type[Subject]] = {"estimator": Estimator}


def _pick(X: Any, rows: Sequence[int]) -> Any:
    return X[rows] if isinstance(X, np.ndarray) else [X[i] for i in rows]


def make(kind: type[Subject], name: str, **settings: Any) -> Subject:
    """A model by its recipe; the parts of another are opened, or with `settings` made, too."""
    recipe = RECIPES[name]
    if not recipe.of:
        return kind.teach(recipe, **settings)
    parts = [make(kind, one, **settings) if settings else kind.open(OLDER / f"{one}.engram") for one in recipe.of]
    return parts[0].subtract(parts[1]) if name.endswith("-subtracted") else parts[0].merge(*parts[1:])


def ask(model: Subject, recipe: Recipe) -> dict[str, Any]:
    taught = RECIPES[recipe.of[-1]] if recipe.of else recipe
    X, y = taught.taught()[-1] if taught.lessons else ([], [])
    return model.answers(recipe.questions(), (X[:MOST_LEFT_OUT], y[:MOST_LEFT_OUT]))


def ask_after(model: Subject, recipe: Recipe) -> dict[str, Any]:
    """Once it has learned a further lesson."""
    lesson = recipe.further()
    model.learn(*lesson)
    return model.answers(recipe.questions(), lesson)


NUMBERS = ("temperature", "unknown_below", "scores", "probabilities", "familiarity", "left_out_probabilities")


def expected(name: str) -> dict[str, Any]:
    return dict(json.loads((OLDER / f"{name}.json").read_text()))


def largest_differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, float]:
    """Of each number that is compared, in parts of the largest."""
    apart = {}
    for name in (name for name in NUMBERS if wanted[name] is not None):
        one, other = np.array(found[name], float), np.array(wanted[name], float)
        assert one.shape == other.shape, name
        if not np.isnan(other).all():
            apart[name] = float(np.nanmax(abs(one - other)) / max(np.nanmax(abs(other)), 1e-9))
    return apart


def compare(found: Mapping[str, Any], wanted: Mapping[str, Any], tolerance: Mapping[str, float]) -> None:
    """Numbers within their tolerance, and the same labels wherever that leaves no doubt."""
    for name in ("labels", "counts"):
        assert found[name] == wanted[name], name
    for name, apart in largest_differences(found, wanted).items():
        assert apart <= tolerance.get(name, TOLERANCE), f"{name}: {apart:.2g} of the largest away"
    doubt = 2 * tolerance.get("probabilities", TOLERANCE)
    best = np.array(wanted["probabilities"])
    sure = best[:, 0] - best[:, 1] > doubt if best.shape[1] > 1 else np.ones(len(best), bool)
    if (below := wanted["unknown_below"][0]) is not None:
        familiarity = np.array(wanted["familiarity"])
        sure &= abs(familiarity - below) > 2 * tolerance.get("familiarity", TOLERANCE) * abs(familiarity).max()
    for i in np.flatnonzero(sure):
        assert found["answers"][i] == wanted["answers"][i], f"answer {i}"
    if wanted["left_out"] is not None:
        chance = np.array(wanted["left_out_probabilities"])
        certain = chance > 0.5 + 2 * tolerance.get("left_out_probabilities", TOLERANCE)
        for i in np.flatnonzero(certain):
            assert found["left_out"][i] == wanted["left_out"][i], f"left out {i}"
