"""Large layers against ordinary ones."""

import pytest
import torch
from torch.nn.functional import linear

from engram.engine import large
from engram.engine.large import LargeLayers


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("shared", [False, True])
def test_large_layers_have_the_gradients_of_ordinary_ones(shared, onednn, monkeypatch):
    """Also a layer that a loss uses twice, a frozen one, and every step after the first."""
    monkeypatch.setattr(large, "LARGE", 6)
    if not onednn:
        monkeypatch.setattr(large, "_ONEDNN", None)
    generator = torch.Generator().manual_seed(0)
    one, two, frozen = (torch.randn(4, 4, generator=generator, requires_grad=n < 2) for n in range(3))
    bias, small = torch.randn(4, generator=generator, requires_grad=True), torch.ones(1, 4, requires_grad=True)

    def gradients(x):
        hidden = linear(linear(x, one, bias), one if shared else two, bias)
        loss = (linear(linear(hidden, frozen, bias), small, bias[:1]) ** 2).sum()
        return torch.autograd.grad(loss, [one, bias, small] + ([] if shared else [two]))

    layers = LargeLayers()
    for _ in range(3):
        x = torch.randn(5, 4, generator=generator)
        expected = gradients(x)
        with layers:
            torch.testing.assert_close(gradients(x), expected, rtol=1e-5, atol=1e-5)
    assert set(layers.memory) == ({id(one)} if shared else {id(one), id(two)})


def test_large_layers_reuse_the_memory_of_gradients(monkeypatch):
    monkeypatch.setattr(large, "LARGE", 6)
    weight, bias = torch.ones(4, 4, requires_grad=True), torch.zeros(4)
    with LargeLayers():
        places = [torch.autograd.grad(linear(torch.ones(2, 4), weight, bias).sum(), weight)[0].data_ptr() for _ in "ab"]
        with torch.no_grad():
            linear(torch.ones(2, 4), weight, bias)
        places += [torch.autograd.grad(linear(torch.ones(2, 4), weight, bias).sum(), weight)[0].data_ptr()]
    assert len(set(places)) == 1


def test_gradients_of_gradients_pass_through_large_layers(monkeypatch):
    """As the penalty of a GAN's critic has them."""
    monkeypatch.setattr(large, "LARGE", 6)
    generator = torch.Generator().manual_seed(0)
    one, two = (torch.randn(4, 4, generator=generator, requires_grad=True) for _ in range(2))
    bias, x = torch.randn(4, generator=generator), torch.randn(5, 4, generator=generator, requires_grad=True)

    def gradients():
        (slope,) = torch.autograd.grad(linear(linear(x, one, bias).tanh(), two, bias).sum(), x, create_graph=True)
        return torch.autograd.grad((slope.norm(dim=1) - 1).square().sum(), [one, two])

    expected = gradients()
    with LargeLayers():
        torch.testing.assert_close(gradients(), expected, rtol=1e-5, atol=1e-5)
