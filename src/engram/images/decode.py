"""One picture, however it is stored, as upright 8-bit RGB."""

import contextlib
import io
import os
import threading
from typing import IO, Any

import numpy as np
from PIL import Image, UnidentifiedImageError
from PIL.JpegImagePlugin import JpegImageFile

from engram.images.crop import Crop

ImageSource = str | os.PathLike[str] | bytes | IO[bytes] | np.ndarray[Any, Any] | Image.Image | Crop

_ORIENTATION = 0x0112  # the EXIF tag, and how each of its values is turned upright
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}

_STRIP = 1_000_000  # pixels
_REDUCTIONS = (2, 4)  # at which a JPEG beyond the limit is decoded; the larger ones are refused

# Pillow reads HEIC, which iPhones write, once another package has been told to help it.
with contextlib.suppress(ImportError):
    from pillow_heif import register_heif_opener

    register_heif_opener()

# A PIL image that was opened but not read yet must not be read by two threads at once.
_reading = threading.Lock()


class ImageError(ValueError):
    """A picture that cannot be read: `name` says which, `reason` why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason


def load_image(source: ImageSource, name: str | None = None, enough: int | None = None) -> Image.Image:
    """Read a picture from a path, the bytes of a file, an open file, a uint8 array, a PIL image or a `Crop`, as RGB.

    EXIF orientation is applied, transparency is laid on white, 16-bit grey is scaled to 8 bits (not clipped). A JPEG
    beyond Pillow's limit (`PIL.Image.MAX_IMAGE_PIXELS`) is read at a half or a quarter of its width and height.
    One whose sides are at least twice `enough`, or four or eight times, is read at that part of them. Whatever is wrong
    with a picture, another one beyond that limit included, is an `ImageError`.
    """
    name = name or source_name(source) or "image"
    if isinstance(source, Crop):
        return source.cut(load_image(source.path, name))
    try:
        if isinstance(source, Image.Image):
            with _reading:
                source.load()
            return _rgb(_upright(source))
        if isinstance(source, np.ndarray):
            return _from_array(source)
        file = io.BytesIO(source) if isinstance(source, bytes) else source
        with _open(file) as image:
            # Pillow only warns between one and two times its limit, and warnings cannot be caught per thread.
            if _is_beyond_limit(image.size) and not _reduce(image):
                raise ValueError(f"{image.width}×{image.height} is beyond {_limit()}")
            if enough is not None:
                image.draft(None, (enough, enough))  # what is no JPEG does nothing
            image.load()
            return _rgb(_upright(image))
    except OSError as error:
        raise ImageError(name, _reason(error.strerror or error, error)) from error
    except Exception as error:  # decoders of untrusted bytes raise anything: SyntaxError, struct.error, EOFError, …
        raise ImageError(name, _reason(error, error)) from error


def _open(file: Any) -> Image.Image:
    """Open a picture, also a JPEG of more than twice the limit, which Pillow refuses before one can ask for less."""
    try:
        return Image.open(file)
    except Image.DecompressionBombError:
        if hasattr(file, "seek"):
            file.seek(0)
        try:
            return JpegImageFile(file)
        except SyntaxError:
            raise ValueError(f"it is far beyond {_limit()}") from None


def _limit() -> str:
    return (
        f"the limit of {Image.MAX_IMAGE_PIXELS} pixels; "
        "--max-pixels sets another (in Python, PIL.Image.MAX_IMAGE_PIXELS)"
    )


def _is_beyond_limit(size: tuple[int, int]) -> bool:
    return Image.MAX_IMAGE_PIXELS is not None and size[0] * size[1] > Image.MAX_IMAGE_PIXELS


def _reduce(image: Image.Image) -> bool:
    """Have a JPEG decoded at the first reduction that is within the limit; False if there is none."""
    width, height = image.size
    for factor in _REDUCTIONS if isinstance(image, JpegImageFile) else ():
        smaller = (-(-width // factor), -(-height // factor))
        if not _is_beyond_limit(smaller):
            image.draft(None, (width // factor, height // factor))
            return not _is_beyond_limit(image.size)
    return False


def source_name(source: object) -> str:
    """Return the name of a picture: its path, or the name its file object has; "" if there is none."""
    if isinstance(source, str | os.PathLike):
        return str(source)
    return str(getattr(source, "filename", "") or getattr(source, "name", ""))


def _reason(text: object, error: Exception) -> str:
    # Pillow names an in-memory file by its address, which tells nobody anything.
    if isinstance(error, UnidentifiedImageError):
        return "not a picture in any format Pillow knows"
    return " ".join(str(text).split()) or type(error).__name__


def _upright(image: Image.Image) -> Image.Image:
    try:
        orientation = image.getexif().get(_ORIENTATION)
    except Exception:
        return image  # broken EXIF data say nothing about the pixels
    method = _UPRIGHT.get(orientation) if isinstance(orientation, int) else None
    return image if method is None else image.transpose(method)


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I") or image.mode == "F":
        return _from_deep_grey(image)
    if image.has_transparency_data:
        if image.mode == "La":
            image = image.convert("LA")
        image = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return image if image.mode == "RGB" else image.convert("RGB")


def _from_deep_grey(image: Image.Image) -> Image.Image:
    """Scale grey values of more than 8 bits to 8.

    16-bit images, as which older Pillows report mode I for PNG, span 0..65535 by definition. For other integers and for
    floats no file says what is white: 0..1 (floats), 0..255 and 0..65535 are taken for what they look like, anything
    else is stretched from its darkest to its brightest value. It is done in strips: in 64 bits a large image would take
    gigabytes.
    """
    grey = np.asarray(image)
    strips = np.array_split(grey.reshape(-1), -(-grey.size // _STRIP))
    if image.mode.startswith("I;16") or image.format == "PNG":
        low, high = 0.0, 65535.0
    else:
        low = min(float(_as_doubles(strip).min()) for strip in strips)
        high = max(float(_as_doubles(strip).max()) for strip in strips)
        if low >= 0 and high <= 65535:
            low, high = 0.0, 1.0 if image.mode == "F" and high <= 1 else 255.0 if high <= 255 else 65535.0
    factor = 255.0 / ((high - low) or 1.0)
    scaled = np.concatenate([np.rint((_as_doubles(strip) - low) * factor).astype(np.uint8) for strip in strips])
    return Image.fromarray(scaled.reshape(grey.shape)).convert("RGB")


def _as_doubles(strip: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    doubles: np.ndarray[Any, Any] = np.nan_to_num(strip.astype(np.float64))
    return doubles


def _from_array(array: np.ndarray[Any, Any]) -> Image.Image:
    if array.dtype != np.uint8 or not (array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)):
        raise ValueError(f"expected a uint8 array (H, W, 3) or (H, W), got {array.dtype} {array.shape}")
    return Image.fromarray(array).convert("RGB")
