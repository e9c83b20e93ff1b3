"""A workbench that lasts, as on a GPU, teaches what one made anew for every class does."""

import pytest
import torch

from engram.engine.workbench import Workbench
from engram.methods.prototypes import _WORKBENCHES, PrototypeConfig, PrototypeLearner
from engram.testing import blobs


def taught(rule, lasts, monkeypatch) -> PrototypeLearner:
    created = Workbench.__init__

    def with_lasts(self, *arguments):
        created(self, *arguments)
        self.lasts = lasts

    config = PrototypeConfig(layers=(16, 8), consolidation=rule, base_epochs=5, increment_epochs=5, batch_size=10)
    learner = PrototypeLearner(config, device="cpu")
    with monkeypatch.context() as patch:
        patch.setattr(Workbench, "__init__", with_lasts)
        learner.learn(*blobs(["a", "b"]))
        for name in "cde":
            learner.learn(*blobs([name]))
    return learner


@pytest.mark.parametrize("rule", ["mas", "si", None])
def test_a_workbench_that_lasts_changes_nothing(rule, monkeypatch):
    lasting, anew = taught(rule, True, monkeypatch), taught(rule, False, monkeypatch)
    assert lasting in _WORKBENCHES
    assert anew not in _WORKBENCHES
    expected = anew.state().tensors
    for name, tensor in lasting.state().tensors.items():
        assert torch.equal(tensor, expected[name]), name


def test_what_was_learned_does_not_change_when_the_workbench_is_used_again(monkeypatch):
    learner = taught("mas", True, monkeypatch)
    before = {name: tensor.clone() for name, tensor in learner.state().tensors.items()}
    state = learner.state().tensors
    learner.learn(*blobs(["f"]))
    for name, tensor in state.items():
        assert torch.equal(tensor, before[name]), name
