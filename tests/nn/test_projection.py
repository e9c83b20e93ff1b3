"""Random projections."""

import numpy as np
import torch

from engram.nn.projection import signs


def test_the_numbers_of_a_seed_never_change():
    """A model file keeps the seed alone, so another stream of numbers would make it useless."""
    matrix = signs(5, 4, 0) * 2
    assert matrix.int().tolist() == [[1, 1, 1, 1], [1, -1, 1, -1], [-1, 1, -1, -1], [-1, -1, -1, 1], [-1, 1, -1, -1]]
    assert signs(100, 70, 7)[-1, :8].sign().int().tolist() == [-1, -1, -1, 1, -1, -1, 1, -1]
    assert matrix.dtype == torch.float32


def test_every_number_is_plus_or_minus_one_over_the_root_of_the_width():
    matrix = signs(300, 100, 1)
    assert matrix.shape == (300, 100)
    assert torch.equal(matrix.abs(), torch.full_like(matrix, 0.1))
    assert abs(float(matrix.sign().mean())) < 0.02
    assert not torch.equal(matrix, signs(300, 100, 2))


def test_lengths_and_angles_are_kept_on_average():
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 3000))).float()
    X[20:] = X[:20] + 0.5 * X[20:]
    projected = X @ signs(3000, 1000, 3)
    ratio = projected.square().sum(dim=1) / X.square().sum(dim=1)
    assert abs(float(ratio.mean()) - 1) < 0.03
    assert ((ratio - 1).abs() < 0.2).all()
    cosine, kept = (torch.cosine_similarity(a[:20], a[20:]) for a in (X, projected))
    assert ((cosine - kept).abs() < 0.1).all()
    assert abs(float((cosine - kept).mean())) < 0.01
