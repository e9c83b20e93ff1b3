"""Mistakes people make: each is told in words, and the rest goes on."""

import errno
import io
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from toys import paint

from engram.datasets import folders
from engram.images.decode import ImageError, load_image
from engram.store import twins

NEW = ["--backbone", "averages"]
NO_PICTURE = "by its name not a picture that engram reads"


def test_every_file_that_is_left_out_is_named(engram, tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "find_spec", lambda name: None)
    red = paint(tmp_path / "p", "red", "green") / "red"
    shutil.copy(red / "0-0.png", red / "phone.HEIC")
    (red / "gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    (red / "deeper").symlink_to(tmp_path / "p" / "green")
    (red / ".hidden.txt").write_text("")
    shutil.copy(red / "0-0.png", tmp_path / "p" / "loose.png")
    for i in range(12):
        (red / f"{i:02}.xml").write_text("")
    done = engram("learn", "m.engram", "p", *NEW, "--json")
    assert done.code == 0
    left = {one["path"]: one["reason"] for one in done.json["left_out"]}
    assert left == {
        "p/red/phone.HEIC": "HEIC takes one more package: pip install 'engram-learn[heic]'",
        "p/red/gone.jpg": "a link to nothing",
        "p/red/deeper": "a link to a folder, which is not followed",
        "p/loose.png": "it lies in the folder of no class",
        **{f"p/red/{i:02}.xml": NO_PICTURE for i in range(12)},
    }
    told = [line for line in done.err.splitlines() if line.startswith("left out ")]
    assert f"left out p/red/09.xml: {NO_PICTURE}" in told
    assert f"left out 2 more: {NO_PICTURE}" in told
    assert len(told) == 4 + 11
    for command in (("predict", "m.engram", "p/red"), ("evaluate", "m.engram", "p")):
        assert "left out p/red/gone.jpg: a link to nothing" in engram(*command).err
        assert engram(*command, "--quiet").err == ""


def test_heic_is_read_where_the_package_is(tmp_path, monkeypatch):
    path = tmp_path / "phone.heic"
    path.write_bytes(b"")
    monkeypatch.setattr(folders, "find_spec", lambda name: name == "pillow_heif" or None)
    assert folders.scan_pictures(tmp_path) == ([path], [])
    heif = pytest.importorskip("pillow_heif")
    heif.from_pillow(Image.new("RGB", (64, 48), (200, 30, 30))).save(path)
    picture = load_image(path)
    assert picture.size == (64, 48)
    assert np.abs(np.asarray(picture).mean((0, 1)) - (200, 30, 30)).max() < 5


def test_jpeg_2000_is_read(tmp_path):
    Image.new("RGB", (64, 48), (200, 30, 30)).save(tmp_path / "scan.jp2")
    assert folders.scan_pictures(tmp_path) == ([tmp_path / "scan.jp2"], [])
    assert load_image(tmp_path / "scan.jp2").getpixel((5, 5)) == (200, 30, 30)


def deny(monkeypatch, *names: str) -> None:
    """Refuse to open these files and folders, as for somebody who is not root."""
    real_open, real_scan = io.open, os.scandir

    def refuse(path: object) -> None:
        if isinstance(path, str | os.PathLike) and Path(path).name in names:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

    def opened(file, *args, **kwargs):
        refuse(file)
        return real_open(file, *args, **kwargs)

    def scanned(path="."):
        refuse(path)
        return real_scan(path)

    monkeypatch.setattr("builtins.open", opened)
    monkeypatch.setattr(io, "open", opened)
    monkeypatch.setattr(os, "scandir", scanned)


def test_what_may_not_be_read_is_named_and_passed_over(engram, tmp_path, monkeypatch):
    paint(tmp_path / "p", "red", "green", "blue", n=4)
    deny(monkeypatch, "0-2.png", "blue")
    done = engram("learn", "m.engram", "p", *NEW, "--json")
    assert done.code == 0, done.err
    assert {one["name"]: one["pictures"] for one in done.json["learned"]} == {"green": 3, "red": 3}
    for line in (
        "left out p/blue: Permission denied",
        "not learned: blue: its folder holds no pictures that can be read",
        "passed over p/red/0-2.png: Permission denied",
    ):
        assert line in done.err.splitlines()
    judged = engram("evaluate", "m.engram", "p")
    assert "p/blue holds no pictures (blue: Permission denied)" in judged.err


def test_a_folder_that_may_not_be_read_at_all(engram, tmp_path, monkeypatch):
    paint(tmp_path / "p", "red")

    def refuse(self):
        raise PermissionError(errno.EACCES, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", refuse)
    assert engram("learn", "m.engram", "p", *NEW).err == "error: cannot read p: Permission denied\n"


def picture_bytes(width: int, height: int, kind: str) -> bytes:
    across = np.linspace(0, 255, width, dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(np.repeat(across[None, :], height, 0)).convert("RGB").save(buffer, kind)
    return buffer.getvalue()


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(
    ("limit", "size"),
    [(80 * 60, (80, 60)), (80 * 60 - 1, (40, 30)), (40 * 30, (40, 30)), (40 * 30 - 1, (20, 15)), (20 * 15, (20, 15))],
)
def test_a_jpeg_beyond_the_limit_is_read_smaller(monkeypatch, tmp_path, limit, size):
    """Up to twice the limit Pillow warns; from there on it refuses to open the file."""
    raw = picture_bytes(80, 60, "JPEG")
    (tmp_path / "large.jpg").write_bytes(raw)
    whole = np.asarray(load_image(raw))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    for source in (raw, io.BytesIO(raw), tmp_path / "large.jpg"):
        picture = load_image(source)
        assert picture.size == size
        if size == (80, 60):
            assert np.array_equal(np.asarray(picture), whole)  # nothing changes for ordinary pictures
        small = np.asarray(Image.fromarray(whole).resize(size, Image.Resampling.BOX), dtype=float)
        assert np.abs(np.asarray(picture) - small).max() < 8


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(("kind", "limit"), [("JPEG", 20 * 15 - 1), ("PNG", 80 * 60 - 1), ("PNG", 80 * 60 // 2 - 1)])
def test_others_beyond_the_limit_say_how_to_read_them(engram, monkeypatch, tmp_path, kind, limit):
    paint(tmp_path / "p", "red", "green")
    engram("learn", "m.engram", "p", *NEW)
    (tmp_path / "large").write_bytes(picture_bytes(80, 60, kind))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(ImageError, match=rf"large: .*beyond the limit of {limit} pixels; --max-pixels sets another"):
        load_image(tmp_path / "large")
    assert engram("predict", "m.engram", "large").code == 2
    for command in (("predict", "m.engram", "large"), ("learn", "m.engram", "p"), ("evaluate", "m.engram", "p")):
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
        done = engram(*command, "--max-pixels", 80 * 60)
        assert (done.code, Image.MAX_IMAGE_PIXELS) == (1 if command[0] == "learn" else 0, 80 * 60)
    assert "--dask reads them elsewhere" in engram("learn", "m.engram", "p", "--max-pixels", 9, "--dask", "local").err


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (
            OSError(errno.EROFS, "Read-only file system"),
            "Read-only file system; copy the model to a folder where you may write",
        ),
        (
            NotImplementedError("no flock here"),
            "no flock here; its file system has no locks: copy the model to a local disk, change it there, and copy it "
            "back",
        ),
    ],
)
def test_a_lock_that_cannot_be_made(engram, tmp_path, monkeypatch, error, reason):
    paint(tmp_path / "p", "red", "green")
    engram("learn", "m.engram", "p", *NEW)

    def refuse(*args, **kwargs):
        raise error

    monkeypatch.setattr("engram.store.lock.FileLock.acquire", refuse)
    assert engram("rename", "m.engram", "red", "rot").err == (
        f"error: m.engram cannot be changed: no lock .m.engram.lock can be made beside it: {reason}\n"
    )


def test_more_pictures_are_no_new_classes(engram, tmp_path):
    paint(tmp_path / "p", "red", "green")
    assert "knows 2 classes, 2 of them new;" in engram("learn", "m.engram", "p", *NEW).err
    paint(tmp_path / "q", "red", "blue", seed=3)
    assert "knows 3 classes, 1 of them new, 1 with more pictures;" in engram("learn", "m.engram", "q", "--more").err


def test_warnings_of_what_is_likely_not_meant(engram, tmp_path):
    folder = paint(tmp_path / "p", "red", "green", "blue", n=4)
    (folder / "green").rename(folder / "Red")
    for path in (folder / "blue").glob("0-[123].png"):
        path.unlink()
    shutil.copy(folder / "red" / "0-1.png", folder / "Red" / "again.png")
    done = engram("learn", "m.engram", "p", *NEW, "--json")
    assert done.json["warnings"] == [
        "Red and red are two classes now; if they are one, forget one and learn it under one name",
        "blue was learned from 1 picture, and will often be missed; five or more do better (--more)",
        "one picture under two names: p/Red/again.png (Red) and p/red/0-1.png (red)",
    ]
    assert [line for line in done.err.splitlines() if line.startswith("warning: ")] == [
        f"warning: {one}" for one in done.json["warnings"]
    ]
    paint(tmp_path / "more", "blue", n=1, seed=5)
    assert "warning" not in engram("learn", "m.engram", "more", "--more").err
    paint(tmp_path / "later", "violet", n=2)
    (tmp_path / "later" / "violet").rename(tmp_path / "later" / "BLUE")
    assert "warning: BLUE and blue are two classes now" in engram("learn", "m.engram", "later").err


def test_only_the_same_content_makes_twins(tmp_path):
    for name, content in {"a/1": b"xyz", "a/2": b"xyz", "b/1": b"xya", "b/2": b"xyz", "c/1": b"xyzz"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content * 9000)
    classes = {name: sorted((tmp_path / name).iterdir()) for name in "abc"}
    assert twins(classes) == [("a", tmp_path / "a/1", "b", tmp_path / "b/2")]
    ends = b"z" * 9000
    (tmp_path / "b/3").write_bytes(b"1" + ends + b"2")
    (tmp_path / "c/3").write_bytes(b"3" + ends + b"4")  # the same size and the same middle
    assert len(twins({name: sorted((tmp_path / name).iterdir()) for name in "abc"})) == 1


def test_a_wrong_path_is_told_before_anything_is_loaded(engram, tmp_path, monkeypatch):
    paint(tmp_path / "p", "red", "green")
    engram("learn", "m.engram", "p", *NEW)
    mixed = engram("predict", "m.engram", "p/red/0-0.png", "nowhere.png")
    assert mixed.code == 2
    assert mixed.out.startswith("p/red/0-0.png: red")
    assert mixed.err == "cannot read nowhere.png: No such file or directory\n"
    monkeypatch.setitem(sys.modules, "engram.store", None)  # importing it would fail
    wrong = engram("predict", "m.engram", "nowhere.png")
    assert (wrong.code, wrong.err) == (2, "cannot read nowhere.png: No such file or directory\n")
