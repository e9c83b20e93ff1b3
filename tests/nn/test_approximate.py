"""The approximate index against the exact answer."""

import sys

import pytest
import torch

from engram.nn.approximate import ApproximateIndex
from engram.nn.prototypes import PrototypeMemory


def memory_of(n: int, width: int = 16) -> PrototypeMemory:
    memory = PrototypeMemory(width)
    memory.means = torch.randn(n, width, generator=torch.Generator().manual_seed(0)) * torch.rand(n, 1)
    memory.labels = list(range(n))
    return memory


def test_few_classes_are_searched_exactly():
    pytest.importorskip("faiss")
    memory = memory_of(500)
    codes = torch.randn(20, 16, generator=torch.Generator().manual_seed(1))
    similarity, rows = ApproximateIndex(memory).nearest(codes, 5)
    expected, order = memory.nearest(codes, 5)
    torch.testing.assert_close(similarity, expected)
    assert rows.tolist() == order.tolist()


def test_many_classes_are_searched_nearly_so():
    pytest.importorskip("faiss")
    memory = memory_of(20_000)
    picked = torch.arange(0, 20_000, 97)
    codes = memory.means[picked] * 3 + 0.001  # each beside the mean of its class
    similarity, rows = ApproximateIndex(memory, probe=8).nearest(codes, 3)
    exact, order = memory.nearest(codes, 3)
    assert (rows[:, 0] == picked).float().mean() > 0.99
    found = (rows[:, :, None] == order[:, None, :]).any(dim=1).float().mean()
    assert 0.5 < found < 1.0, "an index that finds everything looks everywhere, and one that finds little is useless"
    assert (similarity[:, 0] <= exact[:, 0] + 1e-5).all()


def test_without_faiss_one_line_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"pip install 'engram\[faiss\]'"):
        ApproximateIndex(memory_of(3))
