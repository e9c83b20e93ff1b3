import contextlib
import io
import struct
import threading
import zlib

import numpy as np
import pytest
from PIL import Image

from engram.images.decode import ImageError, load_image

RNG = np.random.default_rng(0)


def encode(image, format="PNG", **options):
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def pixels(source):
    image = load_image(source)
    assert image.mode == "RGB"
    return np.asarray(image)


# How the upright picture is stored under each EXIF orientation, by plain indexing.
STORED = {
    1: lambda upright: upright,
    2: lambda upright: upright[:, ::-1],
    3: lambda upright: upright[::-1, ::-1],
    4: lambda upright: upright[::-1],
    5: lambda upright: upright.transpose(1, 0, 2),
    6: lambda upright: upright.transpose(1, 0, 2)[::-1],  # row 0 is the right side, column 0 the top
    7: lambda upright: upright.transpose(1, 0, 2)[::-1, ::-1],
    8: lambda upright: upright.transpose(1, 0, 2)[:, ::-1],  # row 0 is the left side, column 0 the bottom
}


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format", ["PNG", "TIFF", "JPEG"])
def test_exif_orientation(orientation, format):
    upright = np.kron(RNG.integers(0, 2, (2, 3, 1)) * 255, np.ones((16, 16, 3))).astype(np.uint8)
    upright[:16, :16] = (255, 0, 0)  # a red corner, so that no two orientations look alike
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = Image.fromarray(np.ascontiguousarray(STORED[orientation](upright)))
    options = {"quality": 100, "subsampling": 0} if format == "JPEG" else {}
    found = pixels(encode(stored, format, exif=exif, **options))
    assert found.shape == upright.shape
    assert np.abs(found.astype(int) - upright).max() <= (8 if format == "JPEG" else 0)


def test_broken_exif_does_not_cost_the_picture():
    raw = encode(Image.new("RGB", (4, 4), "red"), "JPEG", exif=b"Exif\0\0garbage that is no TIFF header")
    assert pixels(raw).shape == (4, 4, 3)


@pytest.mark.parametrize("value", [0, 9, 77])
def test_orientations_that_do_not_exist_are_ignored(value):
    exif = Image.Exif()
    exif[0x0112] = value
    assert pixels(encode(Image.new("RGB", (4, 2)), "PNG", exif=exif)).shape == (2, 4, 3)


def test_grey():
    grey = RNG.integers(0, 256, (5, 7), dtype=np.uint8)
    np.testing.assert_array_equal(pixels(encode(Image.fromarray(grey))), np.stack([grey] * 3, axis=2))


def test_one_bit():
    bits = RNG.integers(0, 2, (5, 7)).astype(bool)
    np.testing.assert_array_equal(pixels(encode(Image.fromarray(bits)))[..., 0], bits * np.uint8(255))


def test_rgba_is_laid_on_white():
    image = Image.fromarray(np.array([[[255, 0, 0, 255], [255, 0, 0, 0], [0, 0, 0, 128]]], np.uint8), "RGBA")
    found = pixels(encode(image))[0]
    np.testing.assert_array_equal(found[:2], [[255, 0, 0], [255, 255, 255]])
    assert abs(int(found[2, 0]) - 127) <= 1


@pytest.mark.parametrize("mode", ["LA", "La", "RGBa", "PA"])
def test_other_modes_with_alpha(mode):
    base = Image.fromarray(np.array([[[50, 50, 50, 255], [50, 50, 50, 0]]], np.uint8), "RGBA")
    if mode == "PA":
        image = Image.new("PA", (2, 1))
        image.putpalette([0, 0, 0, 50, 50, 50])
        image.putpixel((0, 0), (1, 255))
        image.putpixel((1, 0), (1, 0))
    else:
        image = base.convert("LA").convert(mode) if "L" in mode else base.convert(mode)
    np.testing.assert_array_equal(pixels(image)[0], [[50] * 3, [255] * 3])


def palette():
    image = Image.new("P", (3, 1))
    image.putpalette([255, 0, 0, 0, 255, 0, 0, 0, 255])
    image.putdata([0, 1, 2])
    return image


def test_palette():
    np.testing.assert_array_equal(pixels(encode(palette()))[0], np.eye(3) * 255)


@pytest.mark.parametrize("format", ["PNG", "GIF"])
def test_palette_with_transparency(format):
    found = pixels(encode(palette(), format, transparency=1))[0]
    np.testing.assert_array_equal(found, [[255, 0, 0], [255, 255, 255], [0, 0, 255]])


def test_rgb_with_a_transparent_colour():
    image = Image.fromarray(np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8))
    np.testing.assert_array_equal(pixels(encode(image, transparency=(1, 2, 3)))[0], [[255] * 3, [4, 5, 6]])


DEEP = np.array([[0, 257, 32896, 65535, 1000]], np.uint16)
SHALLOW = [0, 1, 128, 255, 4]


@pytest.mark.parametrize("format", ["PNG", "TIFF"])
def test_sixteen_bits_are_scaled(format):
    assert pixels(encode(Image.fromarray(DEEP), format))[0, :, 0].tolist() == SHALLOW


def test_sixteen_bits_big_endian():
    image = Image.frombytes("I;16B", (5, 1), DEEP.astype(">u2").tobytes())
    assert pixels(image)[0, :, 0].tolist() == SHALLOW


def test_a_dark_sixteen_bit_picture_stays_dark():
    assert pixels(encode(Image.fromarray(np.full((2, 2), 200, np.uint16)), "PNG")).max() == 1


