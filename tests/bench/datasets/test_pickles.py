import os
import pickle

import numpy as np
import pytest

from engram.bench.datasets.pickles import read_pickle
from engram.datasets.dataset import DataError

CONTENT = {"data": np.arange(24, dtype=np.uint8).reshape(4, 6), "labels": [0, 1, 2, 3], "names": [b"a", b"b"]}


def check(content):
    np.testing.assert_array_equal(content["data"], CONTENT["data"])
    assert content["data"].dtype == np.uint8
    assert content["labels"] == CONTENT["labels"]
    assert content["names"] == CONTENT["names"]


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("bytes_keys", [False, True])
def test_every_protocol_and_both_kinds_of_keys(tmp_path, protocol, bytes_keys):
    content = {k.encode() if bytes_keys else k: v for k, v in CONTENT.items()}
    (tmp_path / "p").write_bytes(pickle.dumps(content, protocol=protocol))
    check(read_pickle(tmp_path / "p"))


def test_python_2_files(tmp_path, dump_python2):
    dump_python2(CONTENT, tmp_path / "p")
    raw = (tmp_path / "p").read_bytes()
    assert b"numpy.core.multiarray" in raw
    assert b"_codecs" not in raw
    check(read_pickle(tmp_path / "p"))


@pytest.mark.parametrize("array", [np.asfortranarray(CONTENT["data"]), np.arange(5, dtype=">i4"), np.ones((2, 3, 4))])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_orders_and_dtypes(tmp_path, array, protocol):
    (tmp_path / "p").write_bytes(pickle.dumps({"data": array}, protocol=protocol))
    read = read_pickle(tmp_path / "p")["data"]
    np.testing.assert_array_equal(read, array)
    assert read.dtype == array.dtype


class _Calls:
    def __init__(self, function, *args):
        self.call = (function, args)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    "bad",
    [
        _Calls(os.system, "touch HERE"),
        _Calls(eval, "open('HERE', 'w')"),
        _Calls(getattr, "", "format"),
        _Calls(np.load, "HERE"),
        _Calls(np.ndarray, (1,)),
        _Calls(bytearray, 10),
        np.array([_Calls(os.system, "touch HERE")], dtype=object),
        np.array(["text"]),
        np.float64(1.0),
        os.system,
    ],
)
@pytest.mark.parametrize("protocol", [0, 2, 4, 5])
def test_everything_else_is_refused_and_not_run(tmp_path, monkeypatch, bad, protocol):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").write_bytes(pickle.dumps({"data": bad}, protocol=protocol))
    with pytest.raises(DataError, match="not a pickle of plain numeric data") as caught:
        read_pickle(tmp_path / "p")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "HERE").exists()


def test_a_text_codec_is_no_way_out(tmp_path):
    (tmp_path / "p").write_bytes(b"c_codecs\nencode\n(Vabc\nVzip\ntR.")
    with pytest.raises(DataError, match="zip"):
        read_pickle(tmp_path / "p")


@pytest.mark.parametrize("raw", [b"", b"garbage", pickle.dumps(CONTENT)[:60], pickle.dumps([1])])
def test_broken_files_are_one_line(tmp_path, raw):
    (tmp_path / "p").write_bytes(raw)
    with pytest.raises(DataError, match="not a pickle") as caught:
        read_pickle(tmp_path / "p")
    assert "\n" not in str(caught.value)


def test_missing_file(tmp_path):
    with pytest.raises(DataError, match="No such file"):
        read_pickle(tmp_path / "absent")


# Each announces gigabytes that are not there. Remembering something as number 0x1fffffff takes 8 GB of a list.
@pytest.mark.parametrize(
    "raw",
    [
        b"]r\xff\xff\xff\x1f.",
        b"\x80\x02]q\x05.",
        b"]p536870911\n.",
        b"\x8e" + (2**32).to_bytes(8, "little") + b"x.",
        b"\x8d" + (2**32).to_bytes(8, "little") + b"x.",
        b"\x80\x05\x96" + (2**32).to_bytes(8, "little") + b"x.",
        b"B\xff\xff\xff\xffx.",
        b"T\xff\xff\xff\x7fx.",
        b"X\xff\xff\xff\xffx.",
        b"\x8b\xff\xff\xff\x7fx.",
        b"\x80\x04\x95" + (2**32).to_bytes(8, "little") + b"}.",
    ],
)
def test_nothing_is_made_room_for_that_is_not_there(tmp_path, monkeypatch, raw):
    monkeypatch.setattr("engram.bench.datasets.pickles._Unpickler", None)  # which is never asked
    (tmp_path / "p").write_bytes(raw)
    with pytest.raises(DataError, match="is not a pickle of plain numeric data") as said:
        read_pickle(tmp_path / "p")
    assert "NoneType" not in str(said.value)
    assert "\n" not in str(said.value)
