import json
import os
import shutil
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from engram.bench import cache
from engram.bench.cache import FeatureCache
from engram.bench.cache_file import DamagedCacheFileError, open_cache_file
from engram.encoders.base import Identity
from engram.images.decode import ImageError
from engram.images.stream import encode_all


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(cache, "ROWS_PER_FILE", 8)


@pytest.fixture
def store(tmp_path):
    return FeatureCache(tmp_path / "cache")


def again(store):
    """Open the same cache as a new process would."""
    return FeatureCache(store.root, store.dtype.name)


def cache_files(store):
    return sorted(store.root.rglob("*.safetensors"))


def test_hits_do_not_run_the_model(store, pictures, fake, expected):
    paths, encoder = pictures(20), fake()
    first = store.features(paths, encoder)
    assert encoder.seen == 20
    np.testing.assert_allclose(first.values, expected(paths), rtol=1e-6)
    np.testing.assert_array_equal(first.values, encode_all(paths, fake()).features)
    second = again(store).features(paths, encoder)
    assert encoder.seen == 20
    np.testing.assert_array_equal(second.values, first.values)
    assert second.values.dtype == np.float32
    assert second.kept.tolist() == list(range(20))
    assert [open_cache_file(path).rows for path in cache_files(store)].count(8) == 2
    assert len(cache_files(store)) == 3


def test_order_follows_the_input(store, pictures, fake, expected):
    paths, encoder = pictures(20), fake()
    store.features(paths[5:15], encoder)
    order = np.random.default_rng(0).permutation(20)
    shuffled = [paths[i] for i in order]
    np.testing.assert_allclose(store.features(shuffled, encoder).values, expected(shuffled), rtol=1e-6)
    assert encoder.seen == 20


def test_equal_pictures_are_computed_once(store, pictures, fake, expected):
    paths, encoder = pictures(3), fake()
    copy = paths[0].with_name("copy.png")
    shutil.copy(paths[0], copy)
    images = [paths[0], paths[1], copy, paths[1], paths[2]]
    np.testing.assert_allclose(store.features(images, encoder).values, expected(images), rtol=1e-6)
    assert encoder.seen == 3


def test_one_changed_byte_recomputes_one_picture(store, pictures, fake, expected):
    paths = [path.rename(path.with_suffix(".bmp")) for path in pictures(20)]
    for path in paths:
        Image.open(path).save(path, "BMP")
    store.features(paths, fake())
    raw = bytearray(paths[11].read_bytes())
    raw[-1] ^= 1
    stat = paths[11].stat()
    paths[11].write_bytes(raw)
    os.utime(paths[11], ns=(stat.st_atime_ns, stat.st_mtime_ns))  # same name, size and time: only the content tells
    encoder = fake()
    found = again(store).features(paths, encoder)
    assert encoder.seen == 1
    np.testing.assert_allclose(found.values, expected(paths), rtol=1e-6)


def test_arrays_bytes_and_pil_images(store, pictures, fake, expected):
    paths, encoder = pictures(5), fake()
    array = np.stack([np.asarray(Image.open(path)) for path in paths])
    for images, new in [
        (array, 5),
        (array[::-1], 0),
        (list(array), 0),
        ([Image.open(path) for path in paths], 0),  # the same pixels
        ([path.read_bytes() for path in paths], 5),
        (paths, 0),  # the same files
    ]:
        before = encoder.seen
        found = store.features(images, encoder)
        assert encoder.seen - before == new
        wanted = expected(paths)[::-1] if images is not array and isinstance(images, np.ndarray) else expected(paths)
        np.testing.assert_allclose(found.values, wanted, rtol=1e-6)


def test_shape_is_part_of_the_content(store, fake):
    flat = np.zeros((1, 4, 16, 3), np.uint8)
    encoder = fake()
    store.features(flat, encoder)
    store.features(flat.reshape(1, 16, 4, 3), encoder)
    assert encoder.seen == 2


def test_other_weights_or_preprocessing_are_another_cache(store, pictures, fake):
    paths = pictures(4)
    plain = store.features(paths, fake()).values
    double = store.features(paths, fake(factor=2.0)).values
    np.testing.assert_allclose(double, 2 * plain)
    same_but_for_one_odd_letter = fake()
    same_but_for_one_odd_letter.identity = Identity("fake@8/1.0")  # and a file name can hold neither
    store.features(paths, same_but_for_one_odd_letter)
    assert same_but_for_one_odd_letter.seen == 4
    other = fake()
    other.preprocess = type(other.preprocess)(size=8, mean=(0.5, 0.5, 0.5))
    store.features(paths, other)
    assert other.seen == 4


