"""The pictures of Label Studio's tasks: from a folder here, or from Label Studio itself, and from nowhere else.

Whoever may add tasks chooses their addresses, so none is followed to another host: not by its name, and not by a
redirection. The token goes to Label Studio alone.
"""

import json
import os
import time
from email.message import Message
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import parse_qs, quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from engram.store import ImageBytes
from engram.web.addresses import PublicUrl

MOST = 64_000_000  # bytes of a picture
SECONDS = 20.0  # to fetch one
PIECE = 1 << 16
SERVED = ("/data/", "/storage-data/")  # where Label Studio has pictures
LOCAL = "/data/local-files/"
LASTS = 240.0  # seconds that a token got by another is used; Label Studio says five minutes


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> Request | None:
        return None


class LabelStudioFiles:
    """Reads pictures by the addresses that tasks have: `url` is Label Studio's own, `token` one of its access tokens.

    `folder` is what Label Studio has as LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT, where it can be read from here.
    """

    def __init__(self, url: str | None = None, token: str | None = None, folder: Path | None = None) -> None:
        self.url, self.token = PublicUrl.parse(url) if url else None, token
        self.folder = folder.resolve() if folder else None
        self._open = build_opener(_NoRedirects).open
        self._access: tuple[str, float] | None = None

    def read(self, address: str) -> ImageBytes:
        """The picture at an address; ValueError says why it cannot be had."""
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            if self.url is None or f"{parts.scheme}://{parts.netloc}".lower() != self.url.origin:
                raise ValueError(f"{address} does not lie on Label Studio's own host; upload it there, or serve it so")
            parts = parts._replace(path="/" + parts.path.removeprefix(self.url.path))
        if not parts.path.startswith(SERVED) or ".." in parts.path.split("/"):
            raise ValueError(f"{address!r} is no address of a picture in Label Studio, such as /data/upload/1/a.jpg")
        if self.folder is not None and parts.path == LOCAL:
            return self._read_local(self.folder, parse_qs(parts.query).get("d", [""])[0])
        return ImageBytes(self._fetch(parts.path + (f"?{parts.query}" if parts.query else "")))

    def _read_local(self, folder: Path, name: str) -> ImageBytes:
        file = (folder / name).resolve()
        if not file.is_relative_to(folder) or not os.path.isfile(file):
            raise ValueError(f"{name!r} is no file in {folder}")
        if file.stat().st_size > MOST:
            raise ValueError(f"{name!r} is larger than {MOST // 1_000_000} MB")
        return ImageBytes(file.read_bytes())

    def task(self, number: int | str | None) -> dict[str, Any]:
        """A task as Label Studio has it."""
        try:
            found = json.loads(self._fetch(f"/api/tasks/{quote(str(number), safe='')}/"))
        except json.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise ValueError(f"Label Studio's answer about task {number} is not JSON")
        return found

    def _fetch(self, path: str) -> bytes:
        if self.url is None or not self.token:
            raise ValueError(
                f"{path} lies in Label Studio; give its address with --label-studio-url and one of its access tokens "
                "in LABEL_STUDIO_API_KEY"
            )
        return self._get(Request(str(self.url) + path[1:], headers={"Authorization": self._authorization()}))

    def _authorization(self) -> str:
        """A token of the older kind is sent as it is; one of the newer is good for getting one that lasts minutes."""
        token = self.token or ""
        if token.count(".") != 2:
            return f"Token {token}"
        if self._access is None or time.monotonic() > self._access[1]:
            request = Request(
                f"{self.url}api/token/refresh",
                json.dumps({"refresh": token}).encode(),
                {"Content-Type": "application/json"},
            )
            self._access = str(json.loads(self._get(request))["access"]), time.monotonic() + LASTS
        return f"Bearer {self._access[0]}"

    def _get(self, request: Request) -> bytes:
        until, content = time.monotonic() + SECONDS, bytearray()
        try:
            with self._open(request, timeout=SECONDS) as answer:
                while piece := answer.read(PIECE):
                    content += piece
                    if len(content) > MOST:
                        raise ValueError(f"{request.selector} is larger than {MOST // 1_000_000} MB")
                    if time.monotonic() > until:
                        raise ValueError(f"{request.selector} took longer than {SECONDS:g} seconds")
        except HTTPError as error:
            raise ValueError(f"Label Studio answers {error.code} for {request.selector}") from None
        except URLError as error:
            raise ValueError(f"Label Studio cannot be reached at {self.url}: {error.reason}") from None
        return bytes(content)
