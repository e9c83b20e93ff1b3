"""Connections before there is a request: how many, how long their headers take, and what is logged about them.

uvicorn has no limit on either, and all of this happens before anybody could be asked for a token.
"""

import asyncio
import logging
import socket
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from engram.web.limits import Limits

_BACKLOG = 128  # connections accepted in one go, before any of them is counted
_LINES_A_MINUTE = 5  # of a kind


class PageServer(uvicorn.Server):
    """uvicorn within limits; `closing` is called when it begins to end, so that streams end too."""

    def __init__(self, app: Any, limits: Limits, closing: Callable[[], None], *, behind_proxy: bool = False) -> None:
        config = uvicorn.Config(
            app, http=limited_protocol(limits, behind_proxy=behind_proxy), ws="none", backlog=_BACKLOG,
            proxy_headers=behind_proxy, log_level="warning", server_header=False, timeout_graceful_shutdown=1,
            timeout_keep_alive=30, h11_max_incomplete_event_size=64_000,
        )  # fmt: skip
        super().__init__(config)
        self._closing = closing
        for name in ("uvicorn.error", "asyncio"):
            logging.getLogger(name).addFilter(FewLines(_LINES_A_MINUTE))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End; what is cut off on the way is nobody's fault, and not worth a traceback each."""
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self._closing()
        await super().shutdown(sockets)


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to this address; ValueError if that is not to be had."""
    # Only on sockets declared as TCP does asyncio send at once; on others every answer waits 40 ms.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        reason = error.strerror or error
        raise ValueError(f"cannot listen on {host}, port {port}: {reason}; choose another --port") from None
    return listening


def limited_protocol(limits: Limits, *, behind_proxy: bool = False) -> type[H11Protocol]:
    """HTTP/1.1 with a time limit on headers, and a cap on connections, in all and per address.

    At the cap a new connection takes the place of one without a request, the oldest of those that never had any first:
    so half-open connections, however many, do not keep others out. If all are busy, the new one is closed. Behind a
    proxy all connections have its address, and the cap per address is the one on all.
    """
    per_address = limits.connections if behind_proxy else limits.connections_per_address

    class LimitedProtocol(H11Protocol):
        _headers_due: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._opened = time.monotonic()
            others = self.connections - {self}
            same = {other for other in others if _address(other) == _address(self)}
            if len(same) >= per_address:
                self._take_the_place_of_one_in(same)
            elif len(others) >= limits.connections:
                self._take_the_place_of_one_in(others)
            self._watch()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._forget_timer()

        def busy(self) -> bool:
            """Whether a request is under way, its headers complete and its answer not."""
            return self.cycle is not None and not self.cycle.response_complete

        def _watch(self) -> None:
            """What comes while no request is under way has to become one in time, even the rest of a refused one."""
            if self.busy():
                self._forget_timer()
            elif self._headers_due is None:
                self._headers_due = self.loop.call_later(limits.header_seconds, self.end)

        def _forget_timer(self) -> None:
            if self._headers_due is not None:
                self._headers_due.cancel()
                self._headers_due = None

        def _take_the_place_of_one_in(self, others: set[Any]) -> None:
            idle = [other for other in others if not other.busy()]
            if idle:
                min(idle, key=lambda other: (other.cycle is not None, other._opened)).end()
            else:
                self.end()

        def end(self) -> None:
            """Close the connection, and no longer count it."""
            self.connections.discard(self)
            self.transport.abort()

    return LimitedProtocol


def _address(connection: Any) -> str | None:
    return connection.client[0] if connection.client else None


class FewLines(logging.Filter):
    """Lets a few lines of a kind through each minute, and says how many were left out before."""

    def __init__(self, most: int, minute: float = 60.0) -> None:
        super().__init__()
        self.most, self.minute = most, minute
        self._since = time.monotonic()
        self._seen: Counter[object] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written; a kind is a place in the code."""
        kind = record.pathname, record.lineno
        if time.monotonic() - self._since > self.minute:
            left_out = sum(max(0, count - self.most) for count in self._seen.values())
            if left_out:
                record.msg = f"{record.msg}\n({left_out} lines like those before were left out)"
            self._since, self._seen = time.monotonic(), Counter()
        self._seen[kind] += 1
        return self._seen[kind] <= self.most
