import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from PIL import Image

from engram.images import ImageError, extract
from engram.images.decode import load_image
from engram.images.extraction import stream


def spoil(path):
    path.write_bytes(path.read_bytes()[:40])


@pytest.mark.parametrize("n", [0, 1, 5, 23])
@pytest.mark.parametrize("batch_size", [None, 1, 4])
@pytest.mark.parametrize("workers", [None, 1, 3])
def test_order_and_values(pictures, fake, expected, n, batch_size, workers):
    paths = pictures(n)
    backbone = fake()
    found = extract(paths, backbone, batch_size=batch_size, workers=workers, device="cpu")
    assert found.values.dtype == np.float32
    assert found.values.shape == (n, 192)
    assert found.kept.tolist() == list(range(n))
    assert found.skipped == []
    assert backbone.seen == n
    if n:
        np.testing.assert_allclose(found.values, expected(paths), rtol=1e-6)


def test_order_holds_when_later_batches_are_faster(pictures, fake, expected):
    paths = pictures(12)
    naps = iter([0.2, 0.0, 0.1, 0.0, 0.0, 0.0])
    backbone = fake(before=lambda batch: time.sleep(next(naps)))
    found = extract(paths, backbone, batch_size=2, workers=3, device="cpu")
    np.testing.assert_allclose(found.values, expected(paths), rtol=1e-6)


def test_every_kind_of_input_agrees(pictures, fake, expected):
    paths = pictures(5)
    array = np.stack([np.asarray(Image.open(path)) for path in paths])
    kinds = [
        paths,
        [str(path) for path in paths],
        [path.read_bytes() for path in paths],
        [Image.open(path) for path in paths],
        list(array),
        array,
        np.asfortranarray(array),
        tuple(paths),
    ]
    for images in kinds:
        found = extract(images, fake(), batch_size=2, device="cpu")
        np.testing.assert_allclose(found.values, expected(paths), rtol=1e-6)


def test_read_only_arrays_and_grey_arrays(fake):
    array = np.random.default_rng(0).integers(0, 256, (3, 8, 8), dtype=np.uint8)
    array.flags.writeable = False
    grey = extract(array, fake(), device="cpu").values
    colour = np.stack([array] * 3, axis=3)
    colour.flags.writeable = False
    np.testing.assert_array_equal(grey, extract(colour, fake(), device="cpu").values)


def test_arrays_are_resized_like_files(pictures, fake):
    paths = pictures(3, size=(20, 12))
    array = np.stack([np.asarray(Image.open(path)) for path in paths])
    by_path = extract(paths, fake(), device="cpu").values
    np.testing.assert_array_equal(by_path, extract(array, fake(), device="cpu").values)
    assert by_path.shape == (3, 192)


def test_bad_pictures_are_skipped_and_named(pictures, fake, expected):
    paths = pictures(10)
    for i in (0, 4, 5, 9):
        spoil(paths[i])
    paths[7] = paths[7].with_name("absent.png")
    backbone = fake()
    found = extract(paths, backbone, batch_size=2, device="cpu")
    good = [1, 2, 3, 6, 8]
    assert found.kept.tolist() == good
    np.testing.assert_allclose(found.values, expected([paths[i] for i in good]), rtol=1e-6)
    assert [name for name, _ in found.skipped] == [str(paths[i]) for i in (0, 4, 5, 7, 9)]
    assert found.skipped[3][1] == "No such file or directory"
    assert all(reason for _, reason in found.skipped)
    assert backbone.seen == 5


def test_pictures_without_a_name_are_called_by_position(fake):
    found = extract([np.zeros((8, 8, 3), np.uint8), b"nothing"], fake(), device="cpu")
    assert found.skipped == [("image 1", "not a picture in any format Pillow knows")]


def test_all_bad(pictures, fake):
    paths = pictures(3)
    for path in paths:
        spoil(path)
    found = extract(paths, fake(), device="cpu")
    assert found.values.shape == (0, 192)
    assert found.kept.shape == (0,)
    assert len(found.skipped) == 3


def test_strict(pictures, fake):
    paths = pictures(6)
    spoil(paths[3])
    with pytest.raises(ImageError, match=r"0-0003\.png"):
        extract(paths, fake(), strict=True, batch_size=2, device="cpu")


def test_progress(pictures, fake):
    paths = pictures(7)
    spoil(paths[2])
    seen = []
    extract(paths, fake(), batch_size=3, device="cpu", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(3, 7), (6, 7), (7, 7)]


