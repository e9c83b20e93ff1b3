"""What the autoencoder is trained on: its trainer, and for increments a place that lasts from class to class."""

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from engram.engine.fixed_decoder import FixedDecoder
from engram.engine.training import Penalty, Trainer
from engram.nn.autoencoder import Autoencoder
from engram.nn.consolidation import Rule


def encoder_parameters(encoder: nn.Sequential) -> dict[str, Tensor]:
    """By their names in the network."""
    return {f"encoder.{name}": theta for name, theta in encoder.named_parameters()}


def trainer_of(
    network: Autoencoder,
    parameters: Mapping[str, Tensor],
    batch_size: int,
    generator: torch.Generator,
    rule: Rule | None,
    penalty: Penalty | None = None,
) -> Trainer:
    """A trainer of some of a network's parameters, tracing the importance `rule` measures."""
    # Only the encoder ever moves again, so only its importance is worth a trace.
    traced = encoder_parameters(network.encoder) if rule is not None else {}
    trace = {name: torch.zeros_like(theta) for name, theta in traced.items()}
    return Trainer(parameters, batch_size, generator, rule, penalty, trace, pure=True)


class Workbench:
    """What an increment works on: a network whose encoder is trained, and its trainer, filled anew for every task.

    On a GPU one `lasts` for all increments of a learner, so that the step captured for one class is replayed for the
    next: what is laid out is copied to where the step expects it. No sample stays on it. On a CPU every increment has
    its own, and what is only read is not copied.
    """

    def __init__(
        self,
        n_features: int,
        layers: Sequence[int],
        batch_size: int,
        rule: Rule | None,
        strength: float,
        device: torch.device,
    ) -> None:
        self.lasts = device.type == "cuda"
        self.network = Autoencoder(n_features, layers).to(device)
        self.fixed = FixedDecoder(self.network.decoder.requires_grad_(False))
        thetas = encoder_parameters(self.network.encoder)
        penalty = None
        if rule is not None:
            importance, anchor = ({name: torch.empty_like(theta) for name, theta in thetas.items()} for _ in range(2))
            penalty = Penalty(importance, anchor, strength)
        self.trainer = trainer_of(self.network, thetas, batch_size, torch.Generator(device), rule, penalty)

    @torch.no_grad()
    def lay_out(self, encoder: nn.Sequential, decoder: dict[str, Tensor], importance: dict[str, Tensor]) -> None:
        """The network as it was left, held by `importance` to where it is now."""
        self.network.encoder.load_state_dict(encoder.state_dict())
        self.network.decoder.load_state_dict(decoder, assign=not self.lasts)
        penalty, anchor = self.trainer.penalty, encoder_parameters(encoder)
        if penalty is not None and not self.lasts:
            penalty.importance, penalty.anchor = importance, anchor
        elif penalty is not None:
            for name, theta in anchor.items():
                penalty.importance[name].copy_(importance[name])
                penalty.anchor[name].copy_(theta)
        for trace in self.trainer.trace.values():
            trace.zero_()

    def encoder(self) -> nn.Sequential:
        """The trained encoder, to be kept."""
        return copy.deepcopy(self.network.encoder) if self.lasts else self.network.encoder
