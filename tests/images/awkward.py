"""Pictures as people have them, made here: modes, orientations and sizes that a decoder may trip over."""

import functools
import io
from typing import Any

import numpy as np
from PIL import Image


def scene(width: int, height: int, seed: int, channels: int = 3) -> np.ndarray[Any, Any]:
    """Waves and a disc, no two alike, uint8."""
    random, (y, x) = np.random.RandomState(seed), np.mgrid[:height, :width] / max(width, height)
    waves = [np.sin(a * x + b * y + c) for a, b, c in random.uniform(3, 25, (channels, 3))]
    disc = (np.hypot(x - random.uniform(0.2, 0.6), y - random.uniform(0.2, 0.6)) < 0.2) * 60.0
    shades = [100 + 60 * wave + disc * random.uniform(-1, 1) for wave in waves]
    return np.stack(shades, axis=2).clip(0, 255).round().astype(np.uint8)


def _file(image: Image.Image, kind: str = "png", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def _turned(orientation: int, seed: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return _file(Image.fromarray(scene(300, 200, seed)), "jpeg", quality=92, exif=exif)


@functools.cache
def readable() -> dict[str, bytes]:
    """Twenty files."""
    rgb = [Image.fromarray(scene(width, height, seed)) for seed, (width, height) in enumerate([(320, 240), (200, 331)])]
    clear = Image.fromarray(np.dstack([scene(150, 150, 3), scene(150, 150, 4, 1)]))
    deep = Image.fromarray(scene(240, 180, 5, 1)[:, :, 0].astype(np.uint16) * 251)
    palette = rgb[0].quantize(32, method=Image.Quantize.MEDIANCUT)
    frames = [Image.fromarray(scene(120, 90, seed)) for seed in (6, 7, 8)]
    grey = rgb[1].convert("L")
    return {
        "jpeg": _file(rgb[0], "jpeg", quality=90),
        "progressive": _file(rgb[1], "jpeg", quality=75, progressive=True, subsampling=2),
        "cmyk": _file(Image.fromarray(scene(160, 200, 9, 4), "CMYK"), "jpeg", quality=95),
        "grey jpeg": _file(grey, "jpeg", quality=30),
        "turned by 6": _turned(6, 10),
        "turned by 3": _turned(3, 11),
        "turned by 5": _turned(5, 12),
        "large": _file(Image.fromarray(scene(1500, 1000, 13)), "jpeg", quality=80),
        "16 bits": _file(deep),
        "palette": _file(palette),
        "palette with transparency": _file(palette, transparency=3),
        "grey and clear": _file(Image.merge("LA", (grey, grey.point(lambda shade: 255 - shade)))),
        "clear": _file(clear),
        "black and white": _file(grey.convert("1")),
        "one column": _file(rgb[0].crop((100, 0, 101, 240))),
        "one row": _file(rgb[1].crop((0, 40, 200, 41))),
        "one pixel": _file(rgb[0].crop((40, 40, 41, 41))),
        "tiny": _file(rgb[0].crop((150, 150, 157, 155)), "bmp"),
        "animated": _file(frames[0], "gif", save_all=True, append_images=frames[1:], duration=40),
        "as the network takes it": _file(Image.fromarray(scene(224, 224, 14))),
    }


def unreadable() -> dict[str, bytes]:
    whole = readable()
    return {
        "half a jpeg": whole["jpeg"][: len(whole["jpeg"]) // 2],
        "half a png": whole["clear"][: len(whole["clear"]) // 2],
        "no byte": b"",
        "text": b"this is no picture",
        "a header alone": whole["16 bits"][:40],
    }
