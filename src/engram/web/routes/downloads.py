"""GET /api/model/file, onnx and report: downloads."""

import os
from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response, StreamingResponse

from engram.web.limits import RefusedError
from engram.web.report import write_report
from engram.web.schemas import problems
from engram.web.server import InjectedServer

router = APIRouter(tags=["download"])

_BINARY = "application/octet-stream"
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {_BINARY: {"schema": {"type": "string", "format": "binary"}}}},
    **problems(409, 503),
}
_CHUNK = 1 << 20


@router.get("/api/model/file", response_class=StreamingResponse, responses=_FILE)
async def model_file(server: InjectedServer) -> StreamingResponse:
    """The model file itself."""
    await server.existing()
    opened = server.store.path.open("rb")  # once, so that the file may be replaced meanwhile
    headers = {**_save_as(server.store.path.name), "Content-Length": str(os.fstat(opened.fileno()).st_size)}
    return StreamingResponse(_chunks(opened), media_type=_BINARY, headers=headers)


@router.get("/api/model/onnx", response_class=Response, responses=_FILE)
async def onnx_file(server: InjectedServer) -> Response:
    """The model as one ONNX graph, pictures in, scores out. Making it takes some seconds, once for each version."""
    await server.existing()
    if not server.can_export:
        raise RefusedError(409, "ONNX is not installed here; pip install 'engram-learn[onnx]', and start again")
    content = await server.exports.get()
    return Response(content, media_type=_BINARY, headers=_save_as(f"{server.store.path.stem}.onnx"))


@router.get("/api/model/report", response_class=HTMLResponse, responses=problems(409, 503))
async def report(server: InjectedServer) -> HTMLResponse:
    """All that is known about the model, as an HTML page that needs no other file."""
    await server.existing()
    return HTMLResponse(write_report(await server.view()), headers=_save_as(f"{server.store.path.stem}-report.html"))


def _save_as(name: str) -> dict[str, str]:
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}


def _chunks(opened: IO[bytes]) -> Iterator[bytes]:
    with opened:
        while chunk := opened.read(_CHUNK):
            yield chunk
