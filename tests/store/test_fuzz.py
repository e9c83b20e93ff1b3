"""Whatever is in a model file or a picture: a documented error or an answer, soon, and in bounded memory."""

import contextlib
import io
import json
import resource
import time
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from safetensors.numpy import load, save

from engram import ModelFileError
from engram.files import model_file
from engram.store import Answer, ModelStore, Unreadable, predict_images

COUNTS = [300, pytest.param(10_000, marks=[pytest.mark.slow, pytest.mark.timeout(3000)])]
IMAGES = [300, pytest.param(2_000, marks=[pytest.mark.slow, pytest.mark.timeout(3000)])]
ROOM = 2_000_000  # kB: Pillow's own limit lets a picture of 89 million pixels through
SECONDS = 20.0  # of this process alone, however busy the machine; what waits for ever, pytest's own limit ends
ODD = [0, 1, -1, 2**31, 2**63, 1e308, float("nan"), "", "x", None, [], {}, [[]], True, "a" * 1000]


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    began, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert time.process_time() - began < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < ROOM


def mutated(data: st.DataObject, content: bytes, front: int) -> bytes:
    """Some bytes flipped, cut out, doubled or made up; half of the time near the front, where the structure is."""
    out = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        limit = min(front, len(out)) if data.draw(st.booleans()) else len(out)
        at = data.draw(st.integers(0, max(0, limit - 1)))
        match data.draw(st.sampled_from(["flip", "set", "cut", "end", "insert", "double"])):
            case "flip" if out:
                out[at] ^= 1 << data.draw(st.integers(0, 7))
            case "set":
                made = data.draw(st.sampled_from([b"\0", b"\xff", b"\x7f\xff\xff\xff", b"\xff" * 8, b"{", b'"', b"["]))
                out[at : at + len(made)] = made
            case "cut":
                del out[at : at + data.draw(st.integers(1, 64))]
            case "end":
                del out[at:]
            case "insert":
                out[at:at] = data.draw(st.binary(max_size=32))
            case _:
                out[at:at] = out[at : at + data.draw(st.integers(1, 256))]
    return bytes(out)


def resigned(data: st.DataObject, content: bytes) -> bytes:
    """A file with a changed header whose checksum is right: what a forger, or another program, would write."""
    size = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + size])["__metadata__"]
    header = json.loads(metadata["engram"])["header"]
    node, key = header, data.draw(st.sampled_from(sorted(header)))
    while isinstance(node[key], dict | list) and node[key] and data.draw(st.integers(0, 3)):
        node = node[key]
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
    if data.draw(st.booleans()):
        node[key] = data.draw(st.sampled_from(ODD))
    else:
        del node[key]
    text = json.dumps({"checksum": model_file._digest(model_file._canonical(header)), "header": header})
    return save(load(content), metadata={"engram": text})


@pytest.mark.parametrize("count", COUNTS)
def test_mutated_model_files(count, base_bytes, tmp_path):
    path, refused, loaded = tmp_path / "m.engram", 0, 0
    front = 8 + int.from_bytes(base_bytes[:8], "little")

    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        nonlocal refused, loaded
        forged = data.draw(st.integers(0, 3)) == 0
        path.write_bytes(resigned(data, base_bytes) if forged else mutated(data, base_bytes, front))
        place = ModelStore(path, device="cpu")
        with bounded():
            try:
                model = place.read()
            except ModelFileError as error:
                assert "\n" not in str(error)
                refused += 1
                return
            loaded += 1
            # What loads can be looked at and asked.
            json.dumps(place.info())
            with contextlib.suppress(ValueError):
                model.answer(np.zeros((1, 8)))

    check()
    assert refused > count // 2
    assert loaded > 0


def originals() -> list[bytes]:
    rng = np.random.default_rng(0)
    made = []
    for mode, formats in {
        "RGB": ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"),
        "L": ("PNG", "JPEG", "BMP"),
        "P": ("PNG", "GIF"),
        "RGBA": ("PNG", "WEBP", "TIFF"),
        "CMYK": ("JPEG", "TIFF"),
        "I;16": ("PNG", "TIFF"),
        "1": ("PNG", "TIFF"),
    }.items():
        picture = Image.fromarray(rng.integers(0, 255, (24, 32, 3), dtype=np.uint8))
        picture = (
            Image.fromarray(rng.integers(0, 65535, (24, 32), dtype=np.uint16))
            if mode == "I;16"
            else picture.convert(mode)
        )
        for name in formats:
            buffer = io.BytesIO()
            picture.save(buffer, name)
            made.append(buffer.getvalue())
    return made


@pytest.mark.filterwarnings("ignore")  # Pillow's, about what it could not read
@pytest.mark.parametrize("count", IMAGES)
def test_mutated_pictures(count, base_bytes, tmp_path):
    (tmp_path / "m.engram").write_bytes(base_bytes)
    model = ModelStore(tmp_path / "m.engram", device="cpu").read()
    pictures, seen = originals(), {Answer: 0, Unreadable: 0}

    @settings(max_examples=count, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data())
    def check(data: st.DataObject) -> None:
        content = mutated(data, data.draw(st.sampled_from(pictures)), 64)
        with bounded():
            (answer,) = predict_images(model, [content], device="cpu")
        seen[type(answer)] += 1
        if isinstance(answer, Unreadable):
            assert "\n" not in answer.reason

    check()
    assert min(seen.values()) > count // 20
