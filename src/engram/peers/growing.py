"""A classifier whose last layer grows: standardised features, one hidden ReLU layer, one row of the head per class.

A network here is a table of tensors under the names they have in a learner's state, and the functions below read it:
so it is easy to keep an old one beside a new one, to hold a part of it still, and to save it.
"""

from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import dropout as drop
from torch.nn.functional import linear, relu

from engram.learners.layout import Layout
from engram.paper import layout

BODY, BODY_BIAS, HEAD, HEAD_BIAS = (
    f"network.{name}" for name in ("body.weight", "body.bias", "head.weight", "head.bias")
)
MEAN, SCALE = "network.input.mean", "network.input.scale"

Network = Mapping[str, Tensor]


def create(features: Tensor, width: int, generator: torch.Generator) -> dict[str, Tensor]:
    """A network without classes for features like these, whose mean and spread it remembers."""
    spread = features.std(dim=0, correction=0)
    return {
        MEAN: features.mean(dim=0),
        SCALE: 1 / torch.where(spread > 1e-6, spread, torch.ones_like(spread)),
        **create_layers({"network.body": (features.shape[1], width)}, generator, features.device),
        HEAD: torch.zeros(0, width, device=features.device),
        HEAD_BIAS: torch.zeros(0, device=features.device),
    }


def create_layers(
    sizes: Mapping[str, tuple[int, int]], generator: torch.Generator, device: torch.device
) -> dict[str, Tensor]:
    """Linear layers by name, of (inputs, outputs) each; weights are random, biases 0."""
    layers = {}
    for name, (inputs, outputs) in sizes.items():
        weight = torch.empty(outputs, inputs).uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)
        layers[f"{name}.weight"], layers[f"{name}.bias"] = weight.to(device), torch.zeros(outputs, device=device)
    return layers


def kept(classes: int, features: int, width: int) -> Layout:
    """What its tensors have to be."""
    return {
        MEAN: layout.floats(features),
        SCALE: layout.floats(features),
        **layout.linear("network.body", features, width),
        **layout.linear("network.head", width, classes),
    }


def grow(network: Network, classes: int, generator: torch.Generator) -> dict[str, Tensor]:
    """A copy, free to be trained, with a head of `classes` rows; new rows start small and random."""
    width, more = network[HEAD].shape[1], classes - len(network[HEAD])
    rows = torch.empty(more, width).uniform_(-(width**-0.5), width**-0.5, generator=generator)
    return {
        MEAN: network[MEAN],
        SCALE: network[SCALE],
        BODY: network[BODY].clone(),
        BODY_BIAS: network[BODY_BIAS].clone(),
        HEAD: torch.cat([network[HEAD], rows.to(network[HEAD].device)]),
        HEAD_BIAS: torch.cat([network[HEAD_BIAS], network[HEAD_BIAS].new_zeros(more)]),
    }


def parameters(network: Network) -> dict[str, Tensor]:
    """What is trained: all but the mean and spread of the features."""
    return {name: network[name] for name in (BODY, BODY_BIAS, HEAD, HEAD_BIAS)}


def standardise(network: Network, features: Tensor) -> Tensor:
    """Subtract the mean of the features the network was made for, divide by their spread."""
    return (features - network[MEAN]) * network[SCALE]


def draw_kept(network: Network, samples: int, dropout: float) -> Tensor:
    """What dropout leaves of the hidden layer's activity for each sample, as factors."""
    return drop(network[BODY].new_ones(samples, len(network[BODY])), dropout)


def hidden(network: Network, features: Tensor, kept: Tensor | None = None) -> Tensor:
    """The hidden layer's activity; while training, what is `kept` of it."""
    active = relu(linear(standardise(network, features), network[BODY], network[BODY_BIAS]))
    return active if kept is None else active * kept


def logits(network: Network, features: Tensor, kept: Tensor | None = None) -> Tensor:
    """One number per class."""
    return linear(hidden(network, features, kept), network[HEAD], network[HEAD_BIAS])
