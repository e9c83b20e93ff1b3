"""The error behind a fixed decoder is Eq. 2, and large layers are ordinary ones."""

import pytest
import torch
from torch import nn

from engram.paper import losses
from engram.paper.autoencoder import Autoencoder
from engram.paper.engine import layers
from engram.paper.engine.layers import FastNetwork, FixedDecoder, LargeLinear


@pytest.mark.parametrize("sizes", [(32, 16), (16,), (160, 16), (64, 32, 8)])
def test_it_has_the_value_and_the_gradients_of_the_reconstruction_error(sizes):
    generator = torch.Generator().manual_seed(0)
    network = Autoencoder(64, sizes).initialise(generator).double()
    x = torch.randn(10, 64, generator=generator, dtype=torch.float64)
    fixed, samples = layers.view(network, x, True)
    assert isinstance(fixed, FixedDecoder)

    plain = losses.reconstruction(network.decode(network.encode(x)), x)
    fast = fixed.error(fixed.encode(samples), samples)
    torch.testing.assert_close(fast, plain, rtol=1e-12, atol=0)
    thetas = list(network.encoder.parameters())
    expected, got = torch.autograd.grad(plain, thetas), torch.autograd.grad(fast, thetas)
    torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12)


def test_in_float32_its_gradients_are_as_exact_as_those_of_reconstructing():
    """Against float64, at the sizes of CIFAR-100 over four, and where little error is left."""
    generator = torch.Generator().manual_seed(0)
    network = Autoencoder(2048, (512, 512)).initialise(generator)
    network.decoder[-1].weight.data *= 20
    codes = torch.randn(64, 512, generator=generator).requires_grad_(True)
    x = network.decode(codes).detach() + 0.01 * torch.randn(64, 2048, generator=generator)
    fixed = FixedDecoder(network)
    (fast,) = torch.autograd.grad(fixed.error(codes, (x, fixed.project(x))), codes)
    (plain,) = torch.autograd.grad(losses.reconstruction(network.decode(codes), x), codes)
    exact_codes = codes.detach().double().requires_grad_(True)
    (exact,) = torch.autograd.grad(losses.reconstruction(network.double().decode(exact_codes), x.double()), exact_codes)
    wrong = [(gradient.double() - exact).norm() / exact.norm() for gradient in (fast, plain)]
    assert wrong[0] <= 5 * wrong[1] + 1e-6, wrong


@pytest.mark.parametrize("onednn", [True, False])
@pytest.mark.parametrize("shared", [False, True])
def test_large_layers_have_the_gradients_of_ordinary_ones(shared, onednn, monkeypatch):
    """Also a layer that a loss uses twice, a frozen one, and every step after the first."""
    if not onednn:
        monkeypatch.setattr(layers, "_ONEDNN", None)
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    one, two, frozen = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4).requires_grad_(False)
    ordinary = [one, one if shared else two, frozen]
    made = {layer: LargeLinear(layer) for layer in (one, two, frozen)}
    large = [made[layer] for layer in ordinary]
    thetas = [*one.parameters()] + ([] if shared else [*two.parameters()])
    for _ in range(3):
        x = torch.randn(5, 4, generator=generator)
        expected, got = (
            torch.autograd.grad(nn.Sequential(*chain)(x).square().sum(), thetas) for chain in (ordinary, large)
        )
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    assert made[one].memory is not None
    assert made[frozen].memory is None


def test_large_layers_reuse_the_memory_of_gradients():
    layer = LargeLinear(nn.Linear(4, 4))
    x = torch.ones(2, 4)
    places = [torch.autograd.grad(layer(x).sum(), layer.weight)[0].data_ptr() for _ in "ab"]
    with torch.no_grad():
        layer(x)
    places += [torch.autograd.grad(layer(x).sum(), layer.weight)[0].data_ptr()]
    assert len(set(places)) == 1


def test_only_large_layers_are_replaced_and_weights_are_shared(monkeypatch):
    monkeypatch.setattr(layers, "LARGE", 100)
    network = Autoencoder(20, (8, 4)).initialise(torch.Generator().manual_seed(0))
    fast = FastNetwork(network)
    kinds = [[type(layer) for layer in stack] for stack in (fast.encoder, fast.decoder)]
    assert kinds == [[LargeLinear, nn.ELU, nn.Linear, nn.ELU], [nn.Linear, nn.ELU, LargeLinear]]
    assert fast.encoder[0].weight is network.encoder[0].weight
    x = torch.randn(5, 20)
    torch.testing.assert_close(fast.encode(x), network.encode(x))
    torch.testing.assert_close(fast.error(fast.encode(x), x), network.error(network.encode(x), x))