def test_bad_pictures(store, pictures, fake, expected):
    paths = pictures(12)
    for i in (2, 7):
        paths[i].write_bytes(b"broken")  # equal content, each named
    paths[9] = paths[9].with_name("absent.png")
    good = [i for i in range(12) if i not in (2, 7, 9)]
    for cached in (store, again(store)):
        encoder = fake()
        found = cached.features(paths, encoder)
        assert found.kept.tolist() == good
        np.testing.assert_allclose(found.values, expected([paths[i] for i in good]), rtol=1e-6)
        assert [name for name, _ in found.skipped] == [str(paths[i]) for i in (2, 7, 9)]
        assert found.skipped[0][1] == found.skipped[1][1] == "not a picture in any format Pillow knows"
        assert found.skipped[2][1] == "No such file or directory"
    assert encoder.seen == 0
    for bad in (paths[:9], paths[8:]):
        with pytest.raises(ImageError):
            store.features(bad, fake(), strict=True)


def test_nothing(store, pictures, fake):
    assert store.features([], fake()).values.shape == (0, 192)
    (path,) = pictures(1)
    path.write_bytes(b"broken")
    assert store.features([path], fake()).values.shape == (0, 192)
    assert store.entries() == []


def test_progress_starts_where_the_cache_ends(store, pictures, fake):
    paths, seen = pictures(10), []
    store.fill(paths[:6], fake())
    store.fill(paths, fake(batch=2), progress=lambda *step: seen.append(step))
    assert seen == [(6, 10), (8, 10), (10, 10)]


def test_float16_is_its_own_cache(store, pictures, fake, expected):
    paths = pictures(10)
    store.features(paths, fake())
    half, encoder = FeatureCache(store.root, dtype="float16"), fake()
    found = half.features(paths, encoder)
    assert encoder.seen == 10
    assert found.values.dtype == np.float32
    np.testing.assert_allclose(found.values, expected(paths), atol=5e-4)
    assert sorted(entry.dtype for entry in half.entries()) == ["float16", "float32"]
    with pytest.raises(ValueError, match="float64"):
        FeatureCache(store.root, dtype="float64")


def flip(path, at):
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: flip(path, -200),
        lambda path: flip(path, -1),
        lambda path: flip(path, len(path.read_bytes()) // 2),
        lambda path: flip(path, 0),
        lambda path: flip(path, 7),
        lambda path: flip(path, 9),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(path.read_bytes() + b"x"),
        lambda path: path.write_bytes(b"\x02\0\0\0\0\0\0\0{}"),
        lambda path: path.write_bytes(os.urandom(1000)),
    ],
)
def test_a_damaged_file_is_computed_again(store, pictures, fake, expected, damage):
    paths = pictures(24)
    store.features(paths, fake())
    victim = cache_files(store)[1]
    damage(victim)
    encoder = fake()
    found = again(store).features(paths, encoder)
    np.testing.assert_allclose(found.values, expected(paths), rtol=1e-6)
    assert encoder.seen == 8
    assert not victim.exists()
    assert again(store).damaged() == [victim.with_name(victim.name + ".damaged")]
    encoder = fake()
    again(store).features(paths, encoder)
    assert encoder.seen == 0


def test_every_flipped_bit_of_a_header_is_noticed_and_stands_in_nobodys_way(store, pictures, fake, expected):
    paths = pictures(2)
    store.features(paths, fake())
    wanted, (victim,) = expected(paths), cache_files(store)
    whole = victim.read_bytes()
    header = 8 + int.from_bytes(whole[:8], "little")
    missed = []
    for at in range(header):
        for bit in range(8):
            raw = bytearray(whole)
            raw[at] ^= 1 << bit
            victim.write_bytes(raw)
            try:
                file = open_cache_file(victim)
            except DamagedCacheFileError:
                continue
            if file.intact() or (file.rows, file.dim) != (2, 192):  # the checksum itself may be what was flipped
                missed.append((at, bit))
    assert missed == []
    for at in range(0, header, 23):
        raw = bytearray(whole)
        raw[at] ^= 1 << at % 8
        victim.write_bytes(raw)
        cached = again(store)
        assert len(cached.entries()) <= 1
        found = cached.features(paths, fake())
        np.testing.assert_allclose(found.values, wanted, rtol=1e-6)
        assert cached.set_aside == [victim.with_name(victim.name + ".damaged")]
        assert cached.set_aside[0].read_bytes() == raw
        assert cached.clear() > len(whole)
        assert not victim.parent.exists()
        victim.parent.mkdir()


@pytest.mark.parametrize("shapes", [["8", 16], [2.0, 16], [2], [[2], 16], 2, "ab", [10**30, 16], [-2, 16]])
def test_a_header_that_was_made_up_is_damage_too(store, pictures, fake, shapes):
    store.features(pictures(2), fake())
    (victim,) = cache_files(store)
    whole = victim.read_bytes()
    size = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + size])
    header["keys"]["shape"] = shapes
    text = json.dumps(header).encode()
    victim.write_bytes(len(text).to_bytes(8, "little") + text + whole[8 + size :])
    assert (store.entries(), store.damaged()) == ([], [victim])
    assert store.clear() == len(text) + 8 + len(whole) - 8 - size
    assert not victim.exists()


