"""What the classifier is given: feature vectors pass, pictures go through the backbone the model was taught with."""

import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from engram import backbones
from engram.backbones import Backbone
from engram.features import extract

# Paths, PIL images, or one uint8 array (N, H, W, 3).
Pictures = Sequence[str | os.PathLike[str] | Image.Image] | NDArray[np.uint8]


class PictureInput:
    """A backbone, by name or ready made, and the identity it must have.

    A backbone whose identity is known, from a model file, is made when the first picture comes: a model can be looked
    at, and asked about feature vectors, where its weights are not at hand. `identity` is None without a backbone.
    """

    def __init__(self, backbone: str | Backbone | None, device: str, identity: str | None = None) -> None:
        self.backbone, self.device, self.identity = backbone, device, identity
        self._network: Backbone | None = None
        if backbone is not None and identity is None:
            self.identity = self.network().identity

    def vectors(self, X: ArrayLike | Pictures) -> Any:
        """Features of pictures; anything else as it is. A picture that cannot be read is an error."""
        if not holds_pictures(X):
            return X
        if self.identity is None:
            raise ValueError(
                "X holds pictures, but this classifier takes feature vectors; "
                "make it with IncrementalClassifier(backbone='efficientnet_lite0'), or extract features first"
            )
        pictures: Any = X
        if not (isinstance(X, np.ndarray) and X.dtype == np.uint8):
            pictures = list(pictures)
        return extract(pictures, self.network(), device=self.device, strict=True).values

    def network(self) -> Backbone:
        """The backbone itself, made when it is first asked for; ValueError if it is not the one recorded."""
        if self._network is None:
            made = backbones.create(self.backbone) if isinstance(self.backbone, str) else self.backbone
            if made is None or self.identity not in (None, made.identity):
                raise ValueError(
                    f"the model was taught with backbone {self.identity}, and this is {made and made.identity}; "
                    "load it with backbone=engram.backbones.create(NAME, weights=FILE) of the same weights"
                )
            self._network = made
        return self._network

    def as_json(self) -> dict[str, str | None] | None:
        """What a model file records: the identity, and the name if that is how the backbone was given."""
        if self.identity is None:
            return None
        return {"name": self.backbone if isinstance(self.backbone, str) else None, "identity": self.identity}

    @classmethod
    def from_json(cls, recorded: dict[str, str | None] | None, given: str | Backbone | None, device: str) -> Self:
        """What a model file describes; a `given` backbone has to be the recorded one."""
        if recorded is None:
            if given is not None:
                raise ValueError("the model was taught with feature vectors; load it without backbone=")
            return cls(None, device)
        made = cls(given or recorded["name"], device, recorded["identity"])
        if given is not None:
            made.network()
        return made


def holds_pictures(X: object) -> bool:
    """Whether X is pictures: a uint8 array of three or four dimensions, or a list of paths, files' bytes or images."""
    if isinstance(X, np.ndarray):
        if X.ndim > 1:
            return X.dtype == np.uint8 and X.ndim in (3, 4)
        X = X.tolist() if X.dtype.kind in "OU" else []
    if not isinstance(X, list | tuple) or not X:
        return False
    if isinstance(X[0], np.ndarray):
        return X[0].dtype == np.uint8 and X[0].ndim in (2, 3)
    return isinstance(X[0], str | os.PathLike | bytes | Image.Image)
