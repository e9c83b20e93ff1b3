"""An encoder by name or ready made, and the identity it must have."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from engram.encoders.base import Encoder


@dataclass(frozen=True)
class RecordedEncoder:
    """The encoder a model was taught with, opened when it is first needed.

    A model can be looked at, and asked about feature vectors, where the weights of its encoder are not at hand.
    """

    identity: str  # name and hash of the weights
    name: str | None = None  # what makes it again; None where a name is not enough
    opened: "Encoder | None" = field(default=None, compare=False)

    @classmethod
    def of(cls, encoder: "Encoder") -> Self:
        """An encoder that is at hand."""
        return cls(encoder.identity.text, encoder.identity.name, encoder)

    def with_encoder(self, encoder: "Encoder") -> Self:
        """The same, at hand; ValueError if it is another one."""
        if encoder.identity.text != self.identity:
            raise ValueError(
                f"the model was taught with encoder {self.identity}, and this is {encoder.identity.text}; "
                "load it with the same weights"
            )
        return replace(self, opened=encoder)

    def open(self, device: str = "auto") -> "Encoder":
        """The encoder itself; ValueError if it is not the one recorded, or cannot be made by its name."""
        if self.opened is not None:
            return self.opened
        if self.name is None:
            raise ValueError(f"the model was taught with encoder {self.identity}, which no name makes again; give it")
        from engram.encoders.registry import create

        encoder = self.with_encoder(create(self.name, device)).opened
        assert encoder is not None
        return encoder

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
