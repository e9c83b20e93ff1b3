"""FearNet: a recent memory of samples (HC), a network that dreams of old ones (mPFC), and a judge between them (BLA).

Kemker, Kanan: "FearNet: Brain-Inspired Model for Incremental Learning", 2018.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits as binary_cross_entropy
from torch.nn.functional import cross_entropy, dropout, elu, linear, normalize, relu

from engram.learners.base import About, has_row_per_class, require
from engram.paper import layout, statistics
from engram.paper.adapter import Adapter
from engram.paper.engine import Loss, Schedule, Trainer
from engram.paper.learner import Task, require_numbers
from engram.paper.tensors import Layout, TensorLearner, with_rows, with_samples
from engram.peers import growing
from engram.peers.neighbours import nearest_per_class

Network = Mapping[str, Tensor]


@dataclass(frozen=True)
class FearNetConfig:
    """Every setting; layers, batch size, dropout, rates, epochs of sleep and BLA, and `sleep_every` are the paper's."""

    layers: tuple[int, int] = (350, 300)
    dropout: float = 0.25
    batch_size: int = 200
    lambda_input: float = 30.0
    lambda_hidden: float = 0.1
    base_epochs: int = 40
    base_rate: float = 2e-3
    sleep_every: int = 10  # classes
    sleep_epochs: int = 60
    sleep_rate: float = 2e-3
    # "all" as in the paper; "encoder": all but the decoder; "head": the head alone, so that no class's codes drift and
    # nothing is learned from dreams of dreams.
    sleep_trains: Literal["all", "encoder", "head"] = "head"
    dreams: int = 10  # drawn of a class for every sample it was learned from
    spread: float = 1.5  # how much wider dreams are than the codes of training samples, which lie close together
    decay: float = 0.5  # of the rates, four times in a training
    bla_width: int = 256
    bla_epochs: int = 20
    bla_rate: float = 2e-3
    shrinkage: float = 0.1  # of the covariances
    bla_dreams: int = 20  # of every class
    bla_prior: float = 0.5  # 0: HC and mPFC weigh the same to the BLA; 1: all classes do
    closeness: float = 1e-3  # ε of the HC
    sharpness: float = 10.0  # the power of its 1/(ε + distance)

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        require(self, len(self.layers) == 2 and min(self.layers) > 0, "layers", "two sizes above 0")
        require(self, self.sleep_trains in ("all", "encoder", "head"), "sleep_trains", "'all', 'encoder' or 'head'")
        require(self, self.bla_prior >= 0, "bla_prior", "a number of at least 0")
        require_numbers(self, ("batch_size", "sleep_every", "dreams", "spread", "closeness", "sharpness"))
        require_numbers(self, ("bla_width", "bla_dreams"), fractions=("dropout", "shrinkage"))


