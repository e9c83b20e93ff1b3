"""A model that knows something before it is taught anything."""

from dataclasses import replace

from engram.encoders.head import read_head
from engram.encoders.recorded import RecordedEncoder
from engram.encoders.registry import create
from engram.history import Notes
from engram.learners.imagenet import BesideImageNet
from engram.model import Model
from engram.store.model_store import ModelStore


def imagenet_model(encoder_name: str, device: str = "auto", seed: int = 0) -> Model:
    """A model that answers ImageNet's classes by the head of this encoder, and can be taught others beside them.

    A class that is taught under the name of one of them takes its place.
    """
    head, encoder = read_head(encoder_name), create(encoder_name, device)
    learner = BesideImageNet.new(seed=seed).adopt(head.names, head.weight, head.bias, encoder.dim)
    return Model(learner, RecordedEncoder.of(encoder))


def new_model(store: ModelStore, encoder_name: str) -> Model:
    """Write such a model."""
    model = imagenet_model(encoder_name, store.device)
    with store.changing("new"):
        if store.exists():
            raise ValueError(f"{store.path} exists; choose another name")
        return store.commit(replace(model, notes=Notes()), before=None)
