"""The encoder h and the decoder g: plain ELU networks, the decoder the mirror of the encoder."""

from collections.abc import Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn


def _stack(sizes: Sequence[int], *, activate_last: bool) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i, (width_in, width_out) in enumerate(pairwise(sizes)):
        # Built empty: `initialise` draws the weights from a generator of its own, never from torch's global one.
        layers.append(nn.utils.skip_init(nn.Linear, width_in, width_out))
        if activate_last or i < len(sizes) - 2:
            layers.append(nn.ELU())
    return nn.Sequential(*layers)


class Autoencoder(nn.Module):
    """h: features -> code, g: code -> features. A code is the prototype of its input.

    Every layer of the encoder ends in an ELU, the code's too; the decoder's last layer is linear, because features
    are not bounded by -1.

    >>> network = Autoencoder(8, (4, 3)).initialise(torch.Generator().manual_seed(0))
    >>> network.encode(torch.zeros(2, 8)).shape, network.decode(torch.zeros(2, 3)).shape
    (torch.Size([2, 3]), torch.Size([2, 8]))
    """

    def __init__(self, n_features: int, layers: Sequence[int]) -> None:
        super().__init__()
        sizes = [n_features, *layers]
        self.encoder = _stack(sizes, activate_last=True)
        self.decoder = _stack(sizes[::-1], activate_last=False)

    def initialise(self, generator: torch.Generator) -> "Autoencoder":
        """Draw all weights as `nn.Linear` would, from `generator`."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                bound = module.in_features**-0.5
                nn.init.uniform_(module.weight, -bound, bound, generator=generator)
                nn.init.uniform_(module.bias, -bound, bound, generator=generator)
        return self

    def encode(self, features: Tensor) -> Tensor:
        """h(x)."""
        return cast(Tensor, self.encoder(features))

    def decode(self, codes: Tensor) -> Tensor:
        """g(code)."""
        return cast(Tensor, self.decoder(codes))

    @property
    def code_size(self) -> int:
        """Length of a code, and so of a class mean."""
        return next(m for m in reversed(self.encoder) if isinstance(m, nn.Linear)).out_features
