"""Drift is measured by what the network makes of its own class means, and told before the oldest classes are lost."""

import dataclasses

import pytest
import torch
from toys import QUICK, paint, quick_plan

from engram.datasets import class_folders
from engram.nn import distance
from engram.paper.prototypes import Prototypes, PrototypesConfig
from engram.store import Model, ModelStore, learn_classes, measure_drift, warn_of_drift
from engram.testing import blobs

QUIET = PrototypesConfig(layers=(16, 8), base_epochs=60, base_rate=1e-2, increment_epochs=20, increment_rate=1e-4)


def learner(**changes: object) -> Prototypes:
    made = Prototypes(dataclasses.replace(QUIET, **changes), seed=3, device="cpu")
    made.learn(*blobs(["a", "b", "c"]))
    return made


def test_stray_is_the_angle_to_what_becomes_of_a_mean_over_half_that_to_the_next_mean():
    made = learner()
    network, means = made._network(made.n_features, True), made.tensors["classes.means"]
    with torch.no_grad():
        back = network.encode(network.decode(means))
    cosines = torch.cosine_similarity(back, means)
    between = distance.similarity(means).fill_diagonal_(-1).max(dim=1).values
    expected = torch.acos(cosines) / (torch.acos(between) / 2)
    assert made.stray() == pytest.approx(expected.tolist(), rel=1e-3)


def test_a_network_that_runs_away_strays_and_one_that_stands_still_does_not():
    calm, wild = learner(increment_rate=0.0), learner(increment_rate=0.1, lambda_reg=0.0)
    before = {"calm": calm.stray(), "wild": wild.stray()}
    for name in "defg":
        for each in (calm, wild):
            each.learn(*blobs([name]))
    assert calm.stray()[0] == pytest.approx(before["calm"][0], abs=0.3)  # its neighbours have changed, not its code
    assert wild.stray()[0] > before["wild"][0] + 0.8


def test_a_model_tells_of_drift_and_the_default_has_none(engram, tmp_path):
    folders = class_folders(paint(tmp_path / "pictures", "red", "green", "blue", "yellow"))
    first = {name: folders[name] for name in ("red", "green")}
    wild = {**QUICK, "increment_rate": 0.2, "increment_epochs": 40, "lambda_reg": 0.0}
    path, plan = tmp_path / "m.engram", quick_plan(method="mas", settings=wild)
    assert learn_classes(ModelStore(path), first, plan).drift is None
    told = learn_classes(ModelStore(path), folders, plan).drift
    model = ModelStore(path).read()
    assert told is not None
    assert told == warn_of_drift(model)
    assert measure_drift(model) > 0.8
    assert "warning: the network has drifted" in engram("info", path).err
    assert engram("info", path, "--json").json["drift"] == pytest.approx(measure_drift(model))
    older = {name: dataclasses.replace(record, stray=None) for name, record in model.notes.classes.items()}
    assert measure_drift(Model(model.clf, dataclasses.replace(model.notes, classes=older))) is None
    plain = tmp_path / "whitened.engram"
    learn_classes(ModelStore(plain), first, quick_plan())
    assert learn_classes(ModelStore(plain), folders, quick_plan()).drift is None
    assert measure_drift(ModelStore(plain).read()) is None
