"""The paper's learner: an autoencoder over frozen features, consolidated, with one mean code per class.

Choi, Lee, Choi: "Autoencoder-Based Incremental Class Learning without Retraining on Old Data", 2019. Equation numbers
are the paper's; docs/method.md restates it.
"""

import copy
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from engram.learners.base import require
from engram.learners.codes import DECODER, ENCODER, IMPORTANCE, TEMPERATURE, Codes, codes_layout
from engram.paper import distance, losses, statistics
from engram.paper.adapter import Adapter
from engram.paper.autoencoder import Autoencoder, encode
from engram.paper.consolidation import add_importance, make_rule
from engram.paper.engine import Engine, Loss, Network, Penalty, Schedule, engine_for
from engram.paper.learner import Task, require_numbers
from engram.paper.outliers import inliers
from engram.paper.packing import below, pack_all, unpack_all
from engram.paper.tensors import Layout, TensorLearner


@dataclass(frozen=True)
class PrototypesConfig:
    """Every setting of the learner. The λ are the paper's; epochs and rates are those of its MAS configuration."""

    layers: tuple[int, ...] = (1024, 1024)
    consolidation: Literal["mas", "si"] | None = "mas"
    outlier_exclusion: bool = False
    pairs: Literal["random", "all"] = "random"
    feature_rms: float | None = 0.1
    lambda_mse: float = 1.0
    lambda_cos: float = 10.0
    lambda_l1: float = 1e-3
    lambda_reg: float = 10.0
    lambda_center: float = 1.0
    batch_size: int = 64
    base_epochs: int = 100
    base_rate: float = 1e-4
    base_decay: float = 1.0
    base_decay_every: int = 25
    increment_epochs: int = 50
    increment_rate: float = 2e-4
    center_epochs: int = 10
    center_rate: float = 1e-4
    si_damping: float = 1e-3
    lof_neighbours: int = 20  # 0: none is an outlier
    kept_bits: Literal[4, 8, 32] = 32

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        require(self, len(self.layers) > 0 and all(width > 0 for width in self.layers), "layers", "sizes above 0")
        require(self, self.consolidation in ("mas", "si", None), "consolidation", "'mas', 'si' or None")
        require(self, self.kept_bits in (4, 8, 32), "kept_bits", "4, 8 or 32")
        require(self, self.pairs in ("random", "all"), "pairs", "'random' or 'all'")
        require(self, self.feature_rms is None or self.feature_rms > 0, "feature_rms", "a number above 0, or None")
        require_numbers(self, ("batch_size", "base_decay_every", "si_damping", "base_decay"))


