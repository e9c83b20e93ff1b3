"""The reconstruction error behind a decoder that does not move, without reconstructing anything."""

import torch
from torch import Tensor, nn


class FixedDecoder:
    """Eq. 2 while only the encoder is trained.

    The decoder's last layer is linear, g(code) = W z + b with z its hidden layer's output, so that

        ‖W z + b - x‖² = zᵀ WᵀW z - 2 zᵀ Wᵀ(x - b) + ‖x - b‖²,  with the gradient 2 (WᵀW z - Wᵀ(x - b)) for z.

    WᵀW is computed once per task and Wᵀ(x - b) once per sample. W, which is four fifths of the decoder at CIFAR-100's
    sizes and would be gone through forwards and backwards, takes no part in a step.
    """

    def __init__(self, decoder: nn.Sequential) -> None:
        *hidden, last = decoder
        assert isinstance(last, nn.Linear)
        self.hidden, self.last = nn.Sequential(*hidden), last
        self.gram = last.weight.new_empty(last.in_features, last.in_features)  # WᵀW; a captured step reads it here

    @torch.no_grad()
    def inputs(self, features: Tensor) -> Tensor:
        """What `error` needs of a task's samples: the features, and Wᵀ(x - b) beside them."""
        weight, bias = self.last.weight, self.last.bias
        torch.mm(weight.T, weight, out=self.gram)
        return torch.cat([features, torch.addmm(-(bias @ weight), features, weight)], dim=1)

    def features(self, inputs: Tensor) -> Tensor:
        """x again."""
        return inputs[:, : self.last.out_features]

    def error(self, codes: Tensor, inputs: Tensor) -> Tensor:
        """‖g(code) - x‖², averaged over a batch."""
        z: Tensor = self.hidden(codes)
        projected = inputs[:, self.last.out_features :]
        with torch.no_grad():
            half_gradient = z @ self.gram - projected
            squares = (self.features(inputs) - self.last.bias).square().sum(dim=1)
            rest = squares - (z * (half_gradient + projected)).sum(dim=1)
        # `rest` is what the first term lacks; to autograd it is a constant, and the first term has the gradient.
        return (2 * (z * half_gradient).sum(dim=1) + rest).mean()
