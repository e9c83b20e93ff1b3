"""Write the model files of `older/`, and beside each what it answers: once, by the version whose answers count.

    PYTHONPATH=tests/store python tests/files/make_older.py [NAME ...]

Without names, all that are not there yet. Nothing that exists is written again.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from goldens import (
    NUMBERS,
    OLDER,
    TOLERANCE,
    Estimator,
    Subject,
    ask,
    ask_after,
    largest_differences,
    make,
)
from recipes import RECIPES, Photos, Recipe

from engram.store import ModelStore, Plan, learn_classes
from engram.store.statistics import write_statistics

ROUNDS = 3.0  # times what 16 bits were away from 64, another rounding may be


def write(name: str) -> None:
    recipe, path = RECIPES[name], OLDER / f"{name}.engram"
    if isinstance(recipe, Photos):
        _learn_photos(recipe, path)
    else:
        _save(make(Estimator, name), recipe, path)
    wanted = {"asked": ask(Estimator.open(path), recipe)}
    if recipe.keeps != "slim":
        wanted["learned"] = ask_after(Estimator.open(path), recipe)
    shown = {stage: {key: _short(value) for key, value in one.items()} for stage, one in wanted.items()}
    lines = ",\n".join(f'"{stage}": {_lines(one)}' for stage, one in shown.items())
    path.with_suffix(".json").write_text(f'{{"tolerance": {json.dumps(_tolerance(name, wanted))},\n{lines}}}\n')


def _learn_photos(recipe: Photos, path: Path) -> None:
    store, plan = ModelStore(path, device="cpu"), Plan(**{"keep": 0, **recipe.plan})
    for photos, names in recipe.taught():
        of = {
            one: [photo for photo, name in zip(photos, names, strict=True) if name == one] for one in sorted({*names})
        }
        if path.stem.endswith("statistics"):
            write_statistics(store, of, plan)
            break
        learn_classes(store, of, plan)


def _save(model: Subject, recipe: Recipe, path: Path) -> None:
    assert isinstance(model, Estimator)
    clf = model.clf
    if recipe.keeps == "examples":
        X, y = recipe.lesson(300, "ab", 3)
        clf.examples_ = {label: X[[one == label for one in y]].astype(np.float16) for label in "ab"}
    if recipe.keeps == "temperature":
        clf.temperature = 0.2
    if recipe.keeps == "names":
        clf.feature_names_in_ = np.array([f"feature {i}" for i in range(recipe.d)], dtype=object)
    clf.save(path, slim=recipe.keeps == "slim")


def _tolerance(name: str, wanted: dict[str, Any]) -> dict[str, dict[str, float]]:
    """Of teaching again and of learning on: where 16 bits are kept, as far as rounding at random takes it."""
    recipe = RECIPES[name]
    if isinstance(recipe, Photos):
        rounded = recipe.plan.get("method", "whitened") == "whitened"
        return _tolerance_of("whitened-16") if rounded else {}
    if not recipe.again:
        return (
            {"learned": dict.fromkeys(NUMBERS, 1e-3)} if recipe.method != "whitened" else _tolerance_of("whitened-16")
        )
    if recipe.method not in ("whitened", "imagenet") or recipe.settings.get("kept_bits", 16) != 16:
        return {}
    twin = make(Estimator, name, kept_bits=64)
    found = {"taught": ask(twin, recipe)} | ({"learned": ask_after(twin, recipe)} if "learned" in wanted else {})
    apart = {stage: largest_differences(one, wanted.get(stage, wanted["asked"])) for stage, one in found.items()}
    return {
        stage: {key: float(f"{max(TOLERANCE, ROUNDS * value):.2g}") for key, value in one.items()}
        for stage, one in apart.items()
    }


def _tolerance_of(name: str) -> dict[str, dict[str, float]]:
    return dict(json.loads((OLDER / f"{name}.json").read_text())["tolerance"])


def _short(value: Any) -> Any:
    """Numbers in seven digits."""
    if isinstance(value, np.ndarray | list | tuple):
        return [_short(one) for one in value]
    if isinstance(value, float | np.floating):
        return None if np.isnan(value) else float(f"{value:.7g}")
    return value.item() if isinstance(value, np.generic) else value


def _lines(one: dict[str, Any]) -> str:
    return "{" + ",\n ".join(f'"{key}": {json.dumps(value, separators=(",", ":"))}' for key, value in one.items()) + "}"


if __name__ == "__main__":
    for name in sys.argv[1:] or [one for one in RECIPES if not (OLDER / f"{one}.engram").exists()]:
        write(name)
        print(name, (OLDER / f"{name}.engram").stat().st_size, (OLDER / f"{name}.json").stat().st_size)  # noqa: T201
