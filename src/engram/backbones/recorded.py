"""A backbone by name or ready made, and the identity it must have."""

import os
from contextlib import nullcontext
from typing import Self

from engram.backbones.base import Backbone
from engram.backbones.registry import create
from engram.backbones.weights import without_downloads

ALLOW_DOWNLOAD = "ENGRAM_ALLOW_DOWNLOAD"  # set in the environment: a backbone that a model file names may be fetched


def create_named(name: str) -> Backbone:
    """Do as `create(name)` does; a model file of the network then records the name too."""
    network = create(name)
    network.created_as = name
    return network


class RecordedBackbone:
    """The network a model was taught with, made when it is first needed.

    A model can be looked at, and asked about feature vectors, where the weights of its backbone are not at hand.
    """

    def __init__(self, backbone: str | Backbone | None, identity: str | None = None) -> None:
        self.backbone = backbone  # None: the file names none, and only feature vectors can be answered
        self._named_by_file = False
        self._network: Backbone | None = None
        self._recorded = identity

    @property
    def identity(self) -> str:
        """Name and hash of the weights, as recorded or else of the network itself."""
        return self._recorded or self.network().identity

    @property
    def name(self) -> str | None:
        """The name that makes the network again; None where a name is not enough."""
        if self.backbone is None or isinstance(self.backbone, str):
            return self.backbone
        return self.backbone.created_as

    def network(self) -> Backbone:
        """The backbone itself; ValueError if it is not the one recorded, or if a file would have it fetched."""
        if self._network is None:
            trusted = not self._named_by_file or os.environ.get(ALLOW_DOWNLOAD)
            with nullcontext() if trusted else without_downloads():
                network = create_named(self.backbone) if isinstance(self.backbone, str) else self.backbone
            if network is None or self._recorded not in (None, network.identity):
                raise ValueError(
                    f"the model was taught with backbone {self._recorded}, and this is {network and network.identity}; "
                    "load it with backbone=engram.backbones.create(NAME, weights=FILE) of the same weights"
                )
            self._network = network
        return self._network

    def as_json(self) -> dict[str, str | None]:
        """What a model file records: the identity, and the name if that alone makes the backbone again."""
        return {"name": self.name, "identity": self.identity}

    @classmethod
    def from_json(cls, recorded: dict[str, str | None], given: str | Backbone | None) -> Self:
        """What a model file describes; a `given` backbone has to be the recorded one."""
        name, identity = recorded["name"], recorded["identity"]
        if not (isinstance(identity, str) and identity) or not isinstance(name, str | None):
            raise TypeError("its backbone is not described by a name and an identity")
        made = cls(given or name, identity)
        made._named_by_file = given is None
        if given is not None:
            made.network()
        return made
