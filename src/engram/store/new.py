"""A model that knows something before it is taught anything."""

from engram.estimator import IncrementalClassifier
from engram.store.history import Notes
from engram.store.model_store import Model, ModelStore


def new_model(store: ModelStore, backbone: str) -> Model:
    """Write a model that answers ImageNet's classes by the head of this backbone, and can be taught others."""
    with store.changing("new"):
        if store.exists():
            raise ValueError(f"{store.path} exists; choose another name")
        clf = IncrementalClassifier.with_imagenet(backbone, random_state=0, device=store.device)
        return store.commit(clf, Notes(), before=None)
