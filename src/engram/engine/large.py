"""Linear layers of large weights on a CPU: oneDNN's products, and gradients in memory that is used again."""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

LARGE = 2**20  # numbers; gradients of fewer stay in the allocator's hands anyway


def is_large(weight: Tensor) -> bool:
    """Whether the detour pays."""
    return weight.device.type == "cpu" and weight.numel() >= LARGE


class LargeLayers(TorchFunctionMode):
    """While this holds, linear layers of large weights are computed with what a CPU does best.

    Products are oneDNN's. The gradient of a weight goes to the same memory at every step: memory of that size goes
    back to the operating system when it is freed, and to get it anew, page by page, costs more than to fill it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.memory: dict[int, Tensor] = {}

    def __torch_function__(
        self, func: Callable[..., Tensor], types: object, args: tuple[Tensor, ...] = (), kwargs: Any = None
    ) -> Tensor:
        if func is not linear or len(args) < 3 or args[0].dim() != 2 or not is_large(args[1]):
            return func(*args, **(kwargs or {}))
        # Lent until the backward pass is through: a layer used twice in a loss has two gradients at a time.
        memory = self.memory.pop(id(args[1]), None) if torch.is_grad_enabled() else None
        return cast(Tensor, _LargeLayer.apply(*args, memory, self.memory))  # type: ignore[no-untyped-call]


class _LargeLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, memory: Tensor | None, lender: dict[int, Tensor]
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.memory, ctx.lender = memory, lender
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None, None, None]:
        x, weight = ctx.saved_tensors
        needs_x, needs_weight, needs_bias = ctx.needs_input_grad[:3]
        of_x = of_weight = None
        if torch.is_grad_enabled():  # the gradient is to be differentiated again
            of_x = gradient @ weight if needs_x else None
            of_weight = gradient.T @ x if needs_weight else None
        else:
            of_x = _product(gradient, weight.T) if needs_x else None
            if needs_weight:
                of_weight = torch.empty_like(weight) if ctx.memory is None else ctx.memory
                ctx.lender[id(weight)] = torch.mm(gradient.T, x, out=of_weight)
        return of_x, of_weight, gradient.sum(dim=0) if needs_bias else None, None, None


_ONEDNN = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`linear`; where torch would take MKL, oneDNN was half again as fast on an AMD processor."""
    return linear(x, weight, bias) if _ONEDNN is None else cast(Tensor, _ONEDNN(x, weight, bias, "none", [], ""))
