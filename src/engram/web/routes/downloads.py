"""GET /api/model/file, onnx and card: downloads."""

import asyncio
import os
from collections.abc import Iterator
from typing import IO, Any
from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response, StreamingResponse

from engram.store import model_card
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
    """The model as one ONNX graph, pictures in, answers out. Making it takes a second or two, once for each version."""
    content = await server.exports.get(await server.existing())
    return Response(content, media_type=_BINARY, headers=_save_as(f"{server.store.path.stem}.onnx"))


@router.get("/api/model/card", response_class=PlainTextResponse, responses=problems(409, 503))
async def card(server: InjectedServer) -> PlainTextResponse:
    """The model card, in Markdown: classes, accuracy, what is kept, limits."""
    snapshot = await server.existing()
    text = await asyncio.to_thread(model_card, server.store, snapshot.model)
    return PlainTextResponse(text, headers=_save_as(f"{server.store.path.stem}.md"))


def _save_as(name: str) -> dict[str, str]:
    return {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}"}


def _chunks(opened: IO[bytes]) -> Iterator[bytes]:
    with opened:
        while chunk := opened.read(_CHUNK):
            yield chunk
