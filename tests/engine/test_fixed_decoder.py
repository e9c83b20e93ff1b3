"""The error behind a fixed decoder is Eq. 2, and training with it is training with Eq. 2."""

import pytest
import torch

from engram.engine.fixed_decoder import FixedDecoder
from engram.methods import prototypes
from engram.methods.prototypes import PrototypeConfig, PrototypeLearner, _AutoencoderLoss
from engram.nn import losses
from engram.nn.autoencoder import Autoencoder
from engram.testing import blobs


@pytest.mark.parametrize("layers", [(32, 16), (16,), (160, 16), (64, 32, 8)])
def test_it_has_the_value_and_the_gradients_of_the_reconstruction_error(layers):
    generator = torch.Generator().manual_seed(0)
    network = Autoencoder(64, layers).initialise(generator).double()
    x = torch.randn(10, 64, generator=generator, dtype=torch.float64)
    fixed = FixedDecoder(network.decoder)
    inputs = fixed.inputs(x)
    assert torch.equal(fixed.features(inputs), x)

    codes = network.encode(x)
    plain = losses.reconstruction(network.decode(codes), x)
    fast = fixed.error(network.encode(fixed.features(inputs)), inputs)
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
    fixed = FixedDecoder(network.decoder)
    (fast,) = torch.autograd.grad(fixed.error(codes, fixed.inputs(x)), codes)
    (plain,) = torch.autograd.grad(losses.reconstruction(network.decode(codes), x), codes)
    exact_codes = codes.detach().double().requires_grad_(True)
    (exact,) = torch.autograd.grad(losses.reconstruction(network.double().decode(exact_codes), x.double()), exact_codes)
    wrong = [(gradient.double() - exact).norm() / exact.norm() for gradient in (fast, plain)]
    assert wrong[0] <= 5 * wrong[1] + 1e-6, wrong


@pytest.mark.parametrize("rule", ["mas", "si"])
def test_increments_learn_what_they_would_with_reconstructions(rule, monkeypatch):
    def taught():
        config = PrototypeConfig(layers=(16, 8), consolidation=rule, base_epochs=20, increment_epochs=20, feature_rms=1)
        learner = PrototypeLearner(config, device="cpu")
        learner.learn(*blobs(["a", "b"]))
        losses_told = []
        for names in (["c"], ["d", "e"]):
            learner.learn(*blobs(names), progress=lambda told: losses_told.append(told.loss))
        return learner.state().tensors, losses_told

    fast, fast_losses = taught()

    def reconstructing(network, config, several, _fixed):
        loss = _AutoencoderLoss(network, config, several)
        return lambda inputs, y, pairs: loss(inputs[:, : network.encoder[0].in_features], y, pairs)

    monkeypatch.setattr(prototypes, "_AutoencoderLoss", reconstructing)
    plain, plain_losses = taught()
    torch.testing.assert_close(fast, plain, rtol=1e-3, atol=1e-5)
    assert fast_losses == pytest.approx(plain_losses, rel=1e-4)
