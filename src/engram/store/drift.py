"""Whether a method that goes on training its network has drifted away from the classes it learned earlier."""

from statistics import median

from engram.model import Model

# Found on made-up classes and on birds: below it a network that goes on training answers as well as one that stands
# still, about 1 it has lost a tenth of the oldest, or most of them (docs/performance.md).
FAR = 0.8


def measure_drift(model: Model) -> float | None:
    """How far classes have come away since they were learned, in parts of half the way to another class: the median.

    None where nothing can drift, or where it cannot be told.
    """
    moved = model.learner.drift() if model.names else None
    then = {name: record.stray for name, record in model.notes.classes.items()}
    since = [
        now - before
        for name, now in zip(model.names, moved or (), strict=False)
        if (before := then.get(name)) is not None
    ]
    return median(since) if since else None


def warn_of_drift(model: Model) -> str | None:
    """One line for somebody whose model has drifted far; None if it has not."""
    drift = measure_drift(model)
    if drift is None or drift < FAR:
        return None
    return (
        f"the network has drifted from the classes it learned earlier, by {drift:.1f} of half the way to the next: "
        "check them with engram evaluate, teach them again (--more), or start anew with the default method, "
        "which does not drift"
    )
