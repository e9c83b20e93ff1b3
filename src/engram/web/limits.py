"""How much the server accepts. A request beyond a limit gets a 4xx or 503 that names the limit."""

from dataclasses import dataclass

from starlette.exceptions import HTTPException


@dataclass(frozen=True)
class Limits:
    """The limits of one request, of one client, which is an address, and of the server as a whole."""

    # A request.
    upload_bytes: int = 256_000_000
    other_bytes: int = 64_000
    pictures: int = 1000
    asked_at_once: int = 64
    pixels: int = 40_000_000  # of a picture
    asked_pixels: int = 256_000_000  # of all pictures of a question
    taught_pixels: int = 12_000_000_000  # of all pictures of a lesson
    name_length: int = 80
    header_seconds: float = 10.0  # until the headers are there
    seconds: float = 120.0  # until the body is there
    silent_seconds: float = 20.0  # between two pieces of the body

    # A client.
    connections_per_address: int = 100
    pixels_per_client: int = 512_000_000  # of its questions that are being answered

    # The server.
    connections: int = 200
    bytes_in_flight: int = 512_000_000  # of uploads that are being received or checked
    lessons: int = 8
    waiting_bytes: int = 512_000_000
    predictions: int = 512
    easy_pixels: int = 16_000_000  # a picture with more is decoded in a process that can be ended
    decode_seconds: float = 20.0  # before that process is ended


class RefusedError(HTTPException):
    """A refused request: its HTTP status, and one line that says why and what to do."""
