"""How much the server accepts. A request beyond a limit gets a 4xx that names the limit."""

from dataclasses import dataclass

from starlette.exceptions import HTTPException


@dataclass(frozen=True)
class Limits:
    """Per request, except the last three: lessons waiting, bytes of their pictures, predictions at a time."""

    upload_bytes: int = 256_000_000
    other_bytes: int = 64_000
    pictures: int = 1000
    asked_at_once: int = 64
    pixels: int = 40_000_000
    name_length: int = 80
    seconds: float = 120.0
    lessons: int = 8
    waiting_bytes: int = 512_000_000
    predictions: int = 512


class RefusedError(HTTPException):
    """A refused request: its HTTP status, and one line that says why and what to do."""
