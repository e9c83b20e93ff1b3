"""The paper's learner: an autoencoder over frozen features, consolidated, with one mean code per class.

Choi, Lee, Choi: "Autoencoder-Based Incremental Class Learning without Retraining on Old Data", 2019. Equation numbers
are the paper's; docs/method.md restates it.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor

from engram.learner import About, State, Task, require, require_numbers
from engram.methods.tensors import Layout, TensorLearner
from engram.nn import distance, statistics
from engram.paper import losses
from engram.paper.autoencoder import Autoencoder, encode
from engram.paper.consolidation import add_importance, make_rule
from engram.paper.engine import Loss, Network, Penalty, Schedule, engine_for
from engram.paper.outliers import inliers
from engram.paper.packing import below, pack_all, unpack_all
from engram.paper.prototypes_layout import DECODER, ENCODER, IMPORTANCE, encoder_layout, prototypes_layout


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

    >>> from engram.testing import blobs
    >>> learner = Prototypes(PrototypesConfig(layers=(16, 8), base_epochs=20, increment_epochs=5))
    >>> learner.learn(*blobs(["ant", "bee"]))
    >>> learner.learn(*blobs(["cat"]))
    >>> learner.labels
    ['ant', 'bee', 'cat']
    """

    method = "prototypes"
    about = About(
        title="Autoencoder with class means",
        paper="Choi, Lee, Choi: Autoencoder-Based Incremental Class Learning without Retraining on Old Data, 2019",
        per_class="one mean code",
        copies_network=True,
    )
    config_type = PrototypesConfig
    config: PrototypesConfig
    # How these were picked, and what they reach, is in docs/commands.md.
    few_samples: ClassVar[Mapping[str, Any]] = {
        "layers": (512, 512), "pairs": "all", "lambda_cos": 0.1, "base_epochs": 30, "base_rate": 1e-3,
        "base_decay": 0.5, "base_decay_every": 10, "increment_epochs": 20, "increment_rate": 1e-5, "kept_bits": 8,
    }  # fmt: skip
    only_for_learning = (DECODER, "consolidation.")
    temperature = 0.1  # cosines lie between -1 and 1: divided by this, their differences tell in a softmax

    def __init__(self, config: PrototypesConfig | None = None, *, seed: int = 0, device: str = "auto") -> None:
        super().__init__(config, seed=seed, device=device)
        self.engine = engine_for(self.device)

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

        rule, random = make_rule(config.consolidation, config.si_damping), self.task_generator(self.device)
        trained = dict(network.named_parameters()) if first else encoder
        held = Penalty(earlier, start, config.lambda_reg) if earlier else None
        # Only the encoder ever moves again, so only its importance is worth a trace.
        trace = {name: torch.zeros_like(theta) for name, theta in start.items()} if rule else {}
        trainer = self.engine.trainer(trained, config.batch_size, random, rule, held, trace, task.progress, pure=True)
        seen, samples = self.engine.view(network, features, not first)
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

    def _nearest(self, features: Tensor, k: int) -> tuple[Tensor, Tensor]:
        return distance.nearest(self.encode(features), self.tensors["classes.means"], k)

    def _layout(self, classes: int, features: int) -> Layout:
        config = self.config
        held = config.consolidation is not None
        return prototypes_layout(classes, features, config.layers, held, config.kept_bits, self.tensors)

    def encoder_layout(self, features: int) -> Layout:
        """All that a code is computed with."""
        return encoder_layout(features, self.config.layers)

    def _stray(self) -> list[float] | None:
        return None if self.slim else self._network(self.n_features or 0, True).stray(self.tensors["classes.means"])

    @classmethod
    def from_state(cls, state: State, device: str = "auto") -> Self:
        """The learner a state was taken from, bit for bit."""
        tensors, meta = dict(state.tensors), dict(state.meta)
        if "slim" not in meta:  # as in the first files
            meta["slim"] = not below(DECODER, tensors)
            tensors["network.feature_scale"] = torch.tensor(float(meta["feature_scale"]))
        return super().from_state(State(tensors, meta), device)
