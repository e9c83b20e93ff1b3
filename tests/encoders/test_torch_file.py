"""Files of torch's old format, read without torch."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from engram.encoders.torch_file import read_torch_file


def save_old(value: object, path: Path) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=False)
    return path


@pytest.fixture
def tensors():
    whole = torch.arange(24.0).reshape(2, 3, 4)
    return {"whole": whole, "turned": torch.randn(3, 5).T, "part": whole[1, 1:, ::2], "count": torch.tensor(7),
            "none": torch.zeros(0, 3)}  # fmt: skip


def test_tensors_are_those_that_were_saved(tensors, tmp_path):
    found = read_torch_file(save_old(tensors, tmp_path / "t.pth"))
    assert list(found) == list(tensors)
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(found[name], tensor.numpy())
        assert found[name].dtype == tensor.numpy().dtype
        assert not found[name].flags.writeable


def test_nothing_that_a_file_asks_for_is_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "was-run",))

    with pytest.raises(ValueError, match="it asks for"):
        read_torch_file(save_old({"a": Evil()}, tmp_path / "t.pth"))
    assert not (tmp_path / "was-run").exists()


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x02.", b"words"])
def test_other_files_are_refused(content, tmp_path):
    (tmp_path / "t.pth").write_bytes(content)
    with pytest.raises(ValueError, match=re.escape(str(tmp_path / "t.pth"))):
        read_torch_file(tmp_path / "t.pth")
    with pytest.raises(ValueError, match="missing"):
        read_torch_file(tmp_path / "missing.pth")


def test_what_is_no_dictionary_of_tensors_is_refused(tmp_path):
    for value in ([torch.zeros(2)], {"epoch": 3}, {"half": torch.zeros(2).half()}):
        with pytest.raises(ValueError, match="cannot be read"):
            read_torch_file(save_old(value, tmp_path / "t.pth"))


def test_another_version_of_the_format_is_refused(tensors, tmp_path):
    content = save_old(tensors, tmp_path / "t.pth").read_bytes()
    version = b"M\xe9\x03."  # the pickled 1001, alone
    assert content.count(version) == 1
    (tmp_path / "t.pth").write_bytes(content.replace(version, b"M\xea\x03."))
    with pytest.raises(ValueError, match="format"):
        read_torch_file(tmp_path / "t.pth")


def test_a_file_cut_off_anywhere_is_refused(tensors, tmp_path):
    content = save_old(tensors, tmp_path / "t.pth").read_bytes()
    for length in range(0, len(content), 17):
        (tmp_path / "cut.pth").write_bytes(content[:length])
        with pytest.raises(ValueError, match="cut"):
            read_torch_file(tmp_path / "cut.pth")


def test_a_tensor_beyond_its_storage_is_refused(tmp_path):
    content = save_old({"a": torch.zeros(5, 7)}, tmp_path / "t.pth").read_bytes()
    shape = b"K\x05K\x07\x86"  # the pickled (5, 7)
    assert content.count(shape) == 1
    (tmp_path / "t.pth").write_bytes(content.replace(shape, b"K\x06K\x07\x86"))
    with pytest.raises(ValueError, match="cannot be read"):
        read_torch_file(tmp_path / "t.pth")
