"""Every loss against plain Python loops over a handful of points."""

import math

import pytest
import torch

from engram.paper import losses

CODES = [[1.0, 2.0, -0.5], [0.3, -1.0, 2.0], [-1.0, 0.2, 0.1], [2.0, 4.1, -0.9]]
FEATURES = [[1.5, 2.0, 0.0], [0.0, -1.0, 1.0], [-2.0, 0.0, 0.1], [2.0, 3.0, -1.0]]
LABELS = [0, 1, 1, 0]


def cosine(a: list[float], b: list[float]) -> float:
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(x * x for x in b))


def pair_loss(i: int, j: int) -> float:
    similarity = cosine(CODES[i], CODES[j])
    return 1 - similarity if LABELS[i] == LABELS[j] else max(0.0, similarity)


def test_reconstruction_is_eq_2():
    expected = 0.0
    for made, real in zip(CODES, FEATURES, strict=True):
        expected += sum((m - r) ** 2 for m, r in zip(made, real, strict=True)) / len(CODES)
    assert losses.reconstruction(torch.tensor(CODES), torch.tensor(FEATURES)).item() == pytest.approx(expected)


@pytest.mark.parametrize("pairs", [[(0, 3), (0, 1), (2, 1), (1, 3)], [(3, 0)], [(0, 1), (0, 1)]])
def test_cosine_of_given_pairs_is_eq_3(pairs: list[tuple[int, int]]):
    expected = sum(pair_loss(i, j) for i, j in pairs) / len(pairs)
    measured = losses.cosine_pairs(torch.tensor(CODES), torch.tensor(LABELS), torch.tensor(pairs))
    assert measured.item() == pytest.approx(expected, abs=1e-6)


def test_cosine_of_all_pairs_is_eq_3():
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    expected = sum(pair_loss(i, j) for i, j in pairs) / len(pairs)
    measured = losses.cosine_pairs(torch.tensor(CODES), torch.tensor(LABELS), None)
    assert measured.item() == pytest.approx(expected, abs=1e-6)


def test_cosine_of_one_sample_is_zero():
    assert losses.cosine_pairs(torch.tensor(CODES[:1]), torch.tensor([0]), None).item() == 0


def test_pairs_are_of_two_different_samples_and_reach_all():
    pairs = losses.draw_pairs(5, 2000, torch.Generator().manual_seed(0))
    drawn = {tuple(pair) for pair in pairs.tolist()}
    assert drawn == {(i, j) for i in range(5) for j in range(5) if i != j}


def test_sparsity_is_eq_4():
    expected = sum(abs(c) for code in CODES for c in code) / len(CODES)
    assert losses.sparsity(torch.tensor(CODES)).item() == pytest.approx(expected)


def test_center_is_eq_6():
    means = [[1.0, 1.0, 1.0], [0.0, -0.5, 0.25]]
    expected = 0.0
    for code, label in zip(CODES, LABELS, strict=True):
        expected += sum((c - m) ** 2 for c, m in zip(code, means[label], strict=True)) / len(CODES)
    measured = losses.center(torch.tensor(CODES), torch.tensor(means), torch.tensor(LABELS))
    assert measured.item() == pytest.approx(expected)
