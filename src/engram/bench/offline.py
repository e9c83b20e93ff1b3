"""α_ideal: what an offline model, trained on all classes at once, reaches on the same features."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any, Self, cast

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, dropout, relu

from engram.bench.protocol import Samples
from engram.paper.device import threads_for
from engram.paper.engine import average, in_parts


@dataclass(frozen=True)
class Recipe:
    """How to train the offline network: standardised features, one hidden ReLU layer, AdamW on a cosine schedule."""

    hidden: int = 1024
    dropout: float = 0.5
    rate: float = 1e-3
    weight_decay: float = 1e-2
    epochs: int = 30
    batch_size: int = 256


@dataclass(frozen=True)
class Ideal:
    """The offline accuracy, the recipe that was chosen, and the validation accuracy of every candidate.

    The accuracy is the mean over initialisations, `values` one for each, `std` their standard deviation.
    """

    accuracy: float
    recipe: Recipe
    validation: dict[str, float]
    values: tuple[float, ...] = ()
    std: float = 0.0

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`."""
        return cls(**content | {"recipe": Recipe(**content["recipe"])})


# The candidates differ in how strongly they are held back, which is what features of different sizes disagree about.
RECIPES = (
    Recipe(),
    Recipe(dropout=0.2),
    Recipe(dropout=0.5, weight_decay=1e-1),
    Recipe(hidden=2048, dropout=0.7, rate=5e-4),
)


def offline_ideal(
    train: Samples, test: Samples, *, recipes: Sequence[Recipe] = RECIPES, seeds: Sequence[int] = (0, 1, 2)
) -> Ideal:
    """Choose a recipe on a tenth of the training data, train on all of it with every seed, measure on the test data."""
    validation: dict[str, float] = {}
    best = recipes[0]
    if len(recipes) > 1:
        rest, held = train_test_split(np.arange(len(train.y)), test_size=0.1, stratify=train.y, random_state=seeds[0])
        for recipe in recipes:
            validation[str(recipe)] = _accuracy(train.at(rest), train.at(held), recipe, seeds[0])
        best = max(recipes, key=lambda recipe: validation[str(recipe)])
    values = tuple(_accuracy(train, test, best, seed) for seed in seeds)
    return Ideal(fmean(values), best, validation, values, stdev(values) if len(values) > 1 else 0.0)


def _accuracy(train: Samples, test: Samples, recipe: Recipe, seed: int) -> float:
    names, targets = np.unique(train.y, return_inverse=True)
    network = train_network(train.X, torch.from_numpy(targets).to(train.X.device), recipe, seed)
    with torch.no_grad():
        answers = [network(part).argmax(dim=1) for part in test.X.split(4096)]
    predicted = torch.cat(answers).cpu().numpy()
    return float((names[predicted] == test.y).mean())


class OfflineNetwork(nn.Module):
    """From features to one number per class; `kept` is what dropout leaves of the hidden layer, as factors."""

    def __init__(self, X: Tensor, hidden: int, classes: int) -> None:
        super().__init__()
        self.mean, self.std = X.mean(dim=0), X.std(dim=0).clamp(min=1e-6)
        self.body, self.head = nn.Linear(X.shape[1], hidden), nn.Linear(hidden, classes)

    def forward(self, features: Tensor, kept: Tensor | float = 1.0) -> Tensor:
        """The answers, before the softmax."""
        return cast(Tensor, self.head(relu(self.body((features - self.mean) / self.std)) * kept))


def train_network(X: Tensor, y: Tensor, recipe: Recipe, seed: int) -> OfflineNetwork:
    """Train on all samples together; processes that `torchrun` started share every batch."""
    device = X.device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        network = OfflineNetwork(X, recipe.hidden, int(y.max()) + 1).to(device)
        thetas = list(network.parameters())
        optimizer = torch.optim.AdamW(thetas, recipe.rate, weight_decay=recipe.weight_decay)
        steps = recipe.epochs * -(-len(X) // recipe.batch_size)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        with threads_for(sum(theta.numel() for theta in thetas), device):
            for _ in range(recipe.epochs):
                for batch in torch.randperm(len(X), device=device).split(recipe.batch_size):
                    kept = dropout(X.new_ones(len(batch), recipe.hidden), recipe.dropout)
                    loss = cross_entropy(in_parts(network, X[batch], kept), y[batch])
                    for theta, gradient in zip(thetas, average(torch.autograd.grad(loss, thetas)), strict=True):
                        theta.grad = gradient
                    optimizer.step()
                    schedule.step()
    return network
