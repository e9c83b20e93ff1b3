"""How much a server takes from its clients. Whatever goes beyond is answered with a 4xx that says what the limit is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Per request, but for the last three: lessons waiting, the bytes of their pictures, predictions at a time."""

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


class RefusedError(Exception):
    """A request that is not taken: the HTTP status, and one line that says why and what to do."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail
