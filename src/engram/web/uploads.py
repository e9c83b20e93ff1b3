"""Pictures that clients send: taken into memory, looked at there, and never written anywhere."""

import asyncio
import io
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from PIL import Image
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from engram.store import UNKNOWN, ImageBytes
from engram.web.limits import Limits, RefusedError

# What browsers show and cameras write. Pillow knows many more, and some of them run other programs.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")


@dataclass(frozen=True)
class Upload:
    """What a form held: pictures by their number in it, counted from 1, and the numbers of those nobody can read."""

    labels: dict[int, str]
    pictures: dict[int, ImageBytes]
    unreadable: dict[int, str]


class _InMemoryParser(MultiPartParser):
    """Starlette's parser moves large files to the disk; one with a limit of 0 never does."""

    spool_max_size = 0


async def receive(request: Request, limits: Limits, most: int) -> Upload:
    """Read a multipart form with `picture` files and, if there are any, `label` fields: one each, or one for all."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise RefusedError(415, "send pictures as multipart/form-data, in fields called picture")
    parser = _InMemoryParser(request.headers, _limited(request, limits), max_files=most, max_fields=most)
    try:
        async with asyncio.timeout(limits.seconds):
            form = await parser.parse()
    except TimeoutError:
        raise RefusedError(408, f"the upload took longer than {limits.seconds:g} seconds; send less at once") from None
    except MultiPartException as error:
        if error.message.startswith("Too many"):
            raise RefusedError(413, f"more than {most} pictures in one request; send fewer at once") from None
        raise RefusedError(400, f"the form cannot be read: {error.message}") from None
    except (KeyError, ValueError):
        raise RefusedError(400, "the form cannot be read: it names no boundary, or no encoding of its text") from None
    files = [part for part in form.getlist("picture") if isinstance(part, UploadFile)]
    labels = [part for part in form.getlist("label") if isinstance(part, str)]
    contents = [ImageBytes(await file.read()) for file in files]
    await form.close()
    if not contents:
        raise RefusedError(422, "the form holds no pictures; send them as files in fields called picture")
    return await asyncio.to_thread(_sorted_out, labels, contents, limits)


async def _limited(request: Request, limits: Limits) -> AsyncGenerator[bytes, None]:
    too_large = RefusedError(413, f"the upload is larger than {limits.upload_bytes // 1_000_000} MB; send less at once")
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > limits.upload_bytes:
        raise too_large
    received = 0
    async for chunk in request.stream():
        received += len(chunk)
        if received > limits.upload_bytes:
            raise too_large
        yield chunk


def _sorted_out(labels: list[str], contents: list[ImageBytes], limits: Limits) -> Upload:
    if len(labels) not in (0, 1, len(contents)):
        raise RefusedError(422, f"{len(contents)} pictures, but {len(labels)} labels; send one each, or one for all")
    names = [class_name(label, limits) for label in labels]
    if len(names) == 1:
        names *= len(contents)
    upload = Upload(dict(enumerate(names, 1)), {}, {})
    for number, content in enumerate(contents, 1):
        try:
            with Image.open(io.BytesIO(content), formats=FORMATS) as image:
                width, height = image.size
        except Exception:  # decoders of untrusted bytes raise anything
            upload.unreadable[number] = f"not a picture this page reads ({', '.join(FORMATS)})"
            continue
        if width * height > limits.pixels:
            raise RefusedError(
                413,
                f"picture {number} has {width}×{height} pixels, more than {limits.pixels // 1_000_000} million; "
                "make it smaller",
            )
        upload.pictures[number] = content
    return upload


def class_name(text: str, limits: Limits) -> str:
    """A name for a class, without space around it; refused if it cannot be one."""
    name = " ".join(text.split())
    if not name or len(name) > limits.name_length or not name.isprintable():
        raise RefusedError(422, f"the name of a class has 1 to {limits.name_length} printable characters")
    if name.casefold() == UNKNOWN:
        raise RefusedError(
            422, f"a class cannot be called {UNKNOWN!r}, as that is what pictures of no class are called"
        )
    return name


FORM: dict[str, Any] = {
    "type": "object",
    "required": ["picture"],
    "properties": {
        "picture": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string", "format": "binary"},
            "description": "Picture files. What they are called is not looked at.",
        }
    },
}
LABEL: dict[str, Any] = {
    "type": "array",
    "minItems": 1,
    "items": {"type": "string", "minLength": 1, "maxLength": 80, "pattern": r"\S"},
    "description": "The name of the class each picture shows, in the same order; a single one holds for all pictures.",
}


def form_schema(*, labelled: bool) -> dict[str, Any]:
    """What `receive` takes, as OpenAPI has it."""
    schema = FORM
    if labelled:
        schema = {**FORM, "required": ["picture", "label"], "properties": {**FORM["properties"], "label": LABEL}}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}
