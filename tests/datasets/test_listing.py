"""Lists of pictures and their classes."""

import pytest

from engram.datasets.dataset import DataError
from engram.datasets.listing import read_listing


@pytest.fixture
def folder(tmp_path):
    for name in ("a.jpg", "b.jpg", "wren/1.jpg", "wren/3.jpg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"any")
    return tmp_path


def test_one_path_or_address_a_line(folder):
    (folder / "list.txt").write_text("wren/1.jpg\n\ns3://bucket/birds/robin/2.jpg\nwren/3.jpg\nwren/3.jpg\n")
    listing = read_listing(folder / "list.txt")
    assert listing.bad == []
    assert list(listing.classes.items()) == [
        ("robin", ["s3://bucket/birds/robin/2.jpg"]),
        ("wren", [str(folder / "wren/1.jpg"), str(folder / "wren/3.jpg")]),
    ]
    here = read_listing(folder / "list.txt", addresses=False)
    assert here.bad == ["line 3: s3://bucket/birds/robin/2.jpg is an address, which only --dask reads"]
    assert list(here.classes) == ["wren"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("l.csv", 'path,label\na.jpg,wren\nb.jpg,"great, tit"\n'),
        ("l.csv", 'a.jpg,wren\r\n\r\nb.jpg,"great, tit"\r\n'),
        ("l.CSV", '\ufefflabel,Path,by\nwren,a.jpg,me\n"great, tit",b.jpg,you\n'),
        ("l.tsv", "a.jpg\twren\nb.jpg\tgreat, tit\n"),
        ("l.tsv", "label\tpath\n wren \ta.jpg\ngreat, tit\tb.jpg"),
    ],
)
def test_tables(folder, name, text):
    (folder / name).write_text(text, encoding="utf-8", newline="")
    listing = read_listing(folder / name)
    assert listing.bad == []
    assert listing.classes == {"great, tit": [str(folder / "b.jpg")], "wren": [str(folder / "a.jpg")]}


def test_bad_rows_are_told_by_their_lines(folder):
    (folder / "l.csv").write_text(
        'path,label\na.jpg,wren\nb.jpg,\nnone.jpg,wren\n,wren\nwren,wren\na.jpg,robin\nb.jpg\n"b.jpg","two\nlines"\nb.jpg,tit\n'
    )
    listing = read_listing(folder / "l.csv")
    assert listing.classes == {"wren": [str(folder / "a.jpg")], "two\nlines": [str(folder / "b.jpg")]}
    assert listing.bad == [
        "line 3: b.jpg has no label",
        "line 4: cannot read none.jpg: No such file or directory",
        "line 5: it has no path",
        "line 6: cannot read wren: Is a directory",
        "line 7: a.jpg is robin here, but wren on line 2",
        "line 8: b.jpg has no label",
        "line 11: b.jpg is tit here, but two\nlines on line 10",
    ]


def test_a_header_that_is_none_is_a_bad_row(folder):
    (folder / "l.csv").write_text("file,class\na.jpg,wren\n")
    assert read_listing(folder / "l.csv").bad == ["line 1: cannot read file: No such file or directory"]
    (folder / "l.txt").write_text("a.jpg\n")
    assert read_listing(folder / "l.txt").bad == ["line 1: a.jpg has no label"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("b.txt", b"\n", "b.txt names no pictures"),
        ("b.csv", b"path,label\n", "b.csv names no pictures"),
        ("b.csv", b"", "b.csv names no pictures"),
        ("c.csv", b"file,class,by\nx,y,z\n", "needs the columns path and label, named in its first line"),
        ("e.txt", b"\xff\xfe\x00", "it is not text"),
        ("f.csv", b'"' + b"x" * 200_000, "f.csv, line 1, is no table: field larger"),
    ],
)
def test_files_that_are_no_list(folder, name, content, reason):
    (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=reason):
        read_listing(folder / name)
    with pytest.raises(DataError, match="No such file"):
        read_listing(folder / "none.txt")
