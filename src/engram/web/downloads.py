"""What can be taken away: the model file, its ONNX graph, a report."""

import asyncio
import os
import sys
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

from fastapi.responses import Response, StreamingResponse

from engram.html import document
from engram.web.limits import RefusedError
from engram.web.views import ModelView

_CHUNK = 1 << 20
_one_export = asyncio.Semaphore(1)


def attachment(name: str) -> str:
    """The header that has a browser save what it gets."""
    return f"attachment; filename*=UTF-8''{quote(name, safe='')}"


def content(media_type: str) -> dict[int | str, dict[str, Any]]:
    """A file, as OpenAPI has it."""
    return {200: {"content": {media_type: {"schema": {"type": "string", "format": "binary"}}}}}


def file(path: Path, name: str) -> StreamingResponse:
    """A file as it is now; opened once, so that it may be replaced meanwhile."""
    opened = path.open("rb")
    headers = {"Content-Disposition": attachment(name), "Content-Length": str(os.fstat(opened.fileno()).st_size)}
    return StreamingResponse(_chunks(opened), media_type="application/octet-stream", headers=headers)


def _chunks(opened: IO[bytes]) -> Iterator[bytes]:
    with opened:
        while chunk := opened.read(_CHUNK):
            yield chunk


async def onnx(model: Path) -> Response:
    """Run `engram export` in a process of its own: torch's exporter would keep predictions waiting."""
    command = "from engram.web.worker import stand_back; stand_back(); from engram.cli import main; main()"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "model.onnx"
        async with _one_export:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", command, "export", str(model.resolve()), str(out), "--quiet",
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            try:
                _, said = await process.communicate()
            except asyncio.CancelledError:
                process.kill()
                raise
        if process.returncode != 0:
            reason = said.decode(errors="replace").strip().removeprefix("error: ")
            raise RefusedError(409, f"it cannot be exported: {reason}")
        headers = {"Content-Disposition": attachment(f"{model.stem}.onnx")}
        return Response(out.read_bytes(), media_type="application/octet-stream", headers=headers)


def report(model: ModelView) -> str:
    """The model in words and tables."""
    taught = sum(sum(change.pictures.values()) for change in model.history if change.what in ("base", "learn", "more"))
    size = sum(change.bytes for change in model.history)
    tiles = {
        "classes": f"{len(model.classes):,}",
        "pictures learned from": f"{taught:,}",
        "kept per class": f"{model.bytes_per_class:,} bytes",
        "the model file": f"{model.bytes / 1e6:,.1f} MB",
    }
    if size:
        tiles["of pictures, not kept"] = f"{size / 1e6:,.1f} MB"
    items = "".join(f"<li><b>{value}</b><span>{what}</span></li>" for what, value in tiles.items())
    classes = [
        [one.name, f"{one.pictures:,}", one.learned or "", {None: "", 0: "base"}.get(one.increment, str(one.increment)),
         ", ".join(f"{near.name} ({near.similarity:.2f})" for near in one.neighbours)]
        for one in model.classes
    ]  # fmt: skip
    changes = [
        [change.when, change.what, ", ".join(change.pictures) + (f" → {change.new_name}" if change.new_name else ""),
         f"{sum(change.pictures.values()):,}", f"{change.right} of {change.checked}" if change.checked else ""]
        for change in model.history
    ]  # fmt: skip
    unknown = model.unknown
    parts = [
        f"<h1>{escape(model.name)}</h1>",
        f'<ul class="tiles">{items}</ul>',
        f"<p>Version {model.version}. Pictures are seen by {escape(model.backbone)}.</p>",
        f"<p>Below a similarity of {unknown.similarity:.3f} a picture is of no known class.</p>" if unknown else "",
        "<h2>Classes</h2>" + _table(["class", "pictures", "learned", "increment", "nearest classes"], classes),
        "<h2>Changes</h2>" + _table(["when", "what", "classes", "pictures", "held-back pictures right"], changes),
        "<p>Not kept: no picture, no feature vector of a picture, no file name.</p>",
    ]
    return document(f"engram: {model.name}", parts)


def _table(head: list[str], rows: list[list[str]]) -> str:
    top = "".join(f'<th scope="col" class="text">{escape(text)}</th>' for text in head)
    body = "".join("<tr>" + "".join(f'<td class="text">{escape(text)}</td>' for text in row) + "</tr>" for row in rows)
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
