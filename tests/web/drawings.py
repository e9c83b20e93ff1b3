"""Synthetic pictures: simple shapes in random colours, places and sizes."""

import io

import numpy as np
from PIL import Image, ImageDraw

SHAPES = ("circle", "stripes", "dots", "square", "triangle")


def draw(shape: str, seed: int, size: int = 160) -> bytes:
    """A PNG file; the same one for the same arguments."""
    rng = np.random.default_rng([seed, SHAPES.index(shape)])
    paper, ink = (tuple(map(int, rng.integers(low, low + 100, 3))) for low in (150, 10))
    image = Image.new("RGB", (size, size), paper)
    pen, side = ImageDraw.Draw(image), int(size * rng.uniform(0.4, 0.6))
    x, y = (int(size * share) for share in rng.uniform(0.1, 0.35, 2))
    match shape:
        case "circle":
            pen.ellipse([x, y, x + side, y + side], fill=ink)
        case "square":
            pen.rectangle([x, y, x + side, y + side], fill=ink)
        case "triangle":
            pen.polygon([(x + side // 2, y), (x, y + side), (x + side, y + side)], fill=ink)
        case "stripes":
            for top in range(int(rng.integers(0, 10)), size, 20):
                pen.rectangle([0, top, size, top + 8], fill=ink)
        case "dots":
            for left in range(int(rng.integers(0, 10)), size, 26):
                for top in range(0, size, 26):
                    pen.ellipse([left, top, left + 11, top + 11], fill=ink)
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def drawings(shape: str, n: int, first: int = 0) -> list[bytes]:
    return [draw(shape, seed) for seed in range(first, first + n)]


def photograph(width: int, height: int, orientation: int = 1) -> bytes:
    """A JPEG file of that size with a red corner at the upper left, held as `orientation` (EXIF) says."""
    image = Image.new("RGB", (width, height), (90, 140, 90))
    ImageDraw.Draw(image).rectangle([0, 0, width // 4, height // 4], fill=(230, 20, 20))
    exif = Image.Exif()
    exif[0x112] = orientation
    file = io.BytesIO()
    image.save(file, "JPEG", exif=exif)
    return file.getvalue()
