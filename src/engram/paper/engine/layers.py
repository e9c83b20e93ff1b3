"""The same network evaluated sooner: large layers on a CPU, and a decoder that stands still."""

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from engram.paper import losses
from engram.paper.autoencoder import Autoencoder
from engram.paper.engine.interface import Network, Samples
from engram.paper.engine.parallel import split_rows

LARGE = 2**20  # numbers; gradients of fewer stay in the allocator's hands anyway


def view(network: Autoencoder, features: Tensor, fixed: bool) -> tuple[Network, Samples]:
    """The network with what makes it faster, and what that needs of the samples."""
    if not fixed:
        return split_rows(FastNetwork(network)), features
    standing = FixedDecoder(network)
    return split_rows(standing), (features, standing.project(features))


class FastNetwork:
    """The autoencoder with its large layers computed as `LargeLinear` does."""

    def __init__(self, network: Autoencoder) -> None:
        self.encoder, self.decoder = _with_large_layers(network.encoder), _with_large_layers(network.decoder)

    def encode(self, x: Tensor) -> Tensor:
        """h(x)."""
        return cast(Tensor, self.encoder(x))

    def error(self, codes: Tensor, x: Tensor) -> Tensor:
        """Eq. 2, averaged over a batch."""
        return losses.reconstruction(self.decoder(codes), x)


class FixedDecoder:
    """Eq. 2 while only the encoder is trained, without reconstructing anything.

    The decoder's last layer is linear, g(code) = W z + b with z its hidden layer's output, so that

        ‖W z + b - x‖² = zᵀ WᵀW z - 2 zᵀ Wᵀ(x - b) + ‖x - b‖²,  with the gradient 2 (WᵀW z - Wᵀ(x - b)) for z.

    WᵀW is computed once per task and Wᵀ(x - b) once per sample. W, which is four fifths of the decoder at CIFAR-100's
    sizes and would be gone through forwards and backwards, takes no part in a step.
    """

    @torch.no_grad()
    def __init__(self, network: Autoencoder) -> None:
        *hidden, last = network.decoder
        self.weight, self.bias = cast(nn.Linear, last).weight, cast(nn.Linear, last).bias
        self.encoder, self.hidden = _with_large_layers(network.encoder), _with_large_layers(nn.Sequential(*hidden))
        self.gram = self.weight.T @ self.weight  # WᵀW

    @torch.no_grad()
    def project(self, features: Tensor) -> Tensor:
        """Wᵀ(x - b)."""
        return torch.addmm(-(self.bias @ self.weight), features, self.weight)

    def encode(self, x: tuple[Tensor, Tensor]) -> Tensor:
        """h(x), of features and their projections."""
        return cast(Tensor, self.encoder(x[0]))

    def error(self, codes: Tensor, x: tuple[Tensor, Tensor]) -> Tensor:
        """‖g(code) - x‖², averaged over a batch of features and their projections."""
        features, projected = x
        z: Tensor = self.hidden(codes)
        with torch.no_grad():
            half_gradient = z @ self.gram - projected
            squares = (features - self.bias).square().sum(dim=1)
            rest = squares - (z * (half_gradient + projected)).sum(dim=1)
        # `rest` is what the first term lacks; to autograd it is a constant, and the first term has the gradient.
        return (2 * (z * half_gradient).sum(dim=1) + rest).mean()


class LargeLinear(nn.Module):
    """A linear layer of a large weight on a CPU: oneDNN's products, and a gradient in memory that is used again.

    Memory of that size goes back to the operating system when it is freed, and to get it anew, page by page, costs
    more than to fill it.
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self.memory: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """W x + b."""
        memory = None
        if torch.is_grad_enabled():  # lent until the backward pass is through: used twice in a loss, it has two
            memory, self.memory = self.memory, None
        return cast(Tensor, _LargeProduct.apply(x, self.weight, self.bias, memory, self))  # type: ignore[no-untyped-call]


class _LargeProduct(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, memory: Tensor | None, layer: LargeLinear) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.memory, ctx.layer = memory, layer
        return _product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        of_weight = None
        if needs_weight:
            of_weight = torch.empty_like(weight) if ctx.memory is None else ctx.memory
            ctx.layer.memory = torch.mm(gradient.T, x, out=of_weight)
        of_x = _product(gradient, weight.T) if needs_x else None
        return of_x, of_weight, gradient.sum(dim=0) if needs_bias else None, None, None


_ONEDNN = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`linear`; where torch would take MKL, oneDNN was half again as fast on an AMD processor."""
    if _ONEDNN is None or x.dtype != torch.float32:
        return linear(x, weight, bias)
    return cast(Tensor, _ONEDNN(x, weight, bias, "none", [], ""))


def _with_large_layers(layers: nn.Sequential) -> nn.Sequential:
    return nn.Sequential(
        *(LargeLinear(layer) if isinstance(layer, nn.Linear) and _is_large(layer.weight) else layer for layer in layers)
    )


def _is_large(weight: Tensor) -> bool:
    return weight.device.type == "cpu" and weight.numel() >= LARGE