def test_orientation_of_sixteen_bits():
    exif = Image.Exif()
    exif[0x0112] = 3
    assert pixels(encode(Image.fromarray(DEEP), "PNG", exif=exif))[0, :, 0].tolist() == SHALLOW[::-1]


@pytest.mark.parametrize(
    ("values", "dtype", "expected"),
    [
        ([0, 100, 255], np.int32, [0, 100, 255]),
        ([0, 257, 65535], np.int32, [0, 1, 255]),
        ([-100, 0, 300], np.int32, [0, 64, 255]),
        ([10, 20, 40], np.int32, [10, 20, 40]),  # dark stays dark
        ([0.0, 0.5, 1.0], np.float32, [0, 128, 255]),
        ([0.0, 100.0, 255.0], np.float32, [0, 100, 255]),
        ([-1.0, 0.0, 1.0], np.float32, [0, 128, 255]),
        ([0.0, np.nan, 1.0], np.float32, [0, 0, 255]),
        ([-5.0, -5.0, -5.0], np.float32, [0, 0, 0]),
    ],
)
def test_integers_and_floats(values, dtype, expected):
    raw = encode(Image.fromarray(np.array([values], dtype)), "TIFF")
    assert pixels(raw)[0, :, 0].tolist() == expected


@pytest.mark.parametrize(
    ("dtype", "low", "high"), [(np.uint16, 0, 65535), (np.int32, -70000, 90000), (np.float32, -2, 3)]
)
def test_large_images_of_more_than_eight_bits_are_scaled_as_a_whole(dtype, low, high):
    values = RNG.uniform(low, high, (1500, 1001)).astype(dtype)
    values[-1, -1] = high  # the brightest is in the last strip, the darkest in the first
    values[0, 0] = low
    expected = np.rint((values.astype(np.float64) - low) * (255.0 / (high - low))).astype(np.uint8)
    np.testing.assert_array_equal(pixels(Image.fromarray(values))[..., 1], expected)


@pytest.mark.parametrize("format", ["JPEG", "TIFF"])
def test_cmyk(format):
    image = Image.new("CMYK", (16, 16), (0, 255, 255, 0))  # no cyan, all magenta and yellow: red
    assert np.abs(pixels(encode(image, format)).astype(int) - [255, 0, 0]).max() <= 2


def test_sources(tmp_path):
    array = RNG.integers(0, 256, (5, 7, 3), dtype=np.uint8)
    path = tmp_path / "a.png"
    Image.fromarray(array).save(path)
    for source in (path, str(path), path.read_bytes(), io.BytesIO(path.read_bytes()), Image.open(path), array):
        np.testing.assert_array_equal(pixels(source), array)
    np.testing.assert_array_equal(pixels(array[..., 0])[..., 1], array[..., 0])


def test_a_pil_image_of_the_caller_is_not_changed():
    exif = Image.Exif()
    exif[0x0112] = 6
    image = Image.open(io.BytesIO(encode(Image.new("RGBA", (4, 2)), exif=exif)))
    assert load_image(image).size == (2, 4)  # upright all the same
    assert image.mode == "RGBA"
    assert image.size == (4, 2)


def test_one_unread_image_in_many_threads():
    raw = encode(Image.fromarray(RNG.integers(0, 256, (300, 300, 3), dtype=np.uint8)))
    for _ in range(5):
        image = Image.open(io.BytesIO(raw))
        errors = []

        def read(image=image, errors=errors):
            try:
                load_image(image)
            except ImageError as error:
                errors.append(error)

        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []


@pytest.mark.parametrize("format", ["JPEG", "PNG"])
def test_truncated(tmp_path, format):
    raw = encode(Image.fromarray(RNG.integers(0, 256, (64, 64, 3), dtype=np.uint8)), format)
    path = tmp_path / "cut.img"
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(ImageError, match=r"cut\.img: .*truncated") as caught:
        load_image(path)
    assert caught.value.name == str(path)
    assert "\n" not in str(caught.value)


def png_claiming(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize("side", [10_000, 30_000])  # where Pillow warns, where it refuses
def test_bombs(side):
    with pytest.raises(ImageError, match=r"image: .*(limit|exceeds)"):
        load_image(png_claiming(side, side))


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_the_limit_is_pillows(monkeypatch):
    raw = encode(Image.new("RGB", (10, 10)))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 99)
    with pytest.raises(ImageError, match="limit of 99"):
        load_image(raw)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert load_image(raw).size == (10, 10)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    assert load_image(raw).size == (10, 10)


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"", "not a picture"),
        (b"just text", "not a picture"),
        (b"\x89PNG\r\n\x1a\n", "image: "),
        (np.zeros((2, 2, 4), np.uint8), "expected a uint8 array"),
        (np.zeros((2, 2, 3)), "expected a uint8 array"),
        ("absent.png", "absent.png: No such file"),
    ],
)
def test_what_is_no_picture(source, reason):
    with pytest.raises(ImageError, match=reason):
        load_image(source)


@pytest.mark.filterwarnings("ignore")
def test_flipped_bytes_never_raise_anything_else(monkeypatch):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10_000)  # some flips make the picture huge, which takes long
    rng = np.random.default_rng(1)
    raws = [encode(palette(), "GIF"), encode(Image.fromarray(DEEP), "TIFF")]
    raws += [encode(Image.new("RGB", (9, 9), "red"), format) for format in ("PNG", "JPEG", "WEBP", "BMP")]
    for raw in raws:
        for _ in range(60):
            broken = bytearray(raw)
            for at in rng.integers(0, len(raw), 4):
                broken[at] = rng.integers(0, 256)
            with contextlib.suppress(ImageError):
                assert load_image(bytes(broken)).mode == "RGB"
