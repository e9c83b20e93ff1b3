"""Asks a model all that is compared: `recipes.py` says how each file of `older/` was taught.

The versions before wrote them, in torch, and beside each what it answered.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from recipes import RECIPES, Labels, Recipe

from engram.images.stream import encode_all
from engram.model import Model

OLDER = Path(__file__).parent / "older"
TOLERANCE = 1e-4  # of the largest number
ROUNDED = 3e-3  # what 16 bits are rounded to is drawn at random, otherwise than it was
MOST_LEFT_OUT = 30  # samples


@dataclass
class Subject:
    """One model, opened or taught."""

    model: Model

    @classmethod
    def open(cls, path: Path) -> Self:
        return cls(Model.load(path))

    @classmethod
    def teach(cls, recipe: Recipe) -> Self:
        seed = int(np.random.RandomState(recipe.seed).randint(2**31 - 1))  # as the estimator draws it
        model = Model.new(recipe.method, recipe.settings, seed=seed)
        if recipe.head:
            weight = np.random.RandomState(5).randn(len(recipe.head), recipe.d - 8).astype(np.float32)
            bias = np.random.RandomState(6).randn(len(recipe.head)).astype(np.float32)
            model = replace(model, learner=model.learner.adopt(recipe.head, weight, bias, recipe.d))
        for X, y in recipe.taught():
            if recipe.summed:
                model = model.absorb(model.empty().learn(X, y))
            else:
                model, _ = model.learn(X, y)
        for what, *labels in recipe.then:
            model = getattr(model, what)(*labels)
        return cls(model)

    def learn(self, X: Any, y: Labels) -> None:
        self.model, _ = self.model.learn(self._features(X), y)

    def merge(self, other: Self) -> Self:
        return type(self)(self.model.merge(other.model))

    def subtract(self, other: Self) -> Self:
        return type(self)(self.model.subtract(other.model))

    def _features(self, X: Any) -> Any:
        return encode_all(X, self.model.open_encoder()).features if isinstance(X, list) else X

    def answers(self, X: Any, lesson: tuple[Any, Labels]) -> dict[str, Any]:
        model, learner, known, features = self.model, self.model.learner, set(self.model.labels), self._features(X)
        best, scores, counts = model.answer(features, 3), learner.score(features), learner.counts()
        familiarity = scores.values.max(axis=1) if scores.novelty is None else -scores.novelty
        above = [model.unknown_above(share) for share in (0.05, 0.2)]
        unknown = np.zeros(len(X), bool) if above[0] is None else -familiarity > above[0]
        judged = [i for i, label in enumerate(lesson[1]) if label in known]
        left_out = rows = None
        if judged and model.leaves_out and learner.can_learn:
            X_judged = model.checked(self._features(_pick(lesson[0], judged)))
            left_out = learner.judged(X_judged, [lesson[1][i] for i in judged])[1].values.astype(np.float64)
            rows = left_out.argmax(axis=1)
            left_out = np.exp((left_out - left_out.max(axis=1, keepdims=True)) / scores.temperature)
        return {
            "labels": list(learner.labels),
            "counts": None if counts is None else counts.tolist(),
            "temperature": scores.temperature,
            "unknown_below": [None if one is None else -one for one in above],
            "answers": [None if no else learner.labels[row] for no, row in zip(unknown, best.rows[:, 0], strict=True)],
            "scores": scores.values,
            "probabilities": best.probabilities,
            "familiarity": familiarity,
            "left_out": None if rows is None else [learner.labels[row] for row in rows],
            "left_out_probabilities": None if left_out is None else 1 / left_out.sum(axis=1),
        }


def _pick(X: Any, rows: Sequence[int]) -> Any:
    return X[rows] if isinstance(X, np.ndarray) else [X[i] for i in rows]


def make(name: str) -> Subject:
    """A model by its recipe; the parts of another are opened."""
    recipe = RECIPES[name]
    if not recipe.of:
        return Subject.teach(recipe)
    parts = [Subject.open(OLDER / f"{one}.engram") for one in recipe.of]
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


def rounded(tolerance: Mapping[str, float]) -> dict[str, float]:
    """What was measured of one draw, or what another may make of it."""
    return {name: max(ROUNDED, value) for name, value in tolerance.items()}


def largest_differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, float]:
    """Of each number that is compared, in parts of the largest."""
    apart = {}
    for name in (name for name in NUMBERS if wanted[name] is not None):
        one, other = np.array(found[name], float), np.array(wanted[name], float)
        assert one.shape == other.shape, name
        if not np.isnan(other).all():
            scale = wanted["familiarity"] if name == "unknown_below" else other  # of which that is a threshold
            apart[name] = float(np.nanmax(abs(one - other)) / max(np.nanmax(np.abs(scale)), 1e-9))
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
