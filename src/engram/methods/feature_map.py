"""From features x to the vectors z that are whitened: a root, projections where x is very wide, the paper's code."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from engram.learner import Task
from engram.methods.registry import find_method
from engram.methods.tensors import Layout
from engram.nn import projection
from engram.nn.layout import Kept

WIDE, NARROW = 4096, 2048  # where nobody says how wide z may be, features wider than the one are projected to the other

Network = dict[str, Tensor]


class FeatureMap:
    """z = [√x, or random projections of it; w·h(x)] / unit, h the paper's encoder where there is one.

    What it learns from the base, and never again, is a table of tensors called `network.…`.
    """

    def __init__(
        self,
        transform: str,
        width: int | None,
        encoder: Mapping[str, Any] | None,
        bits: int,
        seed: int,
        device: torch.device,
    ) -> None:
        self.transform, self.width, self.encoder, self.seed, self.device = transform, width, encoder, seed, device
        self.dtype = torch.float64 if bits == 64 else torch.float32

    def fit(self, task: Task) -> Network:
        """Train the encoder with Eq. 5 and bring both blocks of z to one root mean square, near 1."""
        network: Network = {}
        if self.encoder is not None:
            trained = self._paper({})._tensors_after(task)
            network = {  # frozen from here on: no gradient is followed through it
                name: t.detach()
                for name, t in trained.items()
                if name.startswith(("network.encoder", "network.feature"))
            }
            code = self._paper(network).encode(task.features)
            network["network.code_weight"] = _rms(self(task.features, {})) / _rms(code)
        # Where 16 bits hold numbers best; a power of two, as dividing by one is exact.
        network["network.unit"] = _rms(self(task.features, network)).log2().round().exp2()
        return network

    def narrowed(self, features: int) -> int:
        """How many numbers are left of that many."""
        widest, left = (self.width, self.width) if self.width else (WIDE, NARROW)
        return left if features > widest else features

    def layout(self, features: int) -> tuple[Layout, int]:
        """What has to be in that table, and how wide z is."""
        width, scalar = self.narrowed(features), Kept((), (torch.float32, torch.float64))
        if self.encoder is None:
            return {"network.unit": scalar}, width
        encoder = self._paper({}).encoder_layout(features)
        network = encoder | {"network.unit": scalar, "network.code_weight": scalar}
        return network, width + self.encoder["layers"][-1]

    def __call__(self, x: Tensor, network: Mapping[str, Tensor]) -> Tensor:
        """z."""
        z = x.to(self.dtype)
        if self.transform == "sqrt":  # the sign is kept where features may be negative
            z = z.sign() * z.abs().sqrt()
        if (width := self.narrowed(z.shape[1])) < z.shape[1]:
            z = z @ projection.signs(z.shape[1], width, self.seed).to(z)
        if "network.code_weight" in network:
            z = torch.cat([z, self._paper(network).encode(x) * network["network.code_weight"]], dim=1)
        return z / network["network.unit"] if "network.unit" in network else z

    def _paper(self, network: Mapping[str, Tensor]) -> Any:
        """The paper's learner, which is there when somebody asks for its encoder."""
        kind = find_method("prototypes")
        learner: Any = kind(kind.configure(self.encoder), seed=self.seed, device=str(self.device))
        learner.tensors = dict(network)
        return learner


def share_network(several: Sequence[Mapping[str, Tensor]]) -> tuple[Network, list[Tensor]]:
    """What models have in common, with the largest of their units, and what to multiply each one's z with for it.

    Units are powers of two, so nothing is rounded; and the largest is the same in whatever order they are merged.
    """
    unit = torch.stack([tensors["network.unit"] for tensors in several]).max()
    network = {name: tensor for name, tensor in several[0].items() if name.startswith("network.")}
    return network | {"network.unit": unit}, [tensors["network.unit"] / unit for tensors in several]


def _rms(values: Tensor) -> Tensor:
    rms = values.square().mean().sqrt()
    return torch.where(rms > 0, rms, 1.0)
