"""Who may use the server: host, origin and token are checked first, and every response gets security headers."""

import asyncio
import hmac
import ipaddress
import socket
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engram.web.limits import Limits, RefusedError

COOKIE = "engram_token"
HEADERS = {
    # Nothing from other sites, nothing inline; blob: is for thumbnails, which never leave the browser.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
        "trusted-types 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(self), microphone=(), geolocation=()",
    "Cache-Control": "no-store",
}
_CHANGING = ("POST", "PUT", "PATCH", "DELETE")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to `host`."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def host_check(bound: str) -> Callable[[str], bool]:
    """A test of the Host header for a server bound to this address.

    DNS rebinding needs a name that somebody else controls: addresses are safe, and of names only our own.
    """
    own = {"localhost", bound.lower()} | (set() if is_loopback(bound) else {socket.gethostname().lower()})

    def accepted(host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        address = _address(name)
        if address is not None and is_loopback(bound):
            return address.is_loopback
        return address is not None or name in own

    return accepted


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


class Guard:
    """ASGI middleware. Without a token, host and origin alone decide who is let in."""

    def __init__(self, app: ASGIApp, bound: str, token: str | None, limits: Limits) -> None:
        self.app, self.token, self.accepts, self.limits = app, token, host_check(bound), limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse the request, or pass it on; add the headers to the response."""
        if scope["type"] != "http":  # there are no WebSocket routes
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            response = self._admit(scope)
            if scope["method"] in _CHANGING:
                receive = self._limit_body(Headers(scope=scope), receive)
        except RefusedError as error:
            response = JSONResponse({"detail": error.detail}, error.status_code, error.headers)
        await (response or self.app)(scope, receive, send_with_headers)

    def _admit(self, scope: Scope) -> Response | None:
        """Refuse a request that may not pass; the address with the token in it is answered with a cookie."""
        headers = Headers(scope=scope)
        host, origin, site = headers.get("host", ""), headers.get("origin"), headers.get("sec-fetch-site")
        if not self.accepts(host):
            raise RefusedError(403, "this is not the server's own name; use the address that engram serve printed")
        ours = origin in (None, f"http://{host}", f"https://{host}") and site in (None, "same-origin", "none")
        if scope["method"] in _CHANGING and not ours:
            raise RefusedError(403, "only the server's own page may send this")
        if self.token is None:
            return None
        query = parse_qs(scope["query_string"].decode("latin-1"))
        if scope["path"] == "/" and self._matches(query.get("token", [""])[0]):
            entered = RedirectResponse("/", status_code=303)
            entered.set_cookie(COOKIE, self.token, httponly=True, samesite="strict", max_age=30 * 24 * 3600)
            return entered
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if self._matches(bearer) or self._matches(_cookie(headers.get("cookie", ""))):
            return None
        detail = "open the address with the token that engram serve printed when it started"
        raise RefusedError(401, detail, {"WWW-Authenticate": "Bearer"})

    def _limit_body(self, headers: Headers, receive: Receive) -> Receive:
        """A `receive` that refuses a body that is too large, or takes too long to arrive."""
        seconds, limit = self.limits.seconds, self.limits.other_bytes
        detail = f"more than {limit // 1000} kB, and not a form with pictures"
        if headers.get("content-type", "").startswith("multipart/form-data"):
            limit = self.limits.upload_bytes
            detail = f"the upload is larger than {limit // 1_000_000} MB; send less at once"
        announced = headers.get("content-length", "")
        if announced.isdigit() and int(announced) > limit:
            raise RefusedError(413, detail)
        deadline = asyncio.get_running_loop().time() + seconds
        received, complete = 0, False

        async def receive_within_limits() -> Message:
            nonlocal received, complete
            if complete:
                return await receive()
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise RefusedError(408, f"sending took longer than {seconds:g} seconds; send less at once") from None
            received += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if received > limit:
                raise RefusedError(413, detail)
            return message

        return receive_within_limits

    def _matches(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self.token or "").encode())


def _cookie(text: str) -> str:
    try:
        morsel = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""
