"""Names of what the paper's learner keeps, and what each of them has to be."""

from collections.abc import Container, Sequence

from engram.methods.tensors import Layout
from engram.nn.layout import floats, whole
from engram.paper import autoencoder
from engram.paper.packing import below, packed_layout

ENCODER, DECODER, IMPORTANCE = "network.encoder.", "network.decoder.", "consolidation.importance."


def encoder_layout(features: int, layers: Sequence[int]) -> Layout:
    """All that a code is computed with."""
    encoder = below("encoder.", autoencoder.kept(features, layers))
    return {"network.feature_scale": floats(), **{ENCODER + name: kept for name, kept in encoder.items()}}


def prototypes_layout(
    classes: int, features: int, layers: Sequence[int], consolidated: bool, bits: int, present: Container[str]
) -> Layout:
    """All of it; see `packed_layout` for the last two."""
    network = autoencoder.kept(features, layers)
    rest = {DECODER + name: kept for name, kept in below("decoder.", network).items()}
    if consolidated:
        rest |= {IMPORTANCE + name: kept for name, kept in network.items() if name.startswith("encoder.")}
    return {
        **encoder_layout(features, layers),
        **packed_layout(rest, bits, present),
        "classes.means": floats(classes, layers[-1]),
        "classes.counts": whole(classes),
    }
