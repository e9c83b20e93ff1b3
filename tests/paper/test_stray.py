"""How far the network has moved from the class means it keeps."""

import dataclasses

import pytest
import torch

from engram.learners.trying import blobs
from engram.paper.prototypes import Prototypes, PrototypesConfig

QUIET = PrototypesConfig(layers=(16, 8), base_epochs=60, base_rate=1e-2, increment_epochs=20, increment_rate=1e-4)


def learner(**changes: object) -> Prototypes:
    made = Prototypes(dataclasses.replace(QUIET, **changes), seed=3, device="cpu")
    made.learn(*blobs(["a", "b", "c"]))
    return made


def test_it_is_the_angle_to_what_becomes_of_a_mean_over_half_that_to_the_next_mean():
    made = learner()
    network, means = made._network(made.n_features, True), made.tensors["classes.means"]
    with torch.no_grad():
        back = network.encode(network.decode(means))
    cosines, unit = torch.cosine_similarity(back, means), torch.nn.functional.normalize(means)
    between = (unit @ unit.T).fill_diagonal_(-1).max(dim=1).values
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
