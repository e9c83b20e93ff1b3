"""Whitened prototypes beside the backbone's own head: classes that were taught and those of ImageNet, on one scale.

The head gives p(k | x) for its outputs, the prototypes p(j | x) for classes that were taught. What joins them is γ(x),
how likely a picture is of a taught class, by what the head says to it: √p, compared with the mean √p of each class.
docs/imagenet.md has the equations, and what they were measured to do.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn.functional import logsigmoid

from engram.learner import About, Label, Learner, LeftOut, State, Task
from engram.methods.tensors import Taught
from engram.methods.whitened import Whitened
from engram.nn.layout import Kept, Layout, floats, require_layout
from engram.nn.statistics import with_rows
from engram.snapshots import change

HEAD, BESIDE = "network.imagenet.", ("classes.said", "consolidation.alike")
LOST = 0.02  # the share of pictures of taught classes that one is ready to lose to ImageNet's
BINS = 128  # of the histogram of likeness
USUAL, SPREAD, DOUBT = 0.75, 0.15, 5.0  # likeness, its deviation, and how many samples are thought to have it


class BesideImageNet(Whitened):
    """log γ + log p(j | x) for a class that was taught, log(1 - γ) + log p(k | x) for one of the head."""

    method = "imagenet"
    about = About(
        "Whitened prototypes beside ImageNet's classes",
        "engram, 2026: docs/imagenet.md",
        "one mean vector, what the head says on average (and one scatter for all)",
        given="the backbone's own head, as engram new --imagenet does",
        merges=True,
    )

    def __init__(self, config: Any = None, *, seed: int = 0, device: str = "auto") -> None:
        super().__init__(config, seed=seed, device=device)
        self.head: dict[str, Tensor] = {}
        self.outputs: list[Label | None] = []  # of the head; None is an answer no more: it was forgotten, or is taught

    @change
    def adopt(self, names: Sequence[Label], weight: Tensor, bias: Tensor, n_features: int | None) -> None:
        """Know the classes of a head that is applied to the last of the features, before anything is taught."""
        self.head = {f"{HEAD}weight": weight.to(self.device, torch.float16), f"{HEAD}bias": bias.to(self.device)}
        self.outputs, self.n_features = list(names), n_features

    @property
    def labels(self) -> list[Label]:
        """The classes taught, in that order, and then those of the head."""
        return [*self._labels, *self.built_in]

    @property
    def built_in(self) -> list[Label]:
        """The classes of the head."""
        return [name for name in self.outputs if name is not None]

    # --- answering --------------------------------------------------------------------------------------------------

    def _scores(self, features: Tensor, temperature: float | None = None) -> Tensor:
        if not self.head:
            return super()._scores(features)
        said = self._say(features)
        if not self._labels:
            return said[:, self._shown()]
        cosines = super()._scores(features)
        return self._join(said, cosines / (temperature or super().temperature), self._likeness(said).amax(dim=1))

    def _say(self, features: Tensor) -> Tensor:
        """log p(k | x) of every output of the head."""
        weight = self.head[f"{HEAD}weight"].float()
        return (features[:, -weight.shape[1] :] @ weight.T + self.head[f"{HEAD}bias"]).log_softmax(dim=1)

    def _shown(self) -> Tensor:
        rows = [row for row, name in enumerate(self.outputs) if name is not None]
        return torch.tensor(rows, dtype=torch.int64, device=self.device)

    def _join(self, said: Tensor, logits: Tensor, likeness: Tensor) -> Tensor:
        """Both on one scale. What the head gives to names that are answers no more is left to all others."""
        odds = (self._less_alike(likeness) / LOST).log()[:, None]
        taught = logits.log_softmax(dim=1) + logsigmoid(odds)
        return torch.cat([taught, said[:, self._shown()] + logsigmoid(-odds)], dim=1)

    def _likeness(self, said: Tensor) -> Tensor:
        """√p·m_c / ‖m_c‖ with m_c the mean √p of class c: 1 where the head says what it says to the class."""
        means = self.tensors["classes.said"].float()
        alike: Tensor = (said / 2).exp() @ (means / means.norm(dim=1, keepdim=True)).T
        return alike

    def _less_alike(self, likeness: Tensor) -> Tensor:
        """F: the share of pictures of taught classes that are less alike, from a histogram whose bins are smoothed."""
        seen = self.tensors["consolidation.alike"].float()
        n = seen.sum()
        middles = (torch.arange(BINS, device=seen.device) + 0.5) / BINS
        width = SPREAD * (1 + n) ** -0.2
        below = _below((likeness[:, None] - middles) / width) @ seen
        share: Tensor = (below + DOUBT * _below((likeness - USUAL) / SPREAD)) / (n + DOUBT)
        return share

    def _scorer(self) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
        if not self.head:
            return super()._scorer()
        if self._labels:
            self.scratch = self._space().traceable().tensors()
        temperature = super().temperature  # a number, for the trace
        return lambda features: (scores := self._scores(features, temperature), scores.amax(dim=1))

    def _familiarity(self, features: Tensor) -> Tensor:
        return self._nearest(features, 1)[0][:, 0] if self.head else super()._familiarity(features)

    @property
    def temperature(self) -> float:
        """1 beside a head: the scores are logarithms of probabilities then."""
        return 1.0 if self.head else super().temperature

    def unknown_below(self, share: float = 0.05) -> float | None:
        """None beside a head: no picture of ImageNet is there to tell what its classes look like at their least."""
        return None if self.head else super().unknown_below(share)

    # --- learning ---------------------------------------------------------------------------------------------------

    def _learn(self, task: Task) -> None:
        """Rows of the task are those of `labels`, and the tables have rows for taught classes alone."""
        new: set[Any] = {task.labels[row] for row in task.new_rows().tolist()}.difference(self._labels)
        labels = [*self._labels, *sorted(new)]
        row = {name: row for row, name in enumerate(labels)}
        rows = torch.tensor([row.get(name, -1) for name in task.labels], dtype=torch.int64, device=self.device)
        super()._learn(replace(task, targets=rows[task.targets], labels=labels, known=len(self._labels)))
        self._hide(labels)

    def _hide(self, names: Iterable[Label]) -> None:
        gone = set(names)
        self.outputs = [None if name in gone else name for name in self.outputs]

    def _tensors_after(self, task: Task) -> dict[str, Tensor]:
        after = super()._tensors_after(task)
        if not self.head:
            return after
        roots, counts = (self._say(task.features) / 2).exp(), after["classes.counts"].float()
        had = self.tensors.get("classes.said", roots[:0])
        before = with_rows(self.tensors.get("classes.counts", counts[:0]).float(), task.classes)
        sums = with_rows(had.float(), task.classes) * before[:, None]
        means = sums.index_add(0, task.targets, roots) / counts[:, None]
        after |= {"classes.said": means.half(), "consolidation.alike": self._seen_before()}
        return after | self._seen(after, roots, task.targets) if self.calibrating else after

    def _seen_before(self) -> Tensor:
        return self.tensors.get("consolidation.alike", torch.zeros(BINS, dtype=torch.float64, device=self.device))

    def _seen(self, tensors: dict[str, Tensor], roots: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """The histogram with these samples in it, each compared as if it had not been learned."""
        alike = _likeness_left_out(roots, targets, tensors["classes.said"].float(), tensors["classes.counts"])
        several = tensors["classes.counts"][targets] > 1
        found = torch.histc(alike[several].double(), BINS, 0, 1)
        return {"consolidation.alike": tensors["consolidation.alike"] + found}

    def leave_one_out(self, X: ArrayLike | Tensor, y: Iterable[Any]) -> LeftOut | None:
        """What the learner would say to samples it has just learned had it not."""
        if not self.head:
            return super().leave_one_out(X, y)
        features, targets = self._features(X), self._targets(y)
        said, (cosines, _) = self._say(features), self._left_out(features, targets)
        means, counts = self.tensors["classes.said"].float(), self.tensors["classes.counts"]
        alike = _likeness_left_out((said / 2).exp(), targets, means, counts)
        best = self._join(said, cosines / super().temperature, alike).double().softmax(dim=1).max(dim=1)
        return LeftOut(best.indices.cpu().numpy(), best.values.cpu().numpy())

    @change
    def calibrate(self, X: ArrayLike | Tensor, y: Iterable[Any]) -> None:
        """Measure on samples that were learned, of taught classes among themselves and beside the head."""
        super().calibrate(X, y)
        if self.head:
            roots = (self._say(self._features(X)) / 2).exp()
            self.tensors = self.tensors | self._seen(self.tensors, roots, self._targets(y))

    # --- what is known ----------------------------------------------------------------------------------------------

    def counts(self) -> list[int] | None:
        """Samples of each class; none of those of the head."""
        kept = super().counts() or []
        return [*kept, *[0] * len(self.built_in)] if self.head else super().counts()

    def _class_vectors(self) -> NDArray[np.float32] | None:
        """Where classes of the head lie nobody knows."""
        vectors = super()._class_vectors() if self._labels else None
        if vectors is None:
            return None
        return np.concatenate([vectors, np.full((len(self.built_in), vectors.shape[1]), np.nan, np.float32)])

    @change
    def forget(self, label: Label) -> None:
        """Remove a class. One of the head is an answer no more; its weights stay, to tell others apart by."""
        if label in self.built_in:
            self._hide([label])
        else:
            super().forget(label)

    @change
    def rename(self, old: Label, new: Label) -> None:
        """Give a class another name."""
        if new != old and new in self.labels:
            raise ValueError(f"cannot rename {old!r} to {new!r}: a class of that name exists; forget it first")
        if old in self.built_in:
            self.outputs = [new if name == old else name for name in self.outputs]
        else:
            super().rename(old, new)

    @classmethod
    def subtracts(cls) -> bool:
        """What the head says on average is not taken back."""
        return False

    def require_mergeable(self, other: Learner) -> None:
        """Refuse what cannot be merged, also a model with another head, or with none."""
        super().require_mergeable(other)
        theirs = other.head if isinstance(other, BesideImageNet) else {}
        if self.head.keys() != theirs.keys() or not all(
            torch.equal(tensor.cpu(), theirs[name].cpu()) for name, tensor in self.head.items()
        ):
            raise ValueError("models with ImageNet's classes from different networks cannot be merged")

    @change
    def merge(self, *others: Learner) -> None:
        """Know what others know. A class of the head stays an answer if it is one in all of them."""
        super().merge(*others)
        for other in others:
            if isinstance(other, BesideImageNet):
                pairs = zip(self.outputs, other.outputs, strict=True)
                self.outputs = [None if theirs is None else mine for mine, theirs in pairs]
        self._hide(self._labels)

    def _tensors_merged(self, several: Sequence[Taught], classes: int) -> dict[str, Tensor]:
        merged = super()._tensors_merged(several, classes)
        if not self.head:
            return merged
        sums = several[0].tensors["classes.said"].new_zeros(classes, len(self.outputs), dtype=torch.float32)
        for kept, rows in several:
            sums.index_add_(0, rows, kept["classes.said"].float() * kept["classes.counts"][:, None])
        alike = torch.stack([kept["consolidation.alike"] for kept, _ in several]).sum(dim=0)
        return merged | {
            "classes.said": (sums / merged["classes.counts"][:, None]).half(),
            "consolidation.alike": alike,
        }

    def blank(self) -> Self:
        """A learner to teach elsewhere, with the same head."""
        learner = super().blank()
        learner.head, learner.outputs = {name: tensor.cpu() for name, tensor in self.head.items()}, self.outputs
        return learner

    def state(self) -> State:
        """The tables, and the head."""
        kept = super().state()
        return State(kept.tensors | self.head, kept.meta | {"outputs": list(self.outputs)})

    @classmethod
    def from_state(cls, state: State, device: str = "auto") -> Self:
        """The learner a state was taken from, bit for bit."""
        own = {name: tensor for name, tensor in state.tensors.items() if name.startswith((HEAD, *BESIDE))}
        rest = {name: tensor for name, tensor in state.tensors.items() if name not in own}
        learner = super().from_state(State(rest, state.meta), device)
        names, classes = list(state.meta["outputs"]), len(learner._labels)
        head: Layout = {f"{HEAD}bias": floats(len(names))} if names else {}
        if names:  # it is applied to the last of the features
            inputs = state.tensors[f"{HEAD}weight"].shape[-1] if f"{HEAD}weight" in own else 0
            head[f"{HEAD}weight"] = Kept((len(names), min(inputs, learner.n_features or inputs)), (torch.float16,))
        beside: Layout = {"classes.said": Kept((classes, len(names)), (torch.float16,), 0, 1)}
        beside |= {"consolidation.alike": Kept((BINS,), (torch.float64,), 0)}
        require_layout(own, head | (beside if names and classes else {}))
        placed = {name: tensor.to(learner.device) for name, tensor in own.items()}
        learner.head, learner.outputs = {name: placed[name] for name in head}, names
        learner.tensors |= {name: placed[name] for name in placed.keys() - head.keys()}
        return learner


def _likeness_left_out(roots: Tensor, targets: Tensor, means: Tensor, counts: Tensor) -> Tensor:
    """The largest likeness of each sample, its own class without it: m becomes (n·m - √p) / (n - 1)."""
    inner, n = roots @ means.T, counts[targets].to(roots.dtype)
    alike = inner / means.norm(dim=1)
    own = inner.gather(1, targets[:, None])[:, 0]
    length = (n**2 * means.square().sum(dim=1)[targets] - 2 * n * own + 1).clamp(min=1e-12).sqrt()
    left_out = torch.where(n > 1, (n * own - 1) / length, 0.0)
    best: Tensor = alike.scatter(1, targets[:, None], left_out[:, None]).amax(dim=1)
    return best


def _below(z: Tensor) -> Tensor:
    """The normal distribution function."""
    below: Tensor = (1 + torch.erf(z / math.sqrt(2))) / 2
    return below
