"""What the methods in torch share: a task, and what is refused."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor

from engram.learners.base import Label, Progress, require

MOST_EPOCHS = 100_000  # with a model file of anybody's, learning ends


@dataclass(frozen=True)
class Task:
    """One task on the device. `targets` are positions in `labels`: all classes, the known ones first."""

    features: Tensor
    targets: Tensor
    labels: list[Label]
    known: int
    progress: Callable[[Progress], None] | None = None

    @property
    def classes(self) -> int:
        """How many classes there are once this task is learned."""
        return len(self.labels)

    def new_rows(self) -> Tensor:
        """The positions of the classes this task holds samples of."""
        rows: Tensor = self.targets.unique()
        return rows


def require_finite(tensors: Mapping[str, Tensor]) -> None:
    """Refuse to keep what would make every later answer meaningless."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise ValueError(
                f"{name} would hold numbers that are not finite, so nothing was learned: scale the features, as "
                f"sklearn.preprocessing.StandardScaler does, or lower learning rates and weights of losses"
            )


def require_numbers(config: Any, positive: Sequence[str] = (), fractions: Sequence[str] = ()) -> None:
    """Refuse `positive` settings that are not above 0, `fractions` below 0 or from 1 on.

    Epochs, learning rates, neighbours and weights of losses, known by their names, may be 0 but not negative; epochs
    have an end.
    """
    for name in positive:
        require(config, getattr(config, name) > 0, name, "a number above 0")
    for name in fractions:
        require(config, 0 <= getattr(config, name) < 1, name, "at least 0 and below 1")
    for name in (field.name for field in fields(config)):
        if name.startswith("lambda_") or name.endswith(("_epochs", "_rate", "_neighbours")):
            require(config, getattr(config, name) >= 0, name, "a number of at least 0")
        if name.endswith("_epochs"):
            require(config, getattr(config, name) <= MOST_EPOCHS, name, f"at most {MOST_EPOCHS:,}")
