"""The compiled update and the one in blocks against the plain one they stand for."""

import shutil

import pytest
import torch

from engram.paper.autoencoder import Autoencoder
from engram.paper.consolidation import MAS, SI
from engram.paper.engine import FAST, fast, update
from engram.paper.engine.update import Compiled, Slot, update_in_blocks
from engram.paper.prototypes import Prototypes, PrototypesConfig


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
def test_two_hundred_compiled_updates_are_two_hundred_plain_ones(rule, held, device):
    if device == "cpu" and not shutil.which("g++"):
        pytest.skip("compiling for the CPU needs g++")
    compiled = Compiled(update.update, update_in_blocks, dynamic=True)
    for n in (7, 5000):
        one, two = slot(n, rule is not None, held, device), slot(n, rule is not None, held, device)
        generator = torch.Generator().manual_seed(0)
        for step in range(200):
            gradient = torch.randn(n, generator=generator).to(device)
            rates = torch.tensor([1e-3 / (1 + step), 1 - 0.9 ** (step + 1)], device=device)
            update.update(one, gradient, rates[0], rates[1], rule, 10.0)
            compiled(two, gradient, rates[0], rates[1], rule, 10.0)
        for name, a, b in zip(Slot._fields, one, two, strict=True):
            if a is not None:
                # 1e-5 of the largest: where a sum of 200 terms nearly cancels, what is left of it has fewer digits
                tolerance = (1e-4 if name == "trace" else 1e-5) * a.abs().max().item()
                torch.testing.assert_close(a, b, rtol=1e-5, atol=tolerance)
    assert compiled.function is not update_in_blocks, "nothing was compiled"


@pytest.mark.parametrize("rule", [MAS(), SI(0.1)])
def test_an_update_in_blocks_is_the_plain_one_bit_for_bit(rule, monkeypatch):
    monkeypatch.setattr(update, "BLOCK", 16)
    one, two = slot(50, True, True, "cpu"), slot(50, True, True, "cpu")
    gradient, rates = torch.randn(50, generator=torch.Generator().manual_seed(0)), torch.tensor([1e-2, 0.3])
    update.update(one, gradient, rates[0], rates[1], rule, 10.0)
    update_in_blocks(two, gradient, rates[0], rates[1], rule, 10.0)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_without_a_working_compiler_the_update_is_done_in_blocks():
    failing = type("InductorError", (RuntimeError,), {"__module__": "torch._inductor.exc"})

    def broken(*_):
        raise failing("g++: command not found")

    compiled = Compiled(update.update, update_in_blocks, dynamic=True)
    compiled.function = broken
    one, two = slot(50, True, True, "cpu"), slot(50, True, True, "cpu")
    arguments = torch.ones(50), torch.tensor(1e-2), torch.tensor(0.3), MAS(), 10.0
    update.update(one, *arguments)
    compiled(two, *arguments)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert compiled.function is update_in_blocks
    compiled.function = lambda *_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        compiled(two, *arguments)


@pytest.mark.skipif(not shutil.which("g++"), reason="compiling for the CPU needs g++")
def test_compiled_losses_have_the_gradients_of_plain_ones_and_serve_every_learner():
    """On a GPU they are compiled; here for the CPU. A second network of the same sizes must not be compiled again."""
    compiled = Compiled(fast.evaluate, fast.evaluate, dynamic=False)
    labels = torch.arange(8) % 3
    pairs = torch.stack([torch.arange(8), (torch.arange(8) + 3) % 8], dim=1)
    for seed in range(2):
        learner = Prototypes(PrototypesConfig(layers=(32, 16)), device="cpu")
        generator = torch.Generator().manual_seed(seed)
        network = Autoencoder(64, (32, 16)).initialise(generator)
        x, means = torch.rand(8, 64, generator=generator), torch.rand(3, 16, generator=generator)
        moving, features = FAST.view(network, x, False)
        standing, samples = FAST.view(network, x, True)
        losses = [
            (learner._loss(moving, True), features),
            (learner._loss(standing, True), samples),
            (learner._loss(moving, True, means), features),
        ]
        thetas = list(network.encoder.parameters())
        with torch._dynamo.config.patch(error_on_recompile=seed > 0):
            for loss, inputs in losses:
                quick = torch.autograd.grad(compiled(loss, inputs, labels, pairs), thetas)
                plain = torch.autograd.grad(loss(inputs, labels, pairs), thetas)
                torch.testing.assert_close(quick, plain, rtol=1e-5, atol=1e-6)
    assert compiled.function is not fast.evaluate, "nothing was compiled"
