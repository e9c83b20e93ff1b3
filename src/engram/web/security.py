"""Who may use the server: host, origin and token are checked first, and every response gets security headers."""

import asyncio
import hmac
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engram.web.addresses import PublicUrl, host_check
from engram.web.limits import Limits, RefusedError

HEADERS = {
    # Nothing from other sites, nothing inline; blob: is for thumbnails, which never leave the browser.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
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
_WITHOUT_TOKEN = ("/style.css", "/icon.svg")  # the page that asks for the token is made with them
_REMEMBERED = 30 * 24 * 3600  # seconds


class Guard:
    """ASGI middleware. Without a token, host and origin alone decide who is let in.

    A token that outlives the server (`token_is_kept`) is remembered by browsers for a month, another until they close.
    """

    def __init__(
        self,
        app: ASGIApp,
        bound: str,
        token: str | None,
        limits: Limits,
        *,
        public: PublicUrl | None = None,
        token_is_kept: bool = False,
    ) -> None:
        self.app, self.token, self.limits, self.public = app, token, limits, public
        self.accepts = host_check(bound, public)
        self.bytes_in_flight = 0
        self._remembered = _REMEMBERED if token_is_kept else None
        self._asks_for_token = (Path(__file__).parent / "token.html").read_text(encoding="utf-8")

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

        body = None
        try:
            response = self._admit(scope)
            if scope["method"] in _CHANGING:
                receive = body = _Body(self, Headers(scope=scope), receive)
        except RefusedError as error:
            response = JSONResponse({"detail": error.detail}, error.status_code, error.headers)
        try:
            await (response or self.app)(scope, receive, send_with_headers)
        finally:
            if body is not None:
                body.release()

    def _admit(self, scope: Scope) -> Response | None:
        """Refuse a request that may not pass; the address with the token in it is answered with a cookie."""
        headers, path = Headers(scope=scope), scope["path"]
        host, origin, site = headers.get("host", ""), headers.get("origin"), headers.get("sec-fetch-site")
        if not self.accepts(host):
            raise RefusedError(403, "this is not the server's own name; use the address that engram serve printed")
        origins = (None, f"http://{host}", f"https://{host}", self.public and self.public.origin)
        ours = origin in origins and site in (None, "same-origin", "none")
        if not ours and (path.startswith("/api/") or scope["method"] in _CHANGING):
            raise RefusedError(403, "only the server's own page may send this")
        if self.token is None or path in _WITHOUT_TOKEN:
            return None
        query, cookie = parse_qs(scope["query_string"].decode("latin-1")), _cookie_name(host)
        if path == "/" and self._matches(query.get("token", [""])[0]):
            entered = RedirectResponse("./", status_code=303)
            entered.set_cookie(
                cookie, self.token, max_age=self._remembered, path=self.public.path if self.public else "/",
                secure=self.public.secure if self.public else scope["scheme"] == "https",
                httponly=True, samesite="lax",  # strict would keep a link in a mail from opening the page
            )  # fmt: skip
            return entered
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        if self._matches(bearer) or any(map(self._matches, _cookies(headers.get("cookie", ""), cookie))):
            return None
        if path == "/" and "text/html" in headers.get("accept", ""):
            wrong = "That is not the token of this server." if "token" in query else ""
            return HTMLResponse(self._asks_for_token.replace("{problem}", wrong), 401)
        detail = "open the address with the token that engram serve printed when it started"
        raise RefusedError(401, detail, {"WWW-Authenticate": "Bearer"})

    def _matches(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), (self.token or "").encode())


class _Body:
    """A `receive` that refuses a body that is too large, too slow, or too much beside those of other requests."""

    def __init__(self, guard: Guard, headers: Headers, receive: Receive) -> None:
        self._guard, self._limits, self._receive = guard, guard.limits, receive
        self._deadline = asyncio.get_running_loop().time() + self._limits.seconds
        self._received, self._complete = 0, False
        self._most = self._limits.other_bytes
        self._too_large = f"more than {self._most // 1000} kB, and not a form with pictures"
        if headers.get("content-type", "").startswith("multipart/form-data"):
            self._most = self._limits.upload_bytes
            self._too_large = f"the upload is larger than {self._most // 1_000_000} MB; send less at once"
        announced = headers.get("content-length", "")
        if announced.isdigit() and int(announced) > self._most:
            raise RefusedError(413, self._too_large)

    async def __call__(self) -> Message:
        if self._complete:
            return await self._receive()
        limits = self._limits
        until = min(self._deadline, asyncio.get_running_loop().time() + limits.silent_seconds)
        try:
            async with asyncio.timeout_at(until):
                message = await self._receive()
        except TimeoutError:
            detail = f"nothing came for {limits.silent_seconds:g} seconds; send it again"
            if until == self._deadline:
                detail = f"sending took longer than {limits.seconds:g} seconds; send less at once"
            raise RefusedError(408, detail) from None
        size = len(message.get("body", b""))
        self._received += size
        self._guard.bytes_in_flight += size
        self._complete = not message.get("more_body", False)
        if self._received > self._most:
            raise RefusedError(413, self._too_large)
        if self._guard.bytes_in_flight > limits.bytes_in_flight:
            raise RefusedError(429, "too many pictures are being sent at the same time; send these in a moment")
        return message

    def release(self) -> None:
        """What was received is in other hands now, or gone."""
        self._guard.bytes_in_flight -= self._received


def _cookie_name(host: str) -> str:
    """Browsers give a cookie to every port of a host: each server there needs a name of its own."""
    try:
        return f"engram_token_{urlsplit(f'//{host}').port or ''}"
    except ValueError:  # no port at all
        return "engram_token_"


def _cookies(header: str, name: str) -> list[str]:
    """The values of a cookie; there are several where pages lie below each other's paths."""
    pairs = (pair.partition("=") for pair in header.split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]
