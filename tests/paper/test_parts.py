"""Class means and distance."""

import pytest
import torch

from engram.paper import distance, statistics


def test_more_data_later_updates_the_mean_exactly():
    codes = torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    rows = torch.zeros(50, dtype=torch.int64)
    at_once = statistics.update(None, None, codes, rows, 1)
    first = statistics.update(None, None, codes[:13], rows[:13], 1)
    second = statistics.update(first.counts, first.means, codes[:5], rows[:5] + 1, 2)
    before = second.means.clone()
    in_two = statistics.update(second.counts, second.means, codes[13:], rows[13:], 2)
    torch.testing.assert_close(in_two.means[0], at_once.means[0], rtol=1e-6, atol=1e-7)
    assert in_two.counts.tolist() == [50, 5]
    assert torch.equal(in_two.means[1], before[1])
    assert torch.equal(second.means, before)  # what was given is not changed
    torch.testing.assert_close(in_two.means[1], codes[:5].mean(dim=0))


def test_similarity_is_cosine_and_independent_of_scale():
    means = torch.tensor([[10.0, 0.0], [0.0, 0.1]])
    codes = torch.tensor([[1.0, 1.0], [0.0, -5.0], [0.0, 0.0]])
    half = 0.5**0.5
    torch.testing.assert_close(distance.similarity(codes, means), torch.tensor([[half, half], [0.0, -1.0], [0.0, 0.0]]))
    torch.testing.assert_close(
        distance.similarity(codes), torch.tensor([[1.0, -half, 0.0], [-half, 1.0, 0.0], [0.0, 0.0, 0.0]])
    )


@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_nearest_classes_chunk_by_chunk_are_those_of_the_whole_table(k, monkeypatch):
    monkeypatch.setattr(distance, "CHUNK", 3)
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(7, 4, generator=generator) * torch.arange(1, 8)[:, None]  # three chunks, the last of one class
    codes = torch.randn(6, 4, generator=generator)
    similarity, rows = distance.nearest(codes, means, k)
    expected, order = distance.similarity(codes, means).sort(dim=1, descending=True)
    torch.testing.assert_close(similarity, expected[:, :k])
    assert rows.tolist() == order[:, :k].tolist()
