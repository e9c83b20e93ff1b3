"""Plain GAN replay: a conditional GAN dreams up features of old classes, and the classifier learns from them too.

The idea in its simplest form, and no paper's system; `icwgan` is one. The GAN is a Wasserstein GAN with a gradient
penalty that is told the class (Gulrajani et al.: "Improved Training of Wasserstein GANs", 2017).
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import leaky_relu, linear

from engram.learners.base import About
from engram.paper import layout
from engram.paper.adapter import Adapter
from engram.paper.engine import Schedule, Trainer
from engram.paper.learner import Task, require_numbers
from engram.paper.tensors import Layout
from engram.peers import growing
from engram.peers.softmax import SoftmaxConfig, SoftmaxLearner


@dataclass(frozen=True)
class GANReplayConfig(SoftmaxConfig):
    """Every setting."""

    increment_epochs: int = 10
    increment_rate: float = 3e-4
    replayed: int = 2000  # pseudo-samples of old classes for every task, as many as iCaRL has exemplars
    noise: int = 64
    gan_width: int = 512
    gan_base_epochs: int = 60
    gan_increment_epochs: int = 20
    gan_rate: float = 2e-4
    lambda_penalty: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_numbers(self, positive=("replayed", "noise", "gan_width"))


class GANReplay(SoftmaxLearner):
    """Kept beside the classifier: generator and critic, each with one embedding per class."""

    method = "gan-replay"
    about = About(
        title="GAN replay",
        paper="no paper's system; its GAN: Gulrajani et al.: Improved Training of Wasserstein GANs, 2017",
        per_class="two embeddings, one read-out row (and one conditional GAN for all)",
        copies_network=True,
    )
    config_type = GANReplayConfig
    config: GANReplayConfig
    only_for_learning = ("consolidation.", "classes.")

    def _training_data(self, task: Task) -> tuple[Tensor, Tensor]:
        """The new data, and the old generator's idea of the old classes."""
        if not task.known:
            return task.features, task.targets
        targets = self._replayed(task)
        return torch.cat([task.features, self._dream(targets)]), torch.cat([task.targets, targets])

    def _replayed(self, task: Task) -> Tensor:
        """The old classes to dream of, one entry for every dream."""
        return torch.arange(self.config.replayed, device=self.device) % task.known

    def _dream(self, targets: Tensor) -> Tensor:
        """Features of the classes asked for; every call of a task dreams the same."""
        generator = self.task_generator(self.device)
        z = torch.randn(len(targets), self.config.noise, generator=generator, device=self.device)
        with torch.no_grad():
            return generate(self.tensors, z, targets) / self.tensors[growing.SCALE] + self.tensors[growing.MEAN]

    def _keep(self, task: Task, network: growing.Network) -> dict[str, Tensor]:
        """Train the GAN on the new data and its dreams: both players' losses at once, each on its own part."""
        config = self.config
        # Every dream, even where the classifier learns from chosen ones: a GAN that learned from its best dreams would
        # narrow from task to task.
        features, targets = GANReplay._training_data(self, task)
        gan = self._grow_gan(task)

        def loss(x: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
            frozen = {name: tensor.detach() for name, tensor in gan.items()}
            fake = generate(gan, torch.randn(len(x), config.noise, device=x.device), y)
            made = fake.detach()
            mixed = (made + torch.rand(len(x), 1, device=x.device) * (x - made)).requires_grad_(True)
            (slope,) = torch.autograd.grad(criticise(gan, mixed, y).sum(), mixed, create_graph=True)
            penalty = (slope.square().sum(dim=1).add(1e-12).sqrt() - 1).square().mean()
            critic = criticise(gan, made, y).mean() - criticise(gan, x, y).mean() + config.lambda_penalty * penalty
            return critic - criticise(frozen, fake, y).mean()

        phase, epochs = ("increment", config.gan_increment_epochs) if task.known else ("base", config.gan_base_epochs)
        trainer = Trainer(gan, config.batch_size, self.task_generator(self.device), progress=task.progress)
        data = growing.standardise(network, features)
        trainer.run(f"{phase} GAN", loss, data, targets, Schedule(epochs, config.gan_rate), False)
        return {name: theta.detach() for name, theta in gan.items()}

    def _grow_gan(self, task: Task) -> dict[str, Tensor]:
        """A copy of the GAN, free to be trained, with embeddings for the new classes."""
        config, generator = self.config, self.task_generator("cpu")
        gan = growing.create_layers(self._sizes(task.features.shape[1]), generator, self.device)
        for name in ("classes.generator", "classes.critic"):
            embeddings = torch.randn(task.classes, config.gan_width, generator=generator) * 0.1
            gan[name] = embeddings.to(self.device)
        if task.known:
            for name, tensor in gan.items():
                tensor[: len(self.tensors[name])] = self.tensors[name]
        return gan

    def _sizes(self, d: int) -> dict[str, tuple[int, int]]:
        config = self.config
        return {
            "consolidation.generator.0": (config.noise, config.gan_width),
            "consolidation.generator.1": (config.gan_width, d),
            "consolidation.critic.0": (d, config.gan_width),
            "consolidation.critic.1": (config.gan_width, 1),
        }

    def _layout(self, classes: int, features: int) -> Layout:
        expected = super()._layout(classes, features)
        for name, (inputs, outputs) in self._sizes(features).items():
            expected |= layout.linear(name, inputs, outputs)
        embeddings = layout.floats(classes, self.config.gan_width)
        return expected | dict.fromkeys(("classes.generator", "classes.critic"), embeddings)


def generate(gan: growing.Network, z: Tensor, targets: Tensor) -> Tensor:
    """Standardised features of the classes asked for."""
    shown = linear(z, gan["consolidation.generator.0.weight"], gan["consolidation.generator.0.bias"])
    active = leaky_relu(shown + gan["classes.generator"][targets], 0.2)
    return linear(active, gan["consolidation.generator.1.weight"], gan["consolidation.generator.1.bias"])


def criticise(gan: growing.Network, x: Tensor, targets: Tensor) -> Tensor:
    """How real it looks, as a sample of its class: a judgement of x, and how its activity fits the class."""
    active = leaky_relu(linear(x, gan["consolidation.critic.0.weight"], gan["consolidation.critic.0.bias"]), 0.2)
    plain = linear(active, gan["consolidation.critic.1.weight"], gan["consolidation.critic.1.bias"]).squeeze(1)
    return plain + (active * gan["classes.critic"][targets]).sum(dim=1)


class Method(Adapter):
    """The method, as it is registered."""

    kind = GANReplay
