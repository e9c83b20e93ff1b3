"""Uploaded pictures: parsed and checked in memory, and never written to disk."""

import asyncio
import io
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from engram.store import UNKNOWN, ImageBytes
from engram.web.limits import Limits, RefusedError

# What browsers show and cameras write. Pillow reads many more formats, some by running other programs.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")

_SWITCHES = {
    "keep_examples": "For a first lesson: keep vectors of some held-back pictures in the file, to check again later.",
    "distinct": "A class whose name differs from a known one only in case or form is another class.",
}


@dataclass(frozen=True)
class Upload:
    """What a form held, by the number of each picture in it, from 1; `unreadable` are the reasons."""

    labels: dict[int, str]
    pictures: dict[int, ImageBytes]
    unreadable: dict[int, str]
    keep_examples: bool = False
    distinct: bool = False


class _InMemoryParser(MultiPartParser):
    """Starlette's parser moves large files to disk; with a limit of 0 it never does."""

    spool_max_size = 0


async def receive(request: Request, limits: Limits, limit: int) -> Upload:
    """Read a form with up to `limit` files called `picture`, and fields called `label`: one each, one for all, or none.

    The size of the form and the time to send it are limited before, by `engram.web.security.Guard`.
    """
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise RefusedError(415, "send pictures as multipart/form-data, in fields called picture")
    parser = _InMemoryParser(request.headers, request.stream(), max_files=limit, max_fields=limit)
    try:
        form = await parser.parse()
    except MultiPartException as error:
        if error.message.startswith("Too many"):
            raise RefusedError(413, f"more than {limit} pictures in one request; send fewer at once") from None
        raise RefusedError(400, f"the form cannot be read: {error.message}") from None
    except (KeyError, ValueError):
        raise RefusedError(400, "the form cannot be read: its boundary or its text encoding is missing") from None
    files = [part for part in form.getlist("picture") if isinstance(part, UploadFile)]
    labels = [part for part in form.getlist("label") if isinstance(part, str)]
    contents = [ImageBytes(await file.read()) for file in files]
    await form.close()
    if not contents:
        raise RefusedError(422, "the form holds no pictures; send them as files in fields called picture")
    upload = await asyncio.to_thread(_check, labels, contents, limits)
    return replace(upload, keep_examples=form.get("keep_examples") == "true", distinct=form.get("distinct") == "true")


def _check(labels: list[str], contents: list[ImageBytes], limits: Limits) -> Upload:
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
    """The name of a class, with single spaces; refused if it is not a valid name."""
    name = " ".join(text.split())
    if not name or len(name) > limits.name_length or not name.isprintable():
        raise RefusedError(422, f"the name of a class has 1 to {limits.name_length} printable characters")
    if name.casefold() == UNKNOWN:
        raise RefusedError(422, f"a class cannot be called {UNKNOWN!r}: that is what pictures of no class are called")
    return name


def form_schema(*, labelled: bool) -> dict[str, Any]:
    """The form that `receive` reads, as OpenAPI has it."""
    fields: dict[str, Any] = {
        "picture": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string", "format": "binary"},
            "description": "ImageBytes files. Their names are ignored.",
        }
    }
    if labelled:
        fields["label"] = {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string", "minLength": 1, "maxLength": 80, "pattern": r"\S"},
            "description": "The class name of each picture, in the same order; a single one is for all pictures.",
        }
        for name, description in _SWITCHES.items():
            fields[name] = {"type": "boolean", "description": description}
    required = [name for name in fields if name not in _SWITCHES]
    schema = {"type": "object", "required": required, "properties": fields}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}
