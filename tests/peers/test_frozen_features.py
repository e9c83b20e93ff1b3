"""FeCAM and RanPAC, which keep statistics of frozen features."""

import numpy as np
import torch
from every import blobs
from every import make_torch as make
from sklearn.linear_model import Ridge

from engram.peers.ranpac import solve


def test_fecam_is_the_mahalanobis_distance_of_transformed_directions():
    """Eq. 6 to 9 in plain numpy."""
    X, y = blobs(["a", "b"], seed=5)
    fecam = make("fecam", power=0.5, shrink_diagonal=0.7, shrink_rest=0.4)
    fecam.learn(X, y)
    Z = np.sign(X) * np.sqrt(np.abs(X))
    unit = Z / np.linalg.norm(Z, axis=1, keepdims=True)
    for row, label in enumerate(fecam.labels):
        S = np.cov(Z[y == label].T)
        off = ~np.eye(8, dtype=bool)
        S = S + np.where(off, 0.4 * S[off].mean(), 0.7 * S[~off].mean())
        N = S / np.sqrt(np.outer(np.diag(S), np.diag(S)))
        mean = Z[y == label].mean(axis=0)
        gap = unit - mean / np.linalg.norm(mean)
        expected = -np.einsum("ni,ij,nj->n", gap, np.linalg.inv(N), gap)
        np.testing.assert_allclose(fecam.scores(X)[:, row], expected, rtol=1e-3, atol=1e-3)


def test_ranpac_is_ridge_regression_on_random_features():
    X, y = blobs(["a", "b", "c"], seed=5)
    ranpac = make("ranpac")
    ranpac.learn(X[y != "c"], y[y != "c"])
    ranpac.learn(X[y == "c"], y[y == "c"])
    H = np.maximum(X.astype(np.float32) @ ranpac.tensors["network.projection"].numpy(), 0)
    wanted = (y[:, None] == np.asarray(ranpac.labels)).astype(float)
    theirs = Ridge(alpha=float(ranpac.tensors["consolidation.ridge"]), fit_intercept=False).fit(H, wanted)
    np.testing.assert_allclose(ranpac.scores(X), theirs.predict(H), atol=1e-3)


def test_ranpac_raises_a_ridge_that_rounding_drowns():
    """A wide Gram matrix in single precision has eigenvalues a little below zero."""
    gram, sums, ridge = torch.diag(torch.tensor([4.0, 1.0, -0.05])), torch.ones(2, 3), torch.tensor([0.01])
    wanted = torch.tensor([1 / 4.1, 1 / 1.1, 1 / 0.05]).expand(2, 3)
    torch.testing.assert_close(solve(gram, sums, ridge), wanted)
    wanted = torch.tensor([1 / 4.06, 1 / 1.06, 1 / 0.01]).expand(2, 3)
    torch.testing.assert_close(solve(gram, sums, torch.tensor([0.06])), wanted, rtol=1e-5, atol=1e-5)


def test_ranpac_keeps_the_ridge_of_the_base_session():
    ranpac = make("ranpac")
    ranpac.learn(*blobs(["a", "b"]))
    ridge = ranpac.tensors["consolidation.ridge"].clone()
    assert ridge > 0
    ranpac.learn(*blobs(["c"]))
    assert torch.equal(ranpac.tensors["consolidation.ridge"], ridge)
