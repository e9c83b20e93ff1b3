"""The compiled update and the captured step against the plain ones they stand for."""

import shutil

import pytest
import torch

from engram.methods.prototypes import PrototypeConfig, PrototypeLearner
from engram.nn.consolidation import MAS, SI
from engram.nn.training import Slot, _Step, update
from engram.testing import blobs


def slot(n: int, traced: bool, held: bool, device: str) -> Slot:
    generator = torch.Generator().manual_seed(n)

    def positive() -> torch.Tensor:
        return torch.rand(n, generator=generator).to(device)

    return Slot(
        theta=torch.randn(n, generator=generator).to(device),
        first=positive(),
        second=positive(),
        second_max=positive(),
        trace=positive() if traced else None,
        importance=positive() if held else None,
        anchor=positive() if held else None,
    )


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize(("rule", "held"), [(MAS(), True), (SI(0.1), True), (MAS(), False), (None, False)])
def test_the_compiled_update_is_the_plain_one(rule, held, device):
    if device == "cpu" and not shutil.which("g++"):
        pytest.skip("compiling for the CPU needs g++")
    compiled = torch.compile(update, dynamic=True)
    for n in (7, 1000):
        one, two = slot(n, rule is not None, held, device), slot(n, rule is not None, held, device)
        gradient = torch.randn(n, generator=torch.Generator().manual_seed(0)).to(device)
        rates = torch.tensor([1e-2, 0.3], device=device)
        update(one, gradient, rates[0], rates[1], rule, 10.0)
        compiled(two, gradient, rates[0], rates[1], rule, 10.0)
        for a, b in zip(one, two, strict=True):
            if a is not None:
                torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


@pytest.mark.gpu
@pytest.mark.parametrize("rule", ["mas", "si"])
def test_captured_training_is_plain_training(rule, monkeypatch):
    """Base, L_add and increments with batches of two sizes: graphs and compiled updates change nothing."""
    config = PrototypeConfig(
        layers=(1024, 256), consolidation=rule, outlier_exclusion=True, base_epochs=20, increment_epochs=20,
        center_epochs=5, batch_size=10, feature_rms=1.0,
    )  # fmt: skip

    def taught() -> PrototypeLearner:
        learner = PrototypeLearner(config, device="cuda")
        # Wide enough for the compiler to try several kernels: it must have done so before a graph is captured.
        learner.learn(*blobs(["a", "b"], width=512))
        learner.learn(*blobs(["c"], width=512))
        learner.learn(*blobs(["d"], width=512, n=11))
        return learner

    captured = taught().state()
    monkeypatch.setattr("engram.nn.training._CapturedStep", _Step)
    plain = taught().state()
    for name, tensor in plain.tensors.items():
        tolerance = 1e-3 if name.startswith("consolidation") else 1e-4
        torch.testing.assert_close(captured.tensors[name], tensor, rtol=tolerance, atol=1e-5)
