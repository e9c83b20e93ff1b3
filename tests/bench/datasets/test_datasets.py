import os
from pathlib import Path

import numpy as np
import pytest

from engram.bench.datasets import cifar100, cub200, digits
from engram.datasets.dataset import DataError


@pytest.fixture
def make_cifar(dump_python2):
    return lambda root: _make_cifar(root, dump_python2)


def _make_cifar(root, dump_python2):
    folder = root / "cifar-100-python"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for name, count in (("train", 6), ("test", 4)):
        data = rng.integers(0, 256, (count, 3072), dtype=np.uint8)
        labels = [i % 3 for i in range(count)]
        dump_python2({"data": data, "fine_labels": labels, "coarse_labels": labels}, folder / name)
    dump_python2({"fine_label_names": ["apple", "bear", "cloud"]}, folder / "meta")
    return folder


def make_cub(root):
    folder = root / "CUB_200_2011"
    (folder / "images").mkdir(parents=True)
    (folder / "classes.txt").write_text("1 001.Auk\n2 002.Bee eater\n")
    (folder / "images.txt").write_text("1 001.Auk/b.jpg\n2 001.Auk/a.jpg\n3 002.Bee eater/c d.jpg\n")
    (folder / "image_class_labels.txt").write_text("3 2\n2 1\n1 1\n")
    (folder / "train_test_split.txt").write_text("1 1\n2 0\n3 1\n")
    return folder


def test_cifar_pixels_and_names(tmp_path, make_cifar):
    make_cifar(tmp_path)
    data = cifar100(tmp_path)
    assert data.classes == ["apple", "bear", "cloud"]
    assert data.train.labels == ["apple", "bear", "cloud"] * 2
    assert data.train.images.shape == (6, 32, 32, 3)
    assert data.test.images.shape == (4, 32, 32, 3)
    raw = np.random.default_rng(0).integers(0, 256, (6, 3072), dtype=np.uint8)
    for channel, row, column in [(0, 0, 1), (1, 5, 0), (2, 31, 31)]:
        assert data.train.images[3, row, column, channel] == raw[3, channel * 1024 + row * 32 + column]


def test_the_folder_itself_and_the_environment_name_the_data_too(tmp_path, monkeypatch, make_cifar):
    folder = make_cifar(tmp_path)
    assert len(cifar100(folder).train) == 6
    monkeypatch.setenv("ENGRAM_DATA", str(tmp_path))
    assert len(cifar100().train) == 6
    monkeypatch.delenv("ENGRAM_DATA")
    with pytest.raises(DataError, match="ENGRAM_DATA"):
        cifar100()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("meta", {}, "fine_label_names"),
        ("train", {"data": np.zeros((2, 3), np.uint8), "fine_labels": [0, 0]}, "3072"),
        ("train", {"data": np.zeros((2, 3072)), "fine_labels": [0, 0]}, "uint8"),
        ("test", {"data": np.zeros((2, 3072), np.uint8), "fine_labels": [0, 3]}, "below 3"),
        ("test", {"data": np.zeros((2, 3072), np.uint8), "fine_labels": [0, -1]}, "below 3"),
        ("test", {"data": np.zeros((2, 3072), np.uint8), "fine_labels": [0]}, "2 images but 1 labels"),
    ],
)
def test_cifar_that_is_not(tmp_path, make_cifar, dump_python2, name, content, message):
    dump_python2(content, make_cifar(tmp_path) / name)
    with pytest.raises(DataError, match=message):
        cifar100(tmp_path)


def test_cub_goes_by_its_index_files(tmp_path):
    folder = make_cub(tmp_path)
    data = cub200(tmp_path)
    assert data.classes == ["001.Auk", "002.Bee eater"]
    assert data.train.images == [folder / "images/001.Auk/b.jpg", folder / "images/002.Bee eater/c d.jpg"]
    assert data.train.labels == ["001.Auk", "002.Bee eater"]
    assert data.test.images == [folder / "images/001.Auk/a.jpg"]


def test_cub_with_gaps(tmp_path):
    folder = make_cub(tmp_path)
    (folder / "image_class_labels.txt").write_text("3 2\n1 1\n")
    with pytest.raises(DataError, match=r"image 2 .*know no '2'"):
        cub200(tmp_path)
    (folder / "images.txt").write_text("nonsense\n")
    with pytest.raises(DataError, match=r"images\.txt is not an index"):
        cub200(tmp_path)
    (folder / "images.txt").unlink()
    with pytest.raises(DataError, match="No such file"):
        cub200(tmp_path)


def test_absent_data_say_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"download=True.*cs\.toronto\.edu") as caught:
        cifar100(tmp_path)
    assert "\n" not in str(caught.value)


def test_digits_are_the_same_every_time():
    data = digits()
    assert data.train.images.shape == (1347, 64)
    assert data.test.images.shape == (450, 64)
    assert data.train.images.dtype == np.float32
    assert data.classes == [str(i) for i in range(10)]
    counts = np.unique(data.test.labels, return_counts=True)[1]
    assert counts.min() >= 43
    np.testing.assert_array_equal(data.test.images, digits().test.images)


REAL = Path(os.environ.get("ENGRAM_DATA", "absent"))


@pytest.mark.skipif(not (REAL / "cifar-100-python").is_dir(), reason="no cifar-100-python in ENGRAM_DATA")
def test_the_real_cifar():
    data = cifar100()
    assert (len(data.train), len(data.test), len(data.classes)) == (50_000, 10_000, 100)
    assert set(np.unique(data.train.labels, return_counts=True)[1]) == {500}
    assert set(np.unique(data.test.labels, return_counts=True)[1]) == {100}
    assert data.train.images.shape == (50_000, 32, 32, 3)


@pytest.mark.skipif(not (REAL / "CUB_200_2011").is_dir(), reason="no CUB_200_2011 in ENGRAM_DATA")
def test_the_real_cub():
    data = cub200()
    assert (len(data.train), len(data.test), len(data.classes)) == (5_994, 5_794, 200)
    assert data.classes[0] == "001.Black_footed_Albatross"
    assert all(path.is_file() for path in (*data.train.images, *data.test.images))
    assert all(path.parent.name == label for path, label in zip(data.train.images, data.train.labels, strict=True))
