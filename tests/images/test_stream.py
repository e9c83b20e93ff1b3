"""From pictures to features."""

import io
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from fake_encoder import FakeEncoder
from PIL import Image

from engram.encoders.base import Preprocess
from engram.images.crop import Crop
from engram.images.decode import ImageError
from engram.images.stream import check_sources, cores, encode, encode_all, prepare

RNG = np.random.default_rng(0)


def noise(n: int = 1, height: int = 20, width: int = 28) -> np.ndarray:
    return RNG.integers(0, 256, (n, height, width, 3), dtype=np.uint8)


def saved(image: Image.Image, format: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def test_every_form_of_picture_gives_the_same_features(tmp_path):
    arrays = noise(5)
    images = [Image.fromarray(array) for array in arrays]
    paths = [tmp_path / f"{i}.png" for i in range(5)]
    for path, image in zip(paths, images, strict=True):
        image.save(path)
    expected = encode_all(arrays, FakeEncoder()).features
    assert expected.shape == (5, 8)
    assert len(np.unique(expected, axis=0)) == 5
    squares = [prepare(image, Preprocess(size=16)) for image in images]
    forms: list[Sequence[object]] = [
        list(arrays), images, paths, [str(path) for path in paths], np.array([str(path) for path in paths]),
        [path.read_bytes() for path in paths], [io.BytesIO(path.read_bytes()) for path in paths], np.stack(squares),
    ]  # fmt: skip
    for form in forms:
        np.testing.assert_array_equal(encode_all(form, FakeEncoder()).features, expected)


def test_a_crop_is_encoded_in_place_of_its_picture(tmp_path):
    image, box = Image.fromarray(noise()[0]), (0.25, 0, 0.5, 0.5)
    image.save(tmp_path / "whole.png")
    crop = Crop(tmp_path / "whole.png", box)
    found, expected = (encode_all([one], FakeEncoder()).features for one in (crop, crop.cut(image)))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("threads", [1, 3])
def test_what_cannot_be_read_is_told_and_the_rest_keeps_its_order(threads, tmp_path):
    arrays, encoder = noise(11), FakeEncoder()
    sources: list[object] = list(arrays)
    sources[0], sources[4], sources[5], sources[10] = b"", tmp_path / "missing.jpg", b"words", noise(1)[..., :2][0]
    found = encode_all(sources, encoder, threads=threads)
    assert found.kept.tolist() == [1, 2, 3, 6, 7, 8, 9]
    assert [one.position for one in found.unreadable] == [0, 4, 5, 10]
    assert [one.name for one in found.unreadable] == ["image 0", str(tmp_path / "missing.jpg"), "image 5", "image 10"]
    assert all(one.reason for one in found.unreadable)
    np.testing.assert_array_equal(found.features, encode_all(arrays[found.kept], encoder).features)


def test_who_is_strict_is_told_of_the_first_that_cannot_be_read():
    with pytest.raises(ImageError, match="image 2"):
        encode_all([*noise(2), b"words", b""], FakeEncoder(), strict=True, threads=1)


def test_nothing_readable_and_nothing_at_all():
    for sources in ([b"", b""], [], np.zeros((0, 5, 5, 3), np.uint8)):
        found = encode_all(sources, FakeEncoder())
        assert found.features.shape == (0, 8)
        assert found.kept.tolist() == []
        assert len(found.unreadable) == len(sources)


class Counted(Sequence):
    """Pictures that note which of them are read; `many` is set when that were more than eight."""

    def __init__(self) -> None:
        self.read: list[int] = []
        self.many = threading.Event()

    def __len__(self) -> int:
        return 100

    def __getitem__(self, position):
        self.read.append(position)
        if len(self.read) > 8:
            self.many.set()
        return noise(1)[0]


def test_each_picture_is_read_and_encoded_once_and_in_order():
    sources, encoder = Counted(), FakeEncoder()
    kept = [position for batch in encode(sources, encoder, threads=2) for position in batch.kept]
    assert kept == sorted(sources.read) == list(range(100))
    assert encoder.seen == 100


def test_who_takes_them_slowly_slows_the_work_down():
    sources = Counted()
    batches = encode(sources, FakeEncoder(), threads=2)
    next(batches)
    assert not sources.many.wait(0.2)  # two batches of two pictures are begun for each thread
    before = threading.active_count()
    batches.close()
    assert threading.active_count() == before - 2
    assert len(sources.read) <= 8


def test_order_holds_when_later_batches_are_faster():
    later, arrays = threading.Event(), noise(4)

    def hold_the_first(pictures: np.ndarray) -> None:
        if np.array_equal(pictures, first):
            assert later.wait(10)
        else:
            later.set()

    first = np.stack([prepare(array, Preprocess(size=16)) for array in arrays[:2]])
    found = encode_all(arrays, FakeEncoder(before=hold_the_first), threads=2)
    np.testing.assert_array_equal(found.features, encode_all(arrays, FakeEncoder()).features)


def test_only_the_wanted_positions():
    arrays = noise(9)
    batches = list(encode(arrays, FakeEncoder(), positions=[7, 1, 2], threads=1))
    assert [batch.kept for batch in batches] == [[7, 1], [2]]
    np.testing.assert_array_equal(
        np.concatenate([batch.features for batch in batches]), encode_all(arrays[[7, 1, 2]], FakeEncoder()).features
    )


def test_threads_have_batches_of_the_encoders_size_and_one_picture_needs_no_thread():
    sizes, workers = [], set()

    def note(pictures: np.ndarray) -> None:
        sizes.append(len(pictures))
        workers.add(threading.current_thread())

    encode_all(noise(1), FakeEncoder(before=note), threads=4)
    assert workers == {threading.current_thread()}
    workers.clear()
    encode_all(noise(30), FakeEncoder(before=note, batch=4), threads=3)
    assert threading.current_thread() not in workers
    assert max(sizes) == 4
    sizes.clear()
    encode_all(noise(3), FakeEncoder(before=note, batch=64), threads=3)
    assert sizes == [1, 1, 1]  # few pictures are shared out


def test_threads_work_side_by_side():
    together = threading.Barrier(2, timeout=10)
    encode_all(noise(8), FakeEncoder(before=lambda _: together.wait()), threads=2)


def test_progress_ends_with_all():
    told: list[tuple[int, int]] = []
    encode_all([*noise(7), b""], FakeEncoder(), progress=lambda *now: told.append(now), threads=2)
    assert told == sorted(told)
    assert told[-1] == (8, 8)


@pytest.mark.parametrize("threads", [1, 2])
def test_an_encoders_failure_is_not_hidden_and_leaves_no_thread(threads):
    def fail(_: np.ndarray) -> None:
        raise MemoryError

    before = threading.active_count()
    with pytest.raises(MemoryError):
        encode_all(noise(50), FakeEncoder(before=fail), threads=threads)
    assert threading.active_count() == before


@pytest.mark.parametrize("wrong", ["a.jpg", b"bytes", Path("a.jpg"), Image.new("RGB", (2, 2)), 7])
def test_a_single_picture_is_refused(wrong):
    with pytest.raises(TypeError, match=type(wrong).__name__):
        check_sources(wrong)


@pytest.mark.parametrize(
    "wrong", [np.zeros((2, 5, 5, 3)), np.zeros((5, 5), np.uint8), np.zeros((2, 5, 5, 4), np.uint8)]
)
def test_other_arrays_are_refused(wrong):
    with pytest.raises(ValueError, match="expected a uint8 array"):
        encode_all(wrong, FakeEncoder())


def test_threads_can_be_limited_from_outside(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert cores() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "all")
    assert cores() >= 1
