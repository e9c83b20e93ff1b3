"""GeppNet: a self-organising map and a linear read-out; the map only moves where the read-out is unsure or wrong.

Gepperth, Karaoguz: "A Bio-Inspired Incremental Learning Architecture for Applied Perceptual Problems", 2016. All
earlier data is kept and replayed with every task. Rates, radii, threshold and sharpness are ours.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, linear, normalize

from engram.learners.base import About, require
from engram.paper import layout
from engram.paper.adapter import Adapter
from engram.paper.engine import Schedule, Trainer
from engram.paper.learner import Task, require_numbers
from engram.paper.tensors import Layout, TensorLearner, with_rows, with_samples
from engram.peers.neighbours import squared_distances
from engram.peers.som import adapt, grid_distances


@dataclass(frozen=True)
class GeppNetConfig:
    """Every setting; the map's size is that of the published comparison."""

    side: int = 23
    sharpness: float = 3.0
    unsure: float = 0.5  # the map learns from samples whose two best answers differ by less, and from wrong ones
    map_epochs: int = 20
    map_rate: float = 0.3
    radius: float = 4.0  # at first; it shrinks to `last_radius`, which is that of the increments
    last_radius: float = 0.5
    batch_size: int = 256
    base_epochs: int = 30
    base_rate: float = 1e-2
    increment_map_epochs: int = 1
    increment_epochs: int = 10
    increment_rate: float = 3e-2
    samples: int | None = None  # kept in all, as many of every class; None: every one

    def __post_init__(self) -> None:
        require_numbers(self, positive=("side", "sharpness", "radius", "last_radius", "batch_size"))
        require(self, self.map_rate <= 1, "map_rate", "at most 1")
        require(self, self.samples is None or self.samples > 0, "samples", "a number above 0, or None")


class GeppNet(TensorLearner):
    """The read-out sees how near a sample is to every prototype, relative to the nearest."""

    method = "geppnet"
    about = About(
        title="GeppNet",
        paper="Gepperth, Karaoguz: A Bio-Inspired Incremental Learning Architecture, 2016",
        per_class="every training feature vector, one read-out row",
        keeps_samples=True,
        given="all old samples, replayed with every task",
    )
    config_type = GeppNetConfig
    config: GeppNetConfig
    only_for_learning = ("samples.",)

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        config, had = self.config, self.tensors
        kept = with_samples(had, task.features, task.targets, config.samples, self.task_generator("cpu"))
        # With room for few samples, the base still sees all of its own; an increment sees as many of every class.
        x, y = (kept["samples.features"], kept["samples.targets"]) if task.known else (task.features, task.targets)
        x = normalize(x, dim=1)
        if task.known:
            network = {name: tensor for name, tensor in had.items() if name.startswith("network.")}
            network |= {n: with_rows(network[n], task.classes) for n in ("network.head.weight", "network.head.bias")}
            epochs = config.increment_map_epochs
        else:
            noise = torch.randn(config.side**2, x.shape[1], generator=self.task_generator("cpu")).to(self.device)
            spread = x.std(dim=0, correction=0)
            network = {
                "network.map": x.mean(dim=0) + spread * noise,
                "network.head.weight": torch.zeros(task.classes, config.side**2, device=self.device),
                "network.head.bias": torch.zeros(task.classes, device=self.device),
            }
            epochs = config.map_epochs
        generator, grid = self.task_generator(self.device), grid_distances(config.side, self.device)
        for epoch in range(epochs):
            through = (epoch + 1) / epochs if not task.known else 1.0
            radius = config.radius * (config.last_radius / config.radius) ** through
            for batch in torch.randperm(len(x), generator=generator, device=self.device).split(config.batch_size):
                weights = self._novelty(network, x[batch], y[batch]) if task.known else torch.ones_like(y[batch])
                network["network.map"] = adapt(
                    network["network.map"], x[batch], weights.float(), grid, radius, config.map_rate
                )
        if not task.known:
            nearest = squared_distances(x, network["network.map"]).amin(dim=1).mean()
            network["network.scale"] = nearest.clamp(min=1e-6).reshape(1)
        return network | self._train_read_out(network, x, y, task) | kept

    def _layout(self, classes: int, features: int) -> Layout:
        cells = self.config.side**2
        network = {"network.map": layout.floats(cells, features), "network.scale": layout.floats(1)}
        return network | layout.linear("network.head", cells, classes) | layout.samples(classes, features)

    def _novelty(self, network: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        """1 where the read-out is wrong or unsure: there the map has something to learn."""
        p = self._answers(network, x).softmax(dim=1)
        best, second = p.topk(2, dim=1).values.unbind(dim=1) if p.shape[1] > 1 else (p[:, 0], 1 - p[:, 0])
        return (best - second < self.config.unsure) | (p.argmax(dim=1) != y)

    def _train_read_out(self, network: dict[str, Tensor], x: Tensor, y: Tensor, task: Task) -> dict[str, Tensor]:
        config = self.config
        trained = {name: network[name].clone() for name in ("network.head.weight", "network.head.bias")}

        def loss(a: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
            return cross_entropy(linear(a, trained["network.head.weight"], trained["network.head.bias"]), y)

        phase, epochs, rate = "base", config.base_epochs, config.base_rate
        if task.known:
            phase, epochs, rate = "increment", config.increment_epochs, config.increment_rate
        trainer = Trainer(trained, config.batch_size, self.task_generator(self.device), progress=task.progress)
        schedule = Schedule(epochs, rate, 0.5, max(1, math.ceil(epochs / 4)))
        trainer.run(phase, loss, self._activity(network, x), y, schedule, False)
        return {name: theta.detach() for name, theta in trained.items()}

    def _activity(self, network: dict[str, Tensor], x: Tensor) -> Tensor:
        """How near a sample is to every prototype: a softmax, scaled up so that a large map's is not tiny."""
        scaled = squared_distances(x, network["network.map"]) / network["network.scale"]
        return (-self.config.sharpness * scaled).softmax(dim=1) * math.sqrt(self.config.side)

    def _answers(self, network: dict[str, Tensor], x: Tensor) -> Tensor:
        return linear(self._activity(network, x), network["network.head.weight"], network["network.head.bias"])

    def _scores(self, features: Tensor) -> Tensor:
        return self._answers(self.tensors, normalize(features, dim=1))


class Method(Adapter):
    """The method, as it is registered."""

    kind = GeppNet