class FearNet(TensorLearner):
    """New classes go to the HC; every `sleep_every` classes a sleep moves them to the mPFC and empties the HC."""

    method = "fearnet"
    about = About(
        title="FearNet",
        paper="Kemker, Kanan: FearNet: Brain-Inspired Model for Incremental Learning, 2018",
        per_class="mean and full covariance of the code, one read-out row",
        keeps_samples=True,
        given="the samples of up to 10 recent classes, until it sleeps",
    )
    config_type = FearNetConfig
    config: FearNetConfig
    only_for_learning = ("network.decoder.", "classes.means", "classes.covariances")

    @classmethod
    def passes(cls, config: FearNetConfig, first: bool) -> int:
        """How often a task's data is gone through; sleeps go through dreams."""
        return config.base_epochs if first else config.bla_epochs

    def sample_growth(self, classes: int) -> float:
        """A sleep empties the HC: what it holds does not grow with the classes."""
        return 1.0

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        if not task.known:
            network = _add_classes(self._create(task.features.shape[1]), task.classes)
            x = unit(task.features)
            network = self._train_mpfc(network, x, task.targets, "base", task)
            nothing = {"samples.features": task.features[:0], "samples.targets": task.targets[:0]}
            return network | _measure({}, encode(network, x), task.targets, task.classes) | nothing
        tensors = _add_classes(self.tensors, task.classes)
        tensors |= with_samples(tensors, task.features, task.targets)
        if len(tensors["samples.targets"].unique()) >= self.config.sleep_every:
            return self._sleep(tensors, task)
        return tensors | self._train_bla(tensors, task)

    # --- mPFC: an autoencoder with a softmax on its code ------------------------------------------------------------

    def _sizes(self, n_features: int) -> dict[str, tuple[int, int]]:
        wide, code = self.config.layers
        return {
            "network.encoder.0": (n_features, wide),
            "network.encoder.1": (wide, code),
            "network.decoder.0": (code, wide),
            "network.decoder.1": (wide, n_features),
            "network.bla.0": (code, self.config.bla_width),
            "network.bla.1": (self.config.bla_width, 1),
        }

    def _layout(self, classes: int, features: int) -> Layout:
        code = self.config.layers[1]
        expected = layout.linear("network.head", code, classes) | layout.samples(classes, features)
        for name, (inputs, outputs) in self._sizes(features).items():
            expected |= layout.linear(name, inputs, outputs)
        return expected | {
            "classes.means": layout.floats(classes, code),
            "classes.counts": layout.whole(classes),
            "classes.covariances": layout.floats(classes, code, code),
        }

    def _create(self, n_features: int) -> dict[str, Tensor]:
        code = self.config.layers[1]
        return growing.create_layers(self._sizes(n_features), self.task_generator("cpu"), self.device) | {
            "network.head.weight": torch.zeros(0, code, device=self.device),
            "network.head.bias": torch.zeros(0, device=self.device),
        }

    def _train_mpfc(self, network: Network, x: Tensor, targets: Tensor, phase: str, task: Task) -> dict[str, Tensor]:
        """Cross-entropy + Σ_j λ_j ‖h_enc,j - h_dec,j‖², j the input and the first hidden layer."""
        config = self.config
        still = (".bla.",) if phase == "base" or config.sleep_trains == "all" else (".bla.", ".decoder.")
        trained = {
            name: tensor.clone()
            for name, tensor in network.items()
            if name.startswith("network.") and not any(part in name for part in still)
        }
        whole = {**network, **trained}

        def loss(x: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
            first = elu(_layer(whole, "encoder.0", dropout(x, config.dropout)))
            code = elu(_layer(whole, "encoder.1", first))
            mirrored = elu(_layer(whole, "decoder.0", code))
            answers = _layer(whole, "head", dropout(code, config.dropout))
            return (
                cross_entropy(answers, y)
                + config.lambda_input * (_layer(whole, "decoder.1", mirrored) - x).square().mean()
                + config.lambda_hidden * (mirrored - first).square().mean()
            )

        self._fit(phase, trained, loss, x, targets, task)
        return {**network, **trained}

    def _dream(self, tensors: Network, counts: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Draw codes from every class's Gaussian, `counts` or `dreams` for every sample, and say whose they are."""
        counts = tensors["classes.counts"] * self.config.dreams if counts is None else counts
        covariances = statistics.shrunk(tensors["classes.covariances"], self.config.shrinkage) * self.config.spread
        return draw(tensors["classes.means"], covariances, counts)

    def _sleep(self, tensors: dict[str, Tensor], task: Task) -> dict[str, Tensor]:
        """Take the HC's classes into the mPFC beside what it dreams of the others, then empty the HC."""
        x, targets = unit(tensors["samples.features"]), tensors["samples.targets"]
        if self.config.sleep_trains == "head":
            learned = _measure(tensors, encode(tensors, x), targets, task.classes)
            network = tensors | self._train_head(*self._dream(learned), task)
        else:
            counts = tensors["classes.counts"]
            codes, whose = self._dream(tensors)
            x, targets = torch.cat([x, decode(tensors, codes)]), torch.cat([targets, whose])
            network = self._train_mpfc(tensors, x, targets, "sleep", task)
            learned = _measure({}, encode(network, x), targets, task.classes)
            # Dreams are no new samples, and spread wider than samples do.
            learned["classes.counts"] = counts + torch.bincount(tensors["samples.targets"], minlength=task.classes)
            learned["classes.covariances"][counts > 0] /= self.config.spread
        return network | learned | {name: tensors[name][:0] for name in ("samples.features", "samples.targets")}

    def _train_head(self, codes: Tensor, targets: Tensor, task: Task) -> dict[str, Tensor]:
        """A new softmax, on dreams of every class: it would learn to tell dreams from samples if it saw both."""
        trained = {
            "network.head.weight": torch.zeros(task.classes, codes.shape[1], device=self.device),
            "network.head.bias": torch.zeros(task.classes, device=self.device),
        }

        def loss(x: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
            return cross_entropy(_layer(trained, "head", dropout(x, self.config.dropout)), y)

        self._fit("sleep", trained, loss, codes, targets, task)
        return trained

    # --- BLA: is this code one of the HC's? --------------------------------------------------------------------------

    def _train_bla(self, tensors: Network, task: Task) -> dict[str, Tensor]:
        """Train a new BLA to tell the codes of the HC's samples from codes the mPFC dreams."""
        config, consolidated = self.config, tensors["classes.counts"] > 0
        recent = encode(tensors, unit(tensors["samples.features"]))
        dreams, _ = self._dream(tensors, consolidated * config.bla_dreams)
        codes = torch.cat([recent, dreams])
        is_recent = torch.cat([torch.ones(len(recent)), torch.zeros(len(dreams))]).long().to(self.device)
        # Without a class in the mPFC, all of them forgotten, there is nothing to tell apart, and the weight is 0.
        prior = (len(tensors["samples.targets"].unique()) / max(1, int(consolidated.sum()))) ** config.bla_prior
        weight = torch.tensor(prior * len(dreams) / len(recent), device=self.device)
        created = self._create(task.features.shape[1])
        trained = {name: tensor for name, tensor in created.items() if ".bla." in name}

        def loss(x: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
            return binary_cross_entropy(judge(trained, x, config.dropout), y.float(), pos_weight=weight)

        self._fit("bla", trained, loss, codes, is_recent, task)
        return trained

    def _fit(self, phase: str, trained: dict[str, Tensor], loss: Loss, x: Tensor, y: Tensor, task: Task) -> None:
        config = self.config
        epochs, rate = getattr(config, f"{phase}_epochs"), getattr(config, f"{phase}_rate")
        schedule = Schedule(epochs, rate, config.decay, max(1, math.ceil(epochs / 4)))
        trainer = Trainer(trained, config.batch_size, self.task_generator(self.device), progress=task.progress)
        trainer.run(phase, loss, x, y, schedule, False)
        trained |= {name: theta.detach() for name, theta in trained.items()}

    # --- answering ----------------------------------------------------------------------------------------------------

    def _scores(self, features: Tensor) -> Tensor:
        """The HC's answer weighed with A, the BLA's opinion, against the mPFC's weighed with 1 - A.

        The class with the largest product is the one the paper's rule picks: the HC's best if A/(1 - A) · max P_HC is
        above max P_mPFC, else the mPFC's.
        """
        tensors, x = self.tensors, unit(features)
        code = encode(tensors, x)
        unknown = tensors["classes.counts"] == 0
        slow = _layer(tensors, "head", code).masked_fill(unknown, -torch.inf).softmax(dim=1)
        if not len(tensors["samples.targets"]):
            return slow
        near = nearest_per_class(x, unit(tensors["samples.features"]), tensors["samples.targets"], len(self.labels))
        recent = (-self.config.sharpness * (self.config.closeness + near).log()).softmax(dim=1)
        if unknown.all():  # the mPFC's classes have been forgotten
            return recent
        a = judge(tensors, code).sigmoid()[:, None]
        return torch.maximum(a * recent, (1 - a) * slow)

    def counts(self) -> Tensor | None:
        """How many samples each class was learned from, those in the HC among them."""
        consolidated = super().counts()
        if consolidated is None:
            return None
        return consolidated + torch.bincount(self.tensors["samples.targets"], minlength=len(consolidated))

    def class_vectors(self) -> Tensor | None:
        """The mean codes, those of the HC's samples too."""
        if "classes.means" not in self.tensors:
            return None
        codes = encode(self.tensors, unit(self.tensors["samples.features"]))
        measured = _measure(self.tensors, codes, self.tensors["samples.targets"], len(self.labels))
        return measured["classes.means"]


def unit(features: Tensor) -> Tensor:
    """Directions, of a length that makes the mean square of a feature 1."""
    return normalize(features, dim=1) * math.sqrt(features.shape[1])


def encode(network: Network, x: Tensor) -> Tensor:
    """The code."""
    return elu(_layer(network, "encoder.1", elu(_layer(network, "encoder.0", x))))


def decode(network: Network, codes: Tensor) -> Tensor:
    """The features a code stands for."""
    return _layer(network, "decoder.1", elu(_layer(network, "decoder.0", codes)))


def judge(network: Network, codes: Tensor, dropped: float = 0.0) -> Tensor:
    """The BLA's log-odds that a code belongs to the HC."""
    active = relu(_layer(network, "bla.0", codes))
    return _layer(network, "bla.1", dropout(active, dropped) if dropped else active).squeeze(1)


def draw(means: Tensor, covariances: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Draw `counts` codes from every class's Gaussian, and say whose they are."""
    factors = torch.linalg.cholesky(covariances.double()).float()
    noise = torch.randn(int(counts.sum()), means.shape[1], device=means.device).split(counts.tolist())
    codes = [mean + z @ factor.T for mean, factor, z in zip(means, factors, noise, strict=True)]
    return torch.cat(codes), torch.arange(len(counts), device=counts.device).repeat_interleave(counts)


def _layer(network: Network, name: str, x: Tensor) -> Tensor:
    return linear(x, network[f"network.{name}.weight"], network[f"network.{name}.bias"])


def _add_classes(tensors: Network, classes: int) -> dict[str, Tensor]:
    """Zero rows for new classes; a class whose count is zero is not in the mPFC yet."""
    return {n: with_rows(t, classes) if has_row_per_class(n) else t for n, t in tensors.items()}


def _measure(had: Network, codes: Tensor, targets: Tensor, classes: int) -> dict[str, Tensor]:
    """Add codes to the count, mean and covariance that are kept of every class."""
    counts, means = had.get("classes.counts"), had.get("classes.means")
    now = statistics.update(counts, means, codes, targets, classes)
    scatter = torch.stack([own.T @ own for own in _by_class(now.centred, targets, classes)])
    if counts is not None:
        scatter += now.between[:, :, None] * now.between[:, None, :]
        scatter += had["classes.covariances"] * (counts - 1).clamp(min=0)[:, None, None]
    covariances = scatter / (now.counts - 1).clamp(min=1)[:, None, None]
    return {"classes.means": now.means, "classes.counts": now.counts, "classes.covariances": covariances}


def _by_class(rows: Tensor, targets: Tensor, classes: int) -> tuple[Tensor, ...]:
    order = targets.argsort(stable=True)
    return torch.split(rows[order], torch.bincount(targets, minlength=classes).tolist())


class Method(Adapter):
    """The method, as it is registered."""

    kind = FearNet
