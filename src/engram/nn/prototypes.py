"""The prototype memory: one mean code per class, how many samples it stands for, and its name."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import normalize

from engram.learner import Label

CHUNK = 4096  # classes compared at a time


class PrototypeMemory:
    """Class means with their counts and labels. The labels of a memory are names, never positions.

    >>> memory = PrototypeMemory(code_size=2)
    >>> memory.add("cat", torch.tensor([[1.0, 0.0], [3.0, 0.0]]))
    >>> memory.add("dog", torch.tensor([[0.0, 1.0]]))
    >>> memory.similarity(torch.tensor([[2.0, 0.0]])).tolist()
    [[1.0, 0.0]]
    """

    def __init__(self, code_size: int, device: torch.device | str = "cpu") -> None:
        self.labels: list[Label] = []
        self.means = torch.empty(0, code_size, device=device)
        self.counts = torch.empty(0, dtype=torch.int64, device=device)

    def __len__(self) -> int:
        return len(self.labels)

    def __contains__(self, label: Label) -> bool:
        return label in self.labels

    def add(self, label: Label, codes: Tensor) -> None:
        """Remember the mean of `codes` as `label`; a known label's mean is updated exactly from its stored count.

        The stored sum, count x mean, holds codes as the encoder gave them when they were learned. Once the encoder has
        moved, the new mean blends codes of two encoders; no other update is possible without the old data.
        """
        total = codes.double().sum(dim=0)
        if label in self.labels:
            row = self.labels.index(label)
            count = int(self.counts[row])
            mean = (self.means[row].double() * count + total) / (count + len(codes))
            self.means = self.means.clone()  # never change a tensor that somebody else may hold
            self.means[row] = mean.float()
            self.counts = self.counts.clone()
            self.counts[row] += len(codes)
        else:
            self.labels = [*self.labels, label]
            self.means = torch.cat([self.means, (total / len(codes)).float()[None]])
            self.counts = torch.cat([self.counts, self.counts.new_tensor([len(codes)])])

    def forget(self, label: Label) -> None:
        """Drop the label, its mean and its count."""
        row = self._row(label)
        keep = [i for i in range(len(self.labels)) if i != row]
        self.labels = [self.labels[i] for i in keep]
        self.means, self.counts = self.means[keep].clone(), self.counts[keep].clone()

    def rename(self, old: Label, new: Label) -> None:
        """Give a class another name; everything else about it stays."""
        row = self._row(old)
        if new != old and new in self.labels:
            raise ValueError(f"cannot rename {old!r} to {new!r}: a class of that name exists; forget it first")
        self.labels = [new if i == row else label for i, label in enumerate(self.labels)]

    def similarity(self, codes: Tensor) -> Tensor:
        """Cosine similarity of every code to every class mean, (n, classes) (Eq. 1 takes the largest)."""
        return normalize(codes, dim=1) @ normalize(self.means, dim=1).T

    def nearest(self, codes: Tensor, k: int = 1) -> tuple[Tensor, Tensor]:
        """The `k` classes most similar to each code, best first: cosine similarities and rows, both (n, k).

        Goes through the means a few thousand at a time, so that millions of classes take no room beside their means,
        and a chunk is still in the processor's cache when its lengths are needed.
        """
        unit = normalize(codes, dim=1)
        best = codes.new_full((len(codes), 0), 0.0)
        rows = torch.empty(len(codes), 0, dtype=torch.int64, device=codes.device)
        for start in range(0, len(self.means), CHUNK):
            means = self.means[start : start + CHUNK]
            length = torch.linalg.vector_norm(means, dim=1).clamp(min=1e-12)  # as `normalize` has it
            similarity = (unit @ means.T) / length
            found, at = similarity.topk(min(k, len(means)), dim=1)
            best, kept = torch.cat([best, found], dim=1).topk(min(k, best.shape[1] + found.shape[1]), dim=1)
            rows = torch.cat([rows, at + start], dim=1).gather(1, kept)
        return best, rows

    def copy(self) -> "PrototypeMemory":
        """A memory that can be changed without changing this one."""
        other = PrototypeMemory(self.means.shape[1], self.means.device)
        other.labels, other.means, other.counts = self.labels, self.means, self.counts
        return other

    def _row(self, label: Label) -> int:
        if label not in self.labels:
            raise ValueError(f"unknown class {label!r}; known classes: {_listing(self.labels)}")
        return self.labels.index(label)


def _listing(labels: Sequence[Label], most: int = 10) -> str:
    shown = ", ".join(repr(label) for label in labels[:most])
    return shown + (f" and {len(labels) - most} more" if len(labels) > most else "")
