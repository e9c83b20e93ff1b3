"""iCaRL: exemplars chosen by herding, distillation, and the nearest mean of exemplars.

Rebuffi, Kolesnikov, Sperl, Lampert: "iCaRL: Incremental Classifier and Representation Learning", 2017. On features:
what the paper calls φ is here the hidden layer. Algorithm numbers are the paper's.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, normalize, one_hot

from engram.learners.base import About
from engram.paper.adapter import Adapter
from engram.paper.distance import similarity
from engram.paper.engine import Loss
from engram.paper.layout import samples
from engram.paper.learner import Task, require_numbers
from engram.paper.tensors import Layout
from engram.peers import growing
from engram.peers.softmax import SoftmaxConfig, SoftmaxLearner


@dataclass(frozen=True)
class ICaRLConfig(SoftmaxConfig):
    """Every setting; 2,000 exemplars in all, as the paper's K for 100 classes."""

    increment_epochs: int = 5
    exemplars: int = 2000

    def __post_init__(self) -> None:
        super().__post_init__()
        require_numbers(self, positive=("exemplars",))


class ICaRL(SoftmaxLearner):
    """Exemplars are kept class by class, the most telling first, so that to shrink a set is to truncate it."""

    method = "icarl"
    about = About(
        title="iCaRL",
        paper="Rebuffi, Kolesnikov, Sperl, Lampert: iCaRL, 2017",
        per_class="exemplars, 2,000 in all, and one read-out row",
        keeps_samples=True,
        given="2,000 old samples",
        copies_network=True,
    )
    config_type = ICaRLConfig
    config: ICaRLConfig

    def sample_growth(self, classes: int) -> float:
        """The published table gives iCaRL 20 exemplars for each class: 2,000 of 100, 20,000 of 1,000."""
        return 20 * classes / len(self.tensors["samples.targets"])

    def _training_data(self, task: Task) -> tuple[Tensor, Tensor]:
        """Algorithm 3: the new data and the exemplars of all classes before."""
        if not task.known:
            return task.features, task.targets
        features = torch.cat([task.features, self.tensors["samples.features"]])
        return features, torch.cat([task.targets, self.tensors["samples.targets"]])

    def _loss(self, network: growing.Network, task: Task) -> Loss:
        """Algorithm 3: sigmoid outputs, towards the label for new classes, the old network's answer for old ones."""
        old, known, classes, dropout = self.tensors, task.known, task.classes, self.config.dropout

        def loss(x: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
            wanted = one_hot(y, classes).float()
            if known:
                with torch.no_grad():
                    wanted[:, :known] = growing.logits(old, x).sigmoid()
            answers = growing.logits(network, x, growing.draw_kept(network, len(x), dropout))
            return binary_cross_entropy_with_logits(answers, wanted, reduction="none").sum(dim=1).mean()

        return loss

    def _keep(self, task: Task, network: growing.Network) -> dict[str, Tensor]:
        """Algorithms 4 and 5: herd the new classes' exemplars, truncate the old ones'."""
        most = max(1, self.config.exemplars // task.classes)
        features, targets = self._training_data(task)
        chosen = []
        for row in range(task.classes):
            own = torch.nonzero(targets == row).flatten()
            if (task.targets == row).any():
                own = own[herd(normalize(growing.hidden(network, features[own]), dim=1), most)]
            chosen.append(own[:most])
        kept = torch.cat(chosen)
        return {"samples.features": features[kept], "samples.targets": targets[kept]}

    def _layout(self, classes: int, features: int) -> Layout:
        return super()._layout(classes, features) | samples(classes, features)

    def _scores(self, features: Tensor) -> Tensor:
        """Algorithm 1: the nearest mean of normalised exemplars."""
        exemplars, targets = self.tensors["samples.features"], self.tensors["samples.targets"]
        codes = normalize(growing.hidden(self.tensors, exemplars), dim=1)
        means = torch.zeros(len(self.labels), codes.shape[1], device=codes.device).index_add_(0, targets, codes)
        return similarity(growing.hidden(self.tensors, features), means)


def herd(codes: Tensor, most: int) -> Tensor:
    """Algorithm 4: positions of samples, each chosen so that the mean of those so far is nearest to the mean of all."""
    mean, total = codes.mean(dim=0), torch.zeros_like(codes[0])
    free = torch.zeros(len(codes), device=codes.device)
    chosen = []
    for k in range(1, min(most, len(codes)) + 1):
        gaps = (mean - (total + codes) / k).square().sum(dim=1) + free
        best = gaps.argmin()
        chosen.append(best)
        total = total + codes[best]
        free[best] = torch.inf
    return torch.stack(chosen)


class Method(Adapter):
    """The method, as it is registered."""

    kind = ICaRL
