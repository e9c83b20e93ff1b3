"""The encoder h and the decoder g: plain ELU networks, the decoder the mirror of the encoder."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import elu, linear

from engram.paper import distance, losses

CHUNK = 4096  # samples encoded at a time


def _stack(sizes: Sequence[int], *, activate_last: bool, device: str) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i, (width_in, width_out) in enumerate(pairwise(sizes)):
        # Built empty: `initialise` draws the weights from a generator of its own, never from torch's global one.
        layers.append(nn.utils.skip_init(nn.Linear, width_in, width_out, device=device))
        if activate_last or i < len(sizes) - 2:
            layers.append(nn.ELU())
    return nn.Sequential(*layers)


def encode(weights: Mapping[str, Tensor], features: Tensor) -> Tensor:
    """h(x), of an encoder given by its weights alone, by name: every second module is an ELU."""
    for i in range(0, len(weights), 2):
        features = elu(linear(features, weights[f"{i}.weight"], weights[f"{i}.bias"]))
    return features


class Autoencoder(nn.Module):
    """h: features -> code, g: code -> features. A code is the prototype of its input.

    Every layer of the encoder ends in an ELU, the code's too; the decoder's last layer is linear, because features
    are not bounded by -1. On the device "meta" it takes no room, and is there to be given its weights.

    >>> network = Autoencoder(8, (4, 3)).initialise(torch.Generator().manual_seed(0))
    >>> network.encode(torch.zeros(2, 8)).shape, network.decode(torch.zeros(2, 3)).shape
    (torch.Size([2, 3]), torch.Size([2, 8]))
    """

    def __init__(self, n_features: int, layers: Sequence[int], device: str = "cpu") -> None:
        super().__init__()
        sizes = [n_features, *layers]
        self.encoder = _stack(sizes, activate_last=True, device=device)
        self.decoder = _stack(sizes[::-1], activate_last=False, device=device)

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
        return encode(dict(self.encoder.named_parameters()), features)

    @torch.no_grad()
    def encode_all(self, features: Tensor) -> Tensor:
        """h(x) of any number of samples, without gradients."""
        return torch.cat([self.encode(part) for part in features.split(CHUNK)])

    def decode(self, codes: Tensor) -> Tensor:
        """g(code)."""
        return cast(Tensor, self.decoder(codes))

    @torch.no_grad()
    def stray(self, means: Tensor) -> list[float]:
        """How far the encoder has come away from each mean, in parts of half the way to the nearest other one.

        That is the angle between a mean and what becomes of it if decoded and encoded again. The decoder stands still.
        """
        moved = distance.angles(self.encode_all(self.decode(means)), means)
        if len(means) == 1:
            return [0.0]
        other = means[distance.nearest(means, means, 2)[1][:, 1]]
        found: list[float] = (moved / (distance.angles(means, other) / 2).clamp(min=1e-3)).tolist()
        return found

    def error(self, codes: Tensor, features: Tensor) -> Tensor:
        """Eq. 2, averaged over a batch."""
        return losses.reconstruction(self.decode(codes), features)
