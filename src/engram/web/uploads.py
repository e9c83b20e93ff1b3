"""Uploaded pictures: parsed and checked in memory, and never written to disk."""

import asyncio
import io
import re
import unicodedata
from dataclasses import dataclass, replace
from typing import Any

from PIL import Image
from starlette.datastructures import FormData, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from engram.names import fault_of_name, fold_name
from engram.store import UNKNOWN, ImageBytes
from engram.web.limits import Limits, RefusedError

# What browsers show and cameras write. Pillow reads many more formats, some by running other programs.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")

_SWITCHES = {
    "distinct": "A class whose name differs from a known one only in case or form is another class.",
}


@dataclass(frozen=True)
class Upload:
    """What a form held, by the number of each picture in it, from 1; `unreadable` are the reasons."""

    labels: dict[int, str]
    pictures: dict[int, ImageBytes]
    pixels: dict[int, int]
    unreadable: dict[int, str]
    distinct: bool = False
    among: tuple[str, ...] | None = None  # the classes that may be answers


class _InMemoryParser(MultiPartParser):
    """Starlette's parser moves large files to disk; with a limit of 0 it never does."""

    spool_max_size = 0


async def parse_form(request: Request, limit: int) -> FormData:
    """Read a form with up to `limit` files."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise RefusedError(415, "send files as multipart/form-data, pictures in fields called picture")
    parser = _InMemoryParser(request.headers, request.stream(), max_files=limit, max_fields=limit)
    try:
        return await parser.parse()
    except MultiPartException as error:
        if error.message.startswith("Too many"):
            raise RefusedError(413, f"more than {limit} files in one request; send fewer at once") from None
        raise RefusedError(400, f"the form cannot be read: {error.message}") from None
    except (KeyError, ValueError):
        raise RefusedError(400, "the form cannot be read: its boundary or its text encoding is missing") from None


async def receive(request: Request, limits: Limits, limit: int, most_pixels: int | None = None) -> Upload:
    """Read a form with up to `limit` files called `picture`, and fields called `label`: one each, one for all, or none.

    Together they may have `most_pixels`, as many as a lesson if it is not given. The size of the form and
    the time to send it are limited before, by `engram.web.security.Guard`.
    """
    form = await parse_form(request, limit)
    files = [part for part in form.getlist("picture") if isinstance(part, UploadFile)]
    labels = [part for part in form.getlist("label") if isinstance(part, str)]
    contents = []
    for file in files:
        contents.append(ImageBytes(await file.read()))
        await file.close()  # at once, lest all of them be there twice
    if not contents:
        raise RefusedError(422, "the form holds no pictures; send them as files in fields called picture")
    upload = await asyncio.to_thread(check_pictures, labels, contents, limits, most_pixels or limits.taught_pixels)
    listed = form.get("among")
    among = unicodedata.normalize("NFC", listed).splitlines() if isinstance(listed, str) else ()
    return replace(
        upload,
        distinct=form.get("distinct") == "true",
        among=tuple(name.strip() for name in among if name.strip()) or None,
    )


def check_pictures(labels: list[str], contents: list[ImageBytes], limits: Limits, most_pixels: int) -> Upload:
    """What there is to look at or to learn, by its number; refused if a name or a size is beyond the limits."""
    if len(labels) not in (0, 1, len(contents)):
        raise RefusedError(422, f"{len(contents)} pictures, but {len(labels)} labels; send one each, or one for all")
    names = [class_name(label, limits) for label in labels]
    if len(names) == 1:
        names *= len(contents)
    upload = Upload(dict(enumerate(names, 1)), {}, {}, {})
    for number, content in enumerate(contents, 1):
        try:
            with Image.open(io.BytesIO(content), formats=FORMATS) as image:
                width, height = image.size
        except Image.DecompressionBombError as error:  # far beyond the limit: Pillow tells no more than how many
            millions = _first_number(error) // 1_000_000
            raise _too_large(f"picture {number} has {millions} million", limits.pixels) from None
        except Exception:  # decoders of untrusted bytes raise anything
            upload.unreadable[number] = f"not a picture this page reads ({', '.join(FORMATS)})"
            continue
        if width * height > limits.pixels:
            raise _too_large(f"picture {number} has {width}×{height}", limits.pixels)
        upload.pictures[number], upload.pixels[number] = content, width * height
    if (together := sum(upload.pixels.values())) > most_pixels:
        raise _too_large(f"these pictures have {together // 1_000_000} million", most_pixels)
    return upload


def _too_large(what: str, most: int) -> RefusedError:
    advice = "make it smaller" if what.startswith("picture ") else "send fewer at once, or make them smaller"
    return RefusedError(413, f"{what} pixels, more than {most // 1_000_000} million; {advice}")


def _first_number(error: Exception) -> int:
    found = re.search(r"\d+", str(error))
    return int(found.group()) if found else 0


def class_name(text: str, limits: Limits) -> str:
    """The name of a class, in Unicode's composed form (NFC) and with single spaces; refused if it is not valid."""
    name = unicodedata.normalize("NFC", " ".join(text.split()))
    fault = fault_of_name(name)
    if len(name) > limits.name_length or (fault and fold_name(name) != UNKNOWN):
        raise RefusedError(422, f"the name of a class has 1 to {limits.name_length} printable characters")
    if fault:
        raise RefusedError(422, fault)
    return name


def form_schema(*, labelled: bool) -> dict[str, Any]:
    """The form that `receive` reads, as OpenAPI has it."""
    fields: dict[str, Any] = {
        "picture": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string", "format": "binary"},
            "description": "Image files. Their names are ignored.",
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
    else:
        fields["among"] = {"type": "string", "description": "The classes that may be answers, one a line; else all."}
    required = [name for name in fields if name not in (*_SWITCHES, "among")]
    schema = {"type": "object", "required": required, "properties": fields}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}
