"""A network that has drifted from its classes is told of before the oldest are lost."""

from dataclasses import replace

import pytest
from toys import paint, quick_plan

from engram.datasets.folders import class_folders
from engram.store import ModelStore, learn_classes, measure_drift, warn_of_drift


def test_a_model_tells_of_drift(trained, engram, tmp_path):
    folders = class_folders(paint(tmp_path / "pictures", "red", "green", "blue", "yellow"))
    first = {name: folders[name] for name in ("red", "green")}
    wild = {**trained["settings"], "increment_rate": 0.2, "increment_epochs": 40, "lambda_reg": 0.0}
    path, plan = tmp_path / "m.engram", quick_plan(method="mas", settings=wild)
    assert learn_classes(ModelStore(path), first, plan).drift is None
    told = learn_classes(ModelStore(path), folders, plan).drift
    model = ModelStore(path).read()
    assert told is not None
    assert told == warn_of_drift(model)
    assert measure_drift(model) > 0.8
    assert told in engram("info", path).err
    assert engram("info", path, "--json").json["drift"] == pytest.approx(measure_drift(model))
    older = {name: replace(record, stray=None) for name, record in model.notes.classes.items()}
    assert measure_drift(replace(model, notes=replace(model.notes, classes=older))) is None


def test_the_default_does_not_drift(place, tmp_path):
    folders = class_folders(paint(tmp_path / "pictures", "yellow"))
    assert learn_classes(place, folders, quick_plan()).drift is None
    assert measure_drift(place.read()) is None