class Prototypes(TensorLearner):
    """Autoencoder, consolidation and class means.

    >>> from engram.learners.trying import blobs
    >>> learner = Prototypes(PrototypesConfig(layers=(16, 8), base_epochs=20, increment_epochs=5))
    >>> learner.learn(*blobs(["ant", "bee"]))
    >>> learner.learn(*blobs(["cat"]))
    >>> learner.labels
    ['ant', 'bee', 'cat']
    """

    method = "prototypes"
    about = Codes.about
    config_type = PrototypesConfig
    config: PrototypesConfig
    few_samples = Codes.few_samples
    only_for_learning = (DECODER, "consolidation.")
    temperature = TEMPERATURE
    engine: Engine | None = None  # None: that of the device

    @classmethod
    def passes(cls, config: PrototypesConfig, first: bool) -> int:
        """How often a task's data is gone through."""
        return super().passes(config, first) + (config.center_epochs if first and config.outlier_exclusion else 0)

    @property
    def importance(self) -> dict[str, Tensor]:
        """Ω of the encoder, by parameter name; empty without consolidation."""
        return unpack_all(below(IMPORTANCE, self.tensors))

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        """The base trains the whole network; an increment trains the encoder, held by Ω to where it was."""
        config, had, first, earlier = self.config, self.tensors, not self.tensors, self.importance
        scale = statistics.scale_to_rms(task.features, config.feature_rms) if first else had["network.feature_scale"]
        features, targets, several = task.features * scale, task.targets, len(task.new_rows()) > 1
        network = self._network(features.shape[1], to_learn=True)
        start = {f"encoder.{name}": theta.detach() for name, theta in network.encoder.named_parameters()}  # θ̃
        network.encoder = copy.deepcopy(network.encoder)
        encoder = {f"encoder.{name}": theta for name, theta in network.encoder.named_parameters()}

        engine = self.engine or engine_for(self.device)
        rule, random = make_rule(config.consolidation, config.si_damping), self.task_generator(self.device)
        trained = dict(network.named_parameters()) if first else encoder
        held = Penalty(earlier, start, config.lambda_reg) if earlier else None
        # Only the encoder ever moves again, so only its importance is worth a trace.
        trace = {name: torch.zeros_like(theta) for name, theta in start.items()} if rule else {}
        trainer = engine.trainer(trained, config.batch_size, random, rule, held, trace, task.progress, pure=True)
        seen, samples = engine.view(network, features, not first)
        pairs = several and config.pairs == "random"
        base = Schedule(config.base_epochs, config.base_rate, config.base_decay, config.base_decay_every)
        increment = Schedule(config.increment_epochs, config.increment_rate)
        phase, schedule = ("base", base) if first else ("increment", increment)
        trainer.run(phase, self._loss(seen, several), samples, targets, schedule, pairs)

        codes, members = network.encode_all(features), targets
        if first and config.outlier_exclusion:
            keep = inliers(codes, targets, config.lof_neighbours)
            codes, members = codes[keep], targets[keep]
        now = statistics.update(had.get("classes.counts"), had.get("classes.means"), codes, members, task.classes)
        if first and config.outlier_exclusion:  # trains the encoder alone; the trace of importance runs on
            trainer.parameters, schedule = encoder, Schedule(config.center_epochs, config.center_rate)
            trainer.run("center", self._loss(seen, several, now.means), samples, targets, schedule, pairs)

        omega = add_importance(rule, trace, start, encoder, len(features), earlier) if rule else {}
        rest = network.decoder.state_dict(prefix=DECODER) if first else {}  # from now on the decoder stands still
        rest |= {f"{IMPORTANCE}{name}": tensor for name, tensor in omega.items()}
        return {
            "network.feature_scale": torch.as_tensor(scale, dtype=torch.float32, device=self.device),
            **{f"network.{name}": theta for name, theta in encoder.items()},
            **{name: tensor for name, tensor in had.items() if name.startswith(DECODER)},
            **pack_all(rest, random, config.kept_bits),
            "classes.means": now.means,
            "classes.counts": now.counts,
        }

    def _loss(self, seen: Network, several: bool, means: Tensor | None = None) -> Loss:
        """L_base (Eq. 5) and L_inc (Eq. 13), whose penalty is the trainer's; given means, L_add (Eq. 7)."""
        config = self.config

        def loss(x: Any, y: Tensor, pairs: Tensor | None) -> Tensor:
            codes = seen.encode(x)
            if means is None:
                total = config.lambda_mse * seen.error(codes, x) + config.lambda_l1 * losses.sparsity(codes)
            else:
                total = config.lambda_center * losses.center(codes, means, y)
            # A class alone has nothing to be told apart from.
            return total + config.lambda_cos * losses.cosine_pairs(codes, y, pairs) if several else total

        return loss

    def _network(self, n_features: int, to_learn: bool = False) -> Autoencoder:
        """The network as it was left, at first untrained; a slim model has no decoder."""
        if not self.tensors:
            return Autoencoder(n_features, self.config.layers).initialise(self.task_generator("cpu")).to(self.device)
        network = Autoencoder(n_features, self.config.layers, device="meta").requires_grad_(False)
        network.encoder.load_state_dict(below(ENCODER, self.tensors), assign=True)
        if to_learn:
            network.decoder.load_state_dict(unpack_all(below(DECODER, self.tensors)), assign=True)
        return network

    def encode(self, features: Tensor) -> Tensor:
        """The codes of feature vectors."""
        return encode(below(ENCODER, self.tensors), features * self.tensors["network.feature_scale"])

    def _scores(self, features: Tensor) -> Tensor:
        """Eq. 1."""
        return distance.similarity(self.encode(features), self.tensors["classes.means"])

    def _layout(self, classes: int, features: int) -> Layout:
        return codes_layout(classes, features, asdict(self.config), self.tensors)

    def stray(self) -> list[float] | None:
        """The angle by which each mean has moved, in parts of half the way to another one."""
        return None if self.slim else self._network(self.n_features or 0, True).stray(self.tensors["classes.means"])


class Method(Adapter):
    """The method as it is registered, to be taught; without torch it can be asked (`engram.learners.codes`)."""

    kind = Prototypes
