"""The page itself: one route per static file, so that no part of a request ever becomes part of a path."""

import functools
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse

router = APIRouter()


async def _send(_: Request, path: Path) -> FileResponse:
    return FileResponse(path)


_STATIC = Path(__file__).parents[1] / "static"
for _path in filter(Path.is_file, _STATIC.rglob("*")):
    _url = "/" if _path.name == "index.html" else f"/{_path.relative_to(_STATIC).as_posix()}"
    router.add_route(_url, functools.partial(_send, path=_path))
