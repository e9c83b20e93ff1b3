"""The page itself: one route per static file, so that no part of a request ever becomes part of a path."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse

router = APIRouter()


def _sender(path: Path) -> Callable[[Request], Awaitable[FileResponse]]:
    async def send(_: Request) -> FileResponse:
        return FileResponse(path)

    return send


for _path in (Path(__file__).parents[1] / "static").iterdir():
    router.add_route("/" if _path.name == "index.html" else f"/{_path.name}", _sender(_path))
