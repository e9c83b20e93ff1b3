"""ICwGAN: cross-entropy and distillation, on new data and on chosen dreams of old classes, as many of every class.

Wu, Chen, Wang, Ye, Liu, Guo, Zhang, Fu: "Incremental Classifier Learning with Generative Adversarial Networks", 2018.
Theirs are the three parts: (a) a loss of cross-entropy and distillation, (b) old and new classes without unbalance,
(c) a GAN told the class that dreams up old classes, and representative samples selected among what it makes. No old
sample is kept. Ours, because we know no more than the abstract of theirs: features instead of pictures; LwF's
temperature, and the weight of the distillation; the balance is one of numbers, every old class has as many samples as a
new one; a dream is representative if the old network is sure of its class; the GAN is that of plain GAN replay.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from engram.learners.base import About
from engram.paper.adapter import Adapter
from engram.paper.learner import Task, require_numbers
from engram.peers import growing
from engram.peers.gan_replay import GANReplay, GANReplayConfig
from engram.peers.lwf import LwF, LwFConfig


@dataclass(frozen=True)
class ICwGANConfig(GANReplayConfig, LwFConfig):
    """Every setting; `replayed` is the most dreams the classifier learns from in a task, however many classes."""

    increment_epochs: int = 5
    increment_rate: float = 1e-4
    replayed: int = 100_000
    candidates: int = 4  # dreamt for each one chosen

    def __post_init__(self) -> None:
        super().__post_init__()
        require_numbers(self, positive=("candidates",))


class ICwGAN(GANReplay, LwF):
    """GAN replay's dreams, chosen and balanced, with LwF's loss."""

    method = "icwgan"
    about = About(
        title="ICwGAN",
        paper="Wu et al.: Incremental Classifier Learning with Generative Adversarial Networks, 2018",
        per_class="two embeddings, one read-out row (and one conditional GAN for all)",
        copies_network=True,
    )
    config_type: ClassVar[type[Any]] = ICwGANConfig
    config: ICwGANConfig

    def _replayed(self, task: Task) -> Tensor:
        """As many dreams of every old class as make it as large as the largest class of the task."""
        counts = torch.bincount(task.targets, minlength=task.classes)
        wanted = counts.max().clamp(max=max(1, self.config.replayed // task.known))
        missing = (wanted - counts[: task.known]).clamp(min=0)
        return torch.arange(task.known, device=self.device).repeat_interleave(missing)

    def _training_data(self, task: Task) -> tuple[Tensor, Tensor]:
        """The new data, and of `candidates` dreams for each that is needed those the old network is surest of."""
        if not task.known:
            return task.features, task.targets
        targets = self._replayed(task)
        dreamt = self._dream(targets.repeat_interleave(self.config.candidates))
        chosen = select_representative(self.tensors, dreamt, targets, self.config.candidates)
        return torch.cat([task.features, chosen]), torch.cat([task.targets, targets])


def select_representative(network: growing.Network, dreamt: Tensor, targets: Tensor, candidates: int) -> Tensor:
    """Of `candidates` dreams for every entry of `targets`, the one the network is surest to be of that class."""
    repeated = targets.repeat_interleave(candidates)
    log_p = growing.logits(network, dreamt).log_softmax(dim=1)
    sure = log_p.gather(1, repeated[:, None]).reshape(len(targets), candidates)
    best = sure.argmax(dim=1) + torch.arange(len(targets), device=targets.device) * candidates
    return dreamt[best]


class Method(Adapter):
    """The method, as it is registered."""

    kind = ICwGAN
