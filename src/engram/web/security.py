"""Who may talk to the server: checks of host, origin and token before anything else, and headers after it."""

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
    # Nothing from elsewhere, nothing inline; blob: is for the thumbnails, which never leave the browser.
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
    """Which names a server bound to this address answers to.

    DNS rebinding needs a name under somebody else's control, so addresses are safe; of names, only our own.
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
    """ASGI middleware. Without a token everybody who passes the checks of host and origin is let in."""

    def __init__(self, app: ASGIApp, bound: str, token: str | None, limits: Limits) -> None:
        self.app, self.token, self.accepts, self.limits = app, token, host_check(bound), limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on and add the headers."""
        if scope["type"] == "websocket":  # there are none
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        try:
            answer = self._refusal(scope)
            if answer is None and scope["method"] in _CHANGING and not _is_form(scope):
                receive = await self._whole(receive)
        except RefusedError as error:
            answer = _refuse(error.status, error.detail)
        await (answer or self.app)(scope, receive, send_with_headers)

    async def _whole(self, receive: Receive) -> Receive:
        """Take in a body that is no upload, within limits, and give it back at once."""
        body, most, ended = b"", self.limits.other_bytes, False
        try:
            async with asyncio.timeout(self.limits.seconds):
                while not ended:
                    message = await receive()
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise RefusedError(413, f"more than {most // 1000} kB, and no form with pictures")
                    ended = message["type"] == "http.disconnect" or not message.get("more_body", False)
        except TimeoutError:
            raise RefusedError(408, f"the request took longer than {self.limits.seconds:g} seconds") from None
        given = False

        async def again() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        return again

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        host, origin, site = headers.get("host", ""), headers.get("origin"), headers.get("sec-fetch-site")
        if not self.accepts(host):
            return _refuse(403, "this name is not the server's own; use the address that engram serve printed")
        ours = origin in (None, f"http://{host}", f"https://{host}") and site in (None, "same-origin", "none")
        if scope["method"] in _CHANGING and not ours:
            return _refuse(403, "only the server's own page may send this")
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
        refused = _refuse(401, "open the address with the token in it that engram serve printed when it started")
        refused.headers["WWW-Authenticate"] = "Bearer"
        return refused

    def _matches(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self.token or "").encode())


def _is_form(scope: Scope) -> bool:
    return Headers(scope=scope).get("content-type", "").startswith("multipart/form-data")


def _cookie(text: str) -> str:
    try:
        morsel = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return morsel.value if morsel else ""


def _refuse(status: int, detail: str) -> JSONResponse:
    return JSONResponse({"detail": detail}, status)
