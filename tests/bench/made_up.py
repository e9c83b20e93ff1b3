"""What records of results that no run made have in common."""

from typing import Any

from engram.bench.learners import METHODS


def named(method: str) -> dict[str, Any]:
    """Whose record it is, and of which data and features."""
    return {
        "dataset": "cifar100",
        "backbone": "resnet50:pooled@224:sha256-0",
        "method": method,
        "learner": method if method in METHODS else "prototypes",
        "config": {},
    }
