"""The paper's learner: an autoencoder over frozen features, consolidated, with one mean code per class.

Choi, Lee, Choi: "Autoencoder-Based Incremental Class Learning without Retraining on Old Data", 2019. Equation numbers
are the paper's; docs/method.md restates it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal, Self
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from engram.engine.fixed_decoder import FixedDecoder
from engram.engine.training import Schedule, Trainer
from engram.engine.workbench import Workbench, encoder_parameters, trainer_of
from engram.learner import About, Label, Learner, State, Task, index_labels
from engram.nn import losses
from engram.nn.autoencoder import Autoencoder
from engram.nn.consolidation import MAS, SI, Rule
from engram.nn.outliers import inliers
from engram.nn.packing import pack_all, unpack_all
from engram.nn.prototypes import PrototypeMemory

CHUNK = 4096  # samples encoded at a time


@dataclass(frozen=True)
class PrototypeConfig:
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
    lof_neighbours: int = 20
    kept_bits: Literal[4, 8, 32] = 32

    def __post_init__(self) -> None:
        object.__setattr__(self, "layers", tuple(self.layers))
        self._require(len(self.layers) > 0 and all(width > 0 for width in self.layers), "layers", "sizes above 0")
        self._require(self.consolidation in ("mas", "si", None), "consolidation", "'mas', 'si' or None")
        self._require(self.kept_bits in (4, 8, 32), "kept_bits", "4, 8 or 32")
        self._require(self.pairs in ("random", "all"), "pairs", "'random' or 'all'")
        self._require(self.feature_rms is None or self.feature_rms > 0, "feature_rms", "a number above 0, or None")
        for name in ("batch_size", "base_decay_every", "lof_neighbours", "si_damping", "base_decay"):
            self._require(getattr(self, name) > 0, name, "a number above 0")
        for name, value in asdict(self).items():
            if name.startswith("lambda_") or name.endswith(("_epochs", "_rate")):
                self._require(value >= 0, name, "a number of at least 0")

    def _require(self, condition: bool, name: str, expected: str) -> None:
        if not condition:
            raise ValueError(f"{name} must be {expected}, not {getattr(self, name)!r}")

    def rule(self) -> Rule | None:
        """How importance is measured."""
        return {"mas": MAS(), "si": SI(self.si_damping), None: None}[self.consolidation]


@dataclass(frozen=True)
class _AutoencoderLoss:
    """L_base (Eq. 5) and, but for the penalty, which is the trainer's, L_inc (Eq. 13)."""

    network: Autoencoder
    config: PrototypeConfig
    several: bool
    fixed: FixedDecoder | None = None  # the decoder, where it does not move; batches are of its `inputs` then

    def __call__(self, x: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
        config, network, fixed = self.config, self.network, self.fixed
        codes = network.encode(fixed.features(x) if fixed else x)
        error = fixed.error(codes, x) if fixed else losses.reconstruction(network.decode(codes), x)
        total = config.lambda_mse * error + config.lambda_l1 * losses.sparsity(codes)
        if self.several:
            total = total + config.lambda_cos * losses.cosine_pairs(codes, y, pairs)
        return total


@dataclass(frozen=True, eq=False)
class _CenterLoss:
    """L_add (Eq. 7)."""

    network: Autoencoder
    config: PrototypeConfig
    several: bool
    means: Tensor

    def __call__(self, x: Tensor, y: Tensor, pairs: Tensor | None) -> Tensor:
        config, codes = self.config, self.network.encode(x)
        total = config.lambda_center * losses.center(codes, self.means, y)
        if self.several:
            total = total + config.lambda_cos * losses.cosine_pairs(codes, y, pairs)
        return total


# Not attributes of the learners: what a learner keeps is what it knows, and that is what it saves, copies and counts.
_WORKBENCHES: WeakKeyDictionary["PrototypeLearner", Workbench] = WeakKeyDictionary()


class PrototypeLearner(Learner):
    """Autoencoder, consolidation and class means.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> blobs = rng.normal(size=(3, 1, 8)) * 5 + rng.normal(size=(3, 20, 8))
    >>> learner = PrototypeLearner(PrototypeConfig(layers=(16, 8), base_epochs=20, increment_epochs=5))
    >>> learner.learn(blobs[:2].reshape(40, 8), ["ant"] * 20 + ["bee"] * 20)
    >>> learner.learn(blobs[2], ["cat"] * 20)
    >>> learner.labels
    ['ant', 'bee', 'cat']
    """

    # How these were picked, and what they reach, is in docs/commands.md.
    few_samples: ClassVar[Mapping[str, Any]] = {
        "layers": (512, 512),
        "pairs": "all",
        "lambda_cos": 0.1,
        "base_epochs": 30,
        "base_rate": 1e-3,
        "base_decay": 0.5,
        "base_decay_every": 10,
        "increment_epochs": 20,
        "increment_rate": 1e-5,
        "kept_bits": 8,
    }
    method = "prototypes"
    about = About(
        title="Autoencoder with class means",
        paper="Choi, Lee, Choi: Autoencoder-Based Incremental Class Learning without Retraining on Old Data, 2019",
        per_class="one mean code",
        copies_network=True,
    )
    config_type = PrototypeConfig
    config: PrototypeConfig

    def __init__(self, config: PrototypeConfig | None = None, *, seed: int = 0, device: str = "auto") -> None:
        super().__init__(config, seed=seed, device=device)
        self.feature_scale = 1.0
        self.encoder: nn.Sequential | None = None
        self.prototypes = PrototypeMemory(self.config.layers[-1], self.device)
        # What only the next increment needs, the decoder and Ω, under their names in the state; packed if 8 or 4 bits
        # are to do. Nothing in a slim model.
        self.rest: dict[str, Tensor] = {}

    @property
    def labels(self) -> list[Label]:
        """The classes known, in the order they were learned."""
        return list(self.prototypes.labels)

    @property
    def importance(self) -> dict[str, Tensor]:
        """Ω of the encoder, by parameter name; empty without consolidation."""
        return unpack_all(_below("consolidation.importance.", self.rest))

    @classmethod
    def passes(cls, config: PrototypeConfig, first: bool) -> int:
        """How often a task's data is gone through."""
        extra = config.center_epochs if first and config.outlier_exclusion else 0
        return super().passes(config, first) + extra

    def _learn(self, task: Task) -> None:
        if self.encoder is None:
            self._learn_base(task)
        elif not self.rest:
            raise ValueError("this model was saved slim, without what further learning needs; load the full model file")
        else:
            self._learn_increment(self.encoder, replace(task, features=task.features * self.feature_scale))

    def _learn_base(self, task: Task) -> None:
        config = self.config
        scale = _scale_to_rms(task.features, config.feature_rms)
        task = replace(task, features=task.features * scale)
        network = Autoencoder(task.features.shape[1], config.layers)
        network.initialise(self.task_generator("cpu")).to(self.device)
        start = {name: theta.detach().clone() for name, theta in encoder_parameters(network.encoder).items()}
        parameters, generator = dict(network.named_parameters()), self.task_generator(self.device)
        trainer = trainer_of(network, parameters, config.batch_size, generator, config.rule())
        trainer.progress = task.progress
        schedule = Schedule(config.base_epochs, config.base_rate, config.base_decay, config.base_decay_every)
        self._train_autoencoder("base", trainer, network, task, schedule, None)

        prototypes = PrototypeMemory(network.code_size, self.device)
        for name, codes in _codes_by_class(network, task):
            prototypes.add(name, inliers(codes, config.lof_neighbours) if config.outlier_exclusion else codes)
        if config.outlier_exclusion:
            self._pull_to_means(trainer, network, task, prototypes.means)

        importance = self._importance(trainer, start, network, len(task.features))
        decoder = {f"network.decoder.{name}": theta.detach() for name, theta in network.decoder.named_parameters()}
        self._commit(network.encoder, prototypes, self._packed(decoder | importance, trainer))
        self.feature_scale = scale

    def _learn_increment(self, before: nn.Sequential, task: Task) -> None:
        config = self.config
        decoder = {name: tensor for name, tensor in self.rest.items() if name.startswith("network.decoder.")}
        earlier = self.importance
        bench = _WORKBENCHES.pop(self, None) or self._workbench(task.features.shape[1])
        bench.lay_out(before, _below("network.decoder.", unpack_all(decoder)), earlier)
        network, trainer = bench.network, bench.trainer
        trainer.generator, trainer.progress = self.task_generator(self.device), task.progress
        schedule = Schedule(config.increment_epochs, config.increment_rate)
        if config.increment_epochs:
            self._train_autoencoder("increment", trainer, network, task, schedule, bench.fixed)

        prototypes = self.prototypes.copy()
        for name, codes in _codes_by_class(network, task):
            prototypes.add(name, codes)
        importance = self._importance(trainer, encoder_parameters(before), network, len(task.features))
        for name, omega in earlier.items():
            importance[f"consolidation.importance.{name}"] += omega  # Ω carries all earlier tasks
        rest = decoder | self._packed(importance, trainer)  # the decoder as it was kept
        # An encoder that was not trained is still the same, and whoever has its codes need not encode again.
        self._commit(bench.encoder() if config.increment_epochs else before, prototypes, rest)
        if bench.lasts:
            _WORKBENCHES[self] = bench

    def _workbench(self, n_features: int) -> Workbench:
        config = self.config
        return Workbench(n_features, config.layers, config.batch_size, config.rule(), config.lambda_reg, self.device)

    def _train_autoencoder(
        self,
        phase: str,
        trainer: Trainer,
        network: Autoencoder,
        task: Task,
        schedule: Schedule,
        fixed: FixedDecoder | None,
    ) -> None:
        """Minimise L_base (Eq. 5) or L_inc (Eq. 13): they differ in the penalty, and that is the trainer's."""
        several = len(task.new_rows()) > 1  # a class alone has nothing to be told apart from
        loss = _AutoencoderLoss(network, self.config, several, fixed)
        inputs = fixed.inputs(task.features) if fixed else task.features
        trainer.run(phase, loss, inputs, task.targets, schedule, several and self.config.pairs == "random")

    def _pull_to_means(self, trainer: Trainer, network: Autoencoder, task: Task, means: Tensor) -> None:
        """Train the encoder alone with L_add (Eq. 7); the trace of importance runs on."""
        config, several = self.config, len(task.new_rows()) > 1
        trainer.parameters = encoder_parameters(network.encoder)
        schedule = Schedule(config.center_epochs, config.center_rate)
        loss = _CenterLoss(network, config, several, means)
        trainer.run("center", loss, task.features, task.targets, schedule, several and config.pairs == "random")

    def _importance(
        self, trainer: Trainer, start: Mapping[str, Tensor], network: Autoencoder, n_samples: int
    ) -> dict[str, Tensor]:
        """The finished task's share of Ω, under its names in the state."""
        if trainer.rule is None:
            return {}
        end = encoder_parameters(network.encoder)
        with torch.no_grad():
            return {
                f"consolidation.importance.{name}": trainer.rule.importance(trace, end[name] - start[name], n_samples)
                for name, trace in trainer.trace.items()
            }

    def _packed(self, tensors: dict[str, Tensor], trainer: Trainer) -> dict[str, Tensor]:
        bits = self.config.kept_bits  # 4 are for importance; weights, which may be negative, keep 8
        return tensors if bits == 32 else pack_all(tensors, trainer.generator, bits)

    def _commit(self, encoder: nn.Sequential, prototypes: PrototypeMemory, rest: dict[str, Tensor]) -> None:
        """Take over what a finished task made, at once: whatever fails before leaves the learner as it was."""
        self.encoder, self.prototypes, self.rest = encoder.requires_grad_(False), prototypes, rest

    def encode(self, X: ArrayLike | Tensor) -> Tensor:
        """The codes of feature vectors."""
        features = X if isinstance(X, Tensor) else self._features(X)
        if self.encoder is None:
            raise ValueError("nothing has been learned yet; call learn first")
        return _encode(self.encoder, features * self.feature_scale)

    def nearest(
        self, X: ArrayLike | Tensor, k: int = 1, among: Sequence[Label] | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """The classes whose means are nearest by cosine (Eq. 1), found without a table of all similarities."""
        codes = self.encode(X)
        if not len(self.prototypes):
            raise ValueError("no class is known; call learn first")
        if among is None:
            best, rows = self.prototypes.nearest(codes, k)
            return best.cpu().numpy(), rows.cpu().numpy()
        chosen = torch.tensor([self.labels.index(label) for label in among], device=self.device)
        best, at = self.prototypes.similarity(codes)[:, chosen].topk(min(k, len(chosen)), dim=1)
        return best.cpu().numpy(), chosen[at].cpu().numpy()

    @property
    def temperature(self) -> float:
        """Cosines lie between -1 and 1: divided by this, their differences tell in a softmax."""
        return 0.1

    @property
    def can_learn(self) -> bool:
        """Whether decoder and importance were not left out."""
        return bool(self.rest)

    def counts(self) -> list[int]:
        """How many samples each class was learned from."""
        return [int(n) for n in self.prototypes.counts.tolist()]

    def class_vectors(self) -> NDArray[np.float32]:
        """The mean codes."""
        return self.prototypes.means.cpu().numpy()

    def scores(self, X: ArrayLike | Tensor) -> NDArray[np.float32]:
        """Cosine similarity to every class mean (Eq. 1)."""
        return self.prototypes.similarity(self.encode(X)).cpu().numpy()

    def _scores(self, features: Tensor) -> Tensor:
        if self.encoder is None:
            raise ValueError("nothing has been learned yet; call learn first")
        return self.prototypes.similarity(self.encoder(features * self.feature_scale))

    def forget(self, label: Label) -> None:
        """Remove a class's name, mean and count. The encoder keeps what it learned from it."""
        self.prototypes.forget(label)

    def rename(self, old: Label, new: Label) -> None:
        """Give a class another name."""
        index_labels([new], known=self.labels)
        self.prototypes.rename(old, new)

    def state(self, slim: bool = False) -> State:
        """Network, class memory and consolidation state; slim leaves out the decoder and the importance.

        The anchor θ̃ is the network as it is between two tasks, so it takes no room of its own.
        """
        tensors = {"classes.means": self.prototypes.means, "classes.counts": self.prototypes.counts}
        if self.encoder is not None:
            tensors |= {f"network.{name}": theta.detach() for name, theta in encoder_parameters(self.encoder).items()}
        if not slim:
            tensors |= self.rest
        meta = {
            "config": asdict(self.config),
            "seed": self.seed,
            "tasks_learned": self.tasks_learned,
            "n_features": self.n_features,
            "feature_scale": self.feature_scale,
            "labels": self.labels,
        }
        return State(tensors, meta)

    @classmethod
    def from_state(cls, state: State, device: str = "auto") -> Self:
        """The learner a state was taken from, bit for bit."""
        meta = state.meta
        learner = cls(PrototypeConfig(**meta["config"]), seed=meta["seed"], device=device)
        tensors = {name: tensor.to(learner.device) for name, tensor in state.tensors.items()}
        learner.tasks_learned, learner.n_features = meta["tasks_learned"], meta["n_features"]
        learner.feature_scale = float(meta["feature_scale"])
        learner.prototypes.labels = list(meta["labels"])
        learner.prototypes.means, learner.prototypes.counts = tensors["classes.means"], tensors["classes.counts"]
        distinct = len(index_labels(meta["labels"])[0])
        sizes = (len(meta["labels"]), *learner.prototypes.counts.shape, *learner.prototypes.means.shape)
        if sizes != (distinct, distinct, distinct, learner.config.layers[-1]):
            raise ValueError("its classes, their means and their counts do not fit together")
        if learner.n_features is not None:
            encoder = Autoencoder(learner.n_features, learner.config.layers).encoder
            encoder.load_state_dict(_below("network.encoder.", tensors), assign=True)
            learner.encoder = encoder.requires_grad_(False)
        rest = ("network.decoder.", "consolidation.")
        learner.rest = {name: tensor for name, tensor in tensors.items() if name.startswith(rest)}
        return learner


def _below(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def _scale_to_rms(features: Tensor, rms: float | None) -> float:
    """What to multiply features with so that their root mean square is `rms`."""
    if rms is None:
        return 1.0
    norm = float(torch.linalg.vector_norm(features, dtype=torch.float64))
    return rms * features.numel() ** 0.5 / norm if norm > 0 else 1.0


@torch.no_grad()
def _encode(encoder: nn.Sequential, features: Tensor) -> Tensor:
    return torch.cat([encoder(chunk) for chunk in features.split(CHUNK)])


def _codes_by_class(network: Autoencoder, task: Task) -> Iterator[tuple[Label, Tensor]]:
    codes = _encode(network.encoder, task.features)
    for row in task.new_rows().tolist():
        yield task.labels[row], codes[task.targets == row]