def test_memory_is_bounded_when_the_model_is_slow(fake, monkeypatch):
    """Count pictures that were decoded and did not reach the model yet."""
    lock, decoded, most = threading.Lock(), 0, 0
    consumed = 0

    def counting(source, name=None):
        nonlocal decoded, most
        with lock:
            decoded += 1
            most = max(most, decoded - consumed)
        return load_image(source, name)

    def slow(batch):
        nonlocal consumed
        time.sleep(0.005)
        with lock:
            consumed += len(batch)

    monkeypatch.setattr("engram.images.extraction.load_image", counting)
    images = [np.zeros((8, 8, 3), np.uint8)] * 200
    extract(images, fake(before=slow), batch_size=4, workers=3, device="cpu")
    assert decoded == consumed == 200
    assert most <= 3 * 4  # one batch per worker


def test_memory_is_bounded_when_the_consumer_is_slow(fake):
    backbone = fake()
    batches = stream(np.zeros((400, 8, 8, 3), np.uint8), backbone, batch_size=2, workers=2, device="cpu")
    taken = 0
    for batch in batches:
        taken += len(batch.kept)
        time.sleep(0.002)
        assert backbone.seen - taken <= 2 * 2 * 2  # twice as many batches as workers
    assert taken == 400


def test_stopping_early_stops_the_work_and_restores_torchs_threads(fake):
    before = torch.get_num_threads()
    backbone = fake(before=lambda batch: time.sleep(0.002))
    batches = stream(np.zeros((1000, 8, 8, 3), np.uint8), backbone, batch_size=2, workers=2, device="cpu")
    next(batches)
    batches.close()
    seen = backbone.seen
    time.sleep(0.02)
    assert backbone.seen == seen < 40
    with ThreadPoolExecutor(1) as pool:  # a new thread takes what was set last by any
        assert torch.get_num_threads() == pool.submit(torch.get_num_threads).result() == before
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("engram")]


def test_workers_share_torchs_threads(fake):
    threads = []
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        for workers in (1, 2, 4, 8):
            backbone = fake(before=lambda batch: threads.append(torch.get_num_threads()))
            extract(np.zeros((16, 8, 8, 3), np.uint8), backbone, batch_size=2, workers=workers, device="cpu")
            assert torch.get_num_threads() == 4
            assert set(threads) == {max(1, 4 // workers)}
            threads.clear()
        # A single batch has all the cores.
        extract(np.zeros((2, 8, 8, 3), np.uint8), backbone, batch_size=2, device="cpu")
        assert threads == [4]
    finally:
        torch.set_num_threads(before)


def test_an_error_of_the_model_comes_through(fake):
    def fail(batch):
        raise RuntimeError("model trouble")

    with pytest.raises(RuntimeError, match="model trouble"):
        extract(np.zeros((9, 8, 8, 3), np.uint8), fake(before=fail), batch_size=2, device="cpu")


@pytest.mark.parametrize(
    ("images", "error"),
    [
        ("one.png", TypeError),
        (b"bytes", TypeError),
        (Image.new("RGB", (4, 4)), TypeError),
        (np.zeros((4, 8, 8, 3)), ValueError),
        (np.zeros((4, 3, 8, 8), np.uint8), ValueError),
        (np.zeros((4, 64), np.uint8), ValueError),
    ],
)
def test_what_is_no_list_of_pictures(fake, images, error):
    with pytest.raises(error, match="expected a"):
        extract(images, fake(), device="cpu")


@pytest.mark.parametrize("option", [{"batch_size": -1}, {"workers": 0}])
def test_impossible_options(fake, option):
    with pytest.raises(ValueError, match="at least 1"):
        extract(np.zeros((4, 8, 8, 3), np.uint8), fake(), device="cpu", **option)


def test_native_pictures_of_different_sizes_are_an_error_that_says_so(fake):
    from engram.backbones import Preprocess

    backbone = fake()
    backbone.preprocess = Preprocess(size=None, resize="native")
    images = [np.zeros((8, 8, 3), np.uint8), np.zeros((8, 9, 3), np.uint8)]
    with pytest.raises(ValueError, match="batch_size=1"):
        extract(images, backbone, batch_size=2, device="cpu")


@pytest.mark.gpu
def test_gpu_agrees_with_cpu(pictures, fake):
    paths = pictures(50)
    for i in (0, 7, 48, 49):
        spoil(paths[i])
    on_cpu = extract(paths, fake(), device="cpu")
    on_gpu = extract(paths, fake(), device="cuda", batch_size=2)
    np.testing.assert_allclose(on_gpu.values, on_cpu.values, rtol=1e-5)
    assert on_gpu.kept.tolist() == on_cpu.kept.tolist()
    assert on_gpu.skipped == on_cpu.skipped
