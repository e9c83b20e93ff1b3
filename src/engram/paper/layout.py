"""What the tensors of a method in torch have to be, in the words of `engram.learners.layout`."""

from engram.learners.layout import SAMPLES as SAMPLES
from engram.learners.layout import Kept, Layout
from engram.learners.layout import whole as whole


def floats(*shape: int) -> Kept:
    """Numbers in 32 bits."""
    return Kept(shape)


def linear(name: str, inputs: int, outputs: int) -> Layout:
    """A linear layer."""
    return {f"{name}.weight": floats(outputs, inputs), f"{name}.bias": floats(outputs)}


def samples(classes: int, features: int) -> Layout:
    """Stored samples and their classes."""
    return {"samples.features": floats(SAMPLES, features), "samples.targets": whole(SAMPLES, most=classes - 1)}