def test_a_file_that_may_not_be_read_is_passed_over(store, pictures, fake, monkeypatch):
    paths = pictures(2)
    store.features(paths, fake())
    (theirs,) = cache_files(store)
    opened = Path.open

    def refuse(path, *args, **kwargs):
        if path == theirs:
            raise PermissionError(13, "Permission denied")
        return opened(path, *args, **kwargs)

    monkeypatch.setattr(Path, "open", refuse)
    assert (again(store).entries(), again(store).damaged()) == ([], [])
    encoder = fake()
    again(store).features(paths, encoder)
    assert encoder.seen == 2
    assert theirs.exists()


def test_unfinished_files_are_removed_once_they_are_old(store, pictures, fake):
    paths = pictures(3)
    store.features(paths, fake())
    folder = cache_files(store)[0].parent
    old, new = folder / ".a.old.tmp", folder / ".a.new.tmp"
    old.write_bytes(b"x")
    new.write_bytes(b"x")
    os.utime(old, (time.time() - 7200,) * 2)
    store.features(paths, fake())
    assert not old.exists()
    assert new.exists()


def test_a_full_disk_leaves_nothing_half_written(store, pictures, fake, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        store.fill(pictures(20), fake())
    assert [path for path in store.root.rglob("*") if path.is_file()] == []


def test_an_interruption_keeps_what_was_computed(store, pictures, fake):
    paths = pictures(30)

    def interrupt(done, total):
        if done >= 12:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.fill(paths, fake(batch=2), threads=1, progress=interrupt)
    encoder = fake()
    store.fill(paths, encoder)
    assert encoder.seen == 30 - 12


def test_a_picture_that_changes_under_our_hands_is_not_filed_under_its_old_content(store, pictures, fake, expected):
    paths = pictures(12)

    def change(batch):
        Image.new("RGB", (8, 8), "red").save(paths[11])

    found = store.features(paths, fake(before=change, batch=2), threads=1)
    assert found.kept.tolist() == list(range(11))
    assert found.skipped == [(str(paths[11]), "changed while the features were being computed; run again")]
    np.testing.assert_allclose(store.features(paths, fake()).values, expected(paths), rtol=1e-6)


def test_stored_reads_only_what_is_asked_for(store, pictures, fake, expected):
    paths = pictures(30)
    stored = store.fill(paths, fake())
    wanted = expected(paths)
    assert len(stored) == 30
    assert stored.dim == 192
    for index in (3, -1, slice(2, 20, 3), slice(None), [29, 0, 0, 7], np.arange(30) % 2 == 0, slice(0, 0)):
        np.testing.assert_allclose(stored[index], wanted[index], rtol=1e-6)
        assert stored[index].dtype == np.float32
        assert stored[index].shape == wanted[index].shape
    with pytest.raises(IndexError):
        stored[30]
    store.clear()
    if os.name == "posix":
        np.testing.assert_allclose(stored[:], wanted, rtol=1e-6)  # what is mapped outlives its name


def test_filling_does_not_hold_the_features(store, fake, monkeypatch):
    monkeypatch.setattr(cache, "ROWS_PER_FILE", 64)
    images = np.random.default_rng(0).integers(0, 256, (1500, 32, 32, 3), dtype=np.uint8)
    encoder = fake(size=32, batch=16)
    store.fill(images[:2], encoder)
    tracemalloc.start()
    store.fill(images, encoder, threads=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    features = 1500 * 3072 * 4
    assert sum(entry.bytes for entry in store.entries()) > features
    assert peak < features / 4


def test_entries_and_clear(store, pictures, fake):
    paths = pictures(10)
    assert store.entries() == []
    assert store.clear() == 0
    store.fill(paths, fake())
    store.fill(paths[:4], fake(factor=2.0))
    one, two = store.entries()
    assert (one.identity, one.count, two.identity, two.count) == ("fake@8*1.0", 10, "fake@8*2.0", 4)
    assert one.preprocess == fake().preprocess.key()
    assert one.bytes == sum(path.stat().st_size for path in one.path.iterdir())
    foreign = two.path / "notes.txt"
    foreign.write_text("mine")
    assert store.clear("fake@8*2.0") == two.bytes
    assert foreign.exists()
    assert [entry.identity for entry in store.entries()] == ["fake@8*1.0"]
    assert store.clear("unknown") == 0
    assert store.clear() == one.bytes
    assert store.entries() == []
    assert not one.path.exists()
    assert foreign.exists()


def test_where_the_cache_lies(monkeypatch, tmp_path):
    monkeypatch.setenv("ENGRAM_CACHE", str(tmp_path / "e"))
    assert FeatureCache().root == tmp_path / "e"
    assert FeatureCache(tmp_path / "r").root == tmp_path / "r"
    monkeypatch.delenv("ENGRAM_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "x"))
    assert FeatureCache().root == tmp_path / "x" / "engram"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert FeatureCache().root == tmp_path / ".cache" / "engram"
    monkeypatch.setattr("sys.platform", "darwin")
    assert FeatureCache().root == tmp_path / "Library" / "Caches" / "engram"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "l"))
    assert FeatureCache().root == tmp_path / "l" / "engram" / "Cache"
    assert not any(tmp_path.iterdir())  # nothing is made before something is kept
