"""A learner in torch as the rest of the package knows learners: a value, whose state are numpy's arrays."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from engram.learners.base import Array, Features, Label, Learner, Scores, State, Tell, quiet
from engram.paper.tensors import TensorLearner


@dataclass(frozen=True, eq=False)
class Adapter(Learner):
    """Wraps a `TensorLearner`; a method is a subclass that names its `kind`.

    Features may be torch's tensors, which then stay on the device they are on. Where to compute is `on`'s to say: a
    CUDA device, if there is one, as long as nobody has.
    """

    kind: ClassVar[type[TensorLearner]]

    inner: TensorLearner | None = None

    def __init_subclass__(cls) -> None:
        cls.method, cls.about, cls.settings_type = cls.kind.method, cls.kind.about, cls.kind.config_type
        cls.few_samples = cls.kind.few_samples
        # A network that is trained on the first classes, to tell them apart, needs two.
        cls.first_classes = 2 if "base_epochs" in {field.name for field in fields(cls.settings_type)} else 1

    @classmethod
    def new(cls, settings: Any = None, *, seed: int = 0) -> Self:
        """A learner that knows nothing."""
        return cls.around(cls.kind(cls.configure(settings), seed=seed))

    @classmethod
    def around(cls, inner: TensorLearner) -> Self:
        """The value that wraps a learner in torch, which is not to be taught any more but through it."""
        return cls(inner.config, inner.seed, inner.tasks_learned, inner.n_features, inner)

    @property
    def torch_learner(self) -> TensorLearner:
        """What is wrapped."""
        assert self.inner is not None
        return self.inner

    def on(self, device: str | torch.device) -> Self:
        """The same learner on a device."""
        return self.around(self.torch_learner.to(device))

    @property
    def labels(self) -> tuple[Label, ...]:
        """The classes known, in the order they were learned."""
        return tuple(self.torch_learner.labels)

    @property
    def can_learn(self) -> bool:
        """Unless it is of a file of before that was saved without what only learning needs."""
        return not self.torch_learner.slim

    def learn(self, x: Features | Tensor, y: Sequence[Label], tell: Tell = quiet) -> Self:
        """The learner that has learned one task more."""
        after = copy.copy(self.torch_learner)
        after.learn(x, y, tell)
        return self.around(after)

    def score(self, x: Features | Tensor) -> Scores:
        """Scores of every class; none of these methods can reject unknown inputs."""
        return Scores(self.torch_learner.scores(x), None, self.torch_learner.temperature)

    def forget(self, label: Label) -> Self:
        """The learner without a class."""
        after = copy.copy(self.torch_learner)
        after.forget(int(self.rows([label])[0]))
        return self.around(after)

    def rename(self, old: Label, new: Label) -> Self:
        """The learner with another name for a class."""
        row, after = self.row_to_rename(old, new), copy.copy(self.torch_learner)
        after.labels = [*after.labels[:row], new, *after.labels[row + 1 :]]
        return self.around(after)

    def counts(self) -> NDArray[np.int64] | None:
        """How many samples each class was learned from, where the method counts them."""
        counts = self.torch_learner.counts()
        return None if counts is None else counts.cpu().numpy()

    def class_vectors(self) -> Array | None:
        """The class means, where the method keeps them."""
        means = self.torch_learner.class_vectors()
        return None if means is None else means.cpu().numpy()

    def drift(self) -> list[float] | None:
        """How far a trained encoder has moved from each class mean."""
        return self.torch_learner.stray() if self.labels else None

    def bytes_kept(self) -> dict[str, int]:
        """The bytes of every array of the state, without making it."""
        return {name: tensor.numel() * tensor.element_size() for name, tensor in self.torch_learner.tensors.items()}

    def _arrays(self) -> dict[str, Array]:
        return self.torch_learner.arrays()

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The learner a state was taken from."""
        return cls.around(cls.kind.from_state(state, cls.configure(state.meta["config"])))
