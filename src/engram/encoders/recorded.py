"""An encoder by name or ready made, and the identity it must have."""

import os
import threading
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from engram.encoders.base import Encoder

ALLOW_DOWNLOAD = "ENGRAM_ALLOW_DOWNLOAD"  # set in the environment: an encoder that a model file names may be fetched


class RecordedEncoder:
    """The encoder a model was taught with, opened when it is first needed.

    A model can be looked at, and asked about feature vectors, where the weights of its encoder are not at hand. Models
    share it, threads too; a copy in another process opens its own.
    """

    def __init__(self, identity: str, name: str | None = None, opened: "Encoder | None" = None) -> None:
        self.identity = identity  # name and hash of the weights
        self.name = name  # what makes it again; None where a name is not enough
        self._opened = opened
        self._opening = threading.Lock()

    @classmethod
    def of(cls, encoder: "Encoder") -> Self:
        """An encoder that is at hand."""
        return cls(encoder.identity.text, encoder.identity.name, encoder)

    @property
    def is_open(self) -> bool:
        """Whether it is at hand."""
        return self._opened is not None

    def open(self, device: str = "auto") -> "Encoder":
        """The encoder itself; ValueError if its name does not make the one recorded."""
        with self._opening:
            if self._opened is None:
                self._opened = self._make(device)
            return self._opened

    def _make(self, device: str) -> "Encoder":
        if self.name is None:
            raise ValueError(f"the model was taught with encoder {self.identity}, which no name makes again; give it")
        from engram.encoders.registry import recreate
        from engram.encoders.weights import without_downloads

        with nullcontext() if os.environ.get(ALLOW_DOWNLOAD) else without_downloads():
            encoder = recreate(self.name, self.identity, device)
        self.require(encoder)
        return encoder

    def require(self, encoder: "Encoder") -> None:
        """ValueError if an encoder is not the one recorded."""
        if encoder.identity.text != self.identity:
            raise ValueError(
                f"the model was taught with encoder {self.identity}, and this is {encoder.identity.text}; "
                "use the same weights"
            )

    def __eq__(self, other: object) -> bool:
        """The same encoder, opened or not."""
        return isinstance(other, RecordedEncoder) and self.as_json() == other.as_json()

    def __hash__(self) -> int:
        return hash((self.identity, self.name))

    def __getstate__(self) -> dict[str, str | None]:
        return self.as_json()

    def __setstate__(self, recorded: dict[str, Any]) -> None:
        self.__init__(recorded["identity"], recorded["name"])  # type: ignore[misc]

    def as_json(self) -> dict[str, str | None]:
        """What a model file records."""
        return {"name": self.name, "identity": self.identity}

    @classmethod
    def from_json(cls, recorded: dict[str, Any]) -> Self:
        """What a model file describes."""
        name, identity = recorded["name"], recorded["identity"]
        if not (isinstance(identity, str) and identity) or not isinstance(name, str | None):
            raise TypeError("its encoder is not described by a name and an identity")
        return cls(identity, name)
