"""Outlier exclusion, the autoencoder and the training loop's edges."""

import pytest
import torch
from sklearn.neighbors import LocalOutlierFactor

from engram.paper.autoencoder import Autoencoder
from engram.paper.engine import FAST, PLAIN, Schedule
from engram.paper.outliers import inliers


def test_inliers_are_scikit_learns_class_by_class():
    codes = torch.randn(60, 4, generator=torch.Generator().manual_seed(0)) + 5
    codes[:3] = -codes[:3]
    kept = LocalOutlierFactor(n_neighbors=20, metric="cosine").fit_predict(codes.numpy()) == 1
    assert kept[3:].mean() > 0.8
    assert not kept[:3].any()
    one = torch.zeros(60, dtype=torch.int64)
    assert inliers(codes, one, 20).tolist() == kept.tolist()
    # The same class among another, which lies where the outliers of the first are.
    both, rows = torch.cat([codes, -codes]), torch.cat([one, one + 3])
    mixed = torch.randperm(120, generator=torch.Generator().manual_seed(1))
    keep = torch.zeros(120, dtype=torch.bool)
    keep[mixed] = inliers(both[mixed], rows[mixed], 20)
    assert keep[:60].tolist() == keep[60:].tolist() == kept.tolist()


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_a_class_smaller_than_the_neighbourhood_works(n: int):
    codes = torch.randn(n, 4, generator=torch.Generator().manual_seed(n))
    assert 1 <= inliers(codes, torch.zeros(n, dtype=torch.int64), 20).sum() <= n


def test_the_decoder_mirrors_the_encoder():
    network = Autoencoder(32, (16, 8))
    shapes = {name: tuple(p.shape) for name, p in network.named_parameters() if name.endswith("weight")}
    assert shapes == {
        "encoder.0.weight": (16, 32),
        "encoder.2.weight": (8, 16),
        "decoder.0.weight": (16, 8),
        "decoder.2.weight": (32, 16),
    }


def test_initial_weights_come_from_the_generator_alone():
    state = torch.random.get_rng_state()
    one = Autoencoder(8, (4,)).initialise(torch.Generator().manual_seed(5))
    two = Autoencoder(8, (4,)).initialise(torch.Generator().manual_seed(5))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    assert one.encoder[0].weight.abs().max() <= 8**-0.5
    assert one.encoder[0].weight.std() > 0


def test_the_rate_decays_every_so_many_epochs():
    schedule = Schedule(100, 1.0, decay=0.5, decay_every=25)
    assert [schedule.rate_at(epoch) for epoch in (0, 24, 25, 49, 50, 99)] == [1.0, 1.0, 0.5, 0.5, 0.25, 0.125]


@pytest.mark.parametrize("engine", [PLAIN, FAST], ids=["plain", "fast"])
def test_every_sample_is_seen_once_an_epoch_in_a_new_order(engine):
    seen: list[int] = []
    theta = torch.nn.Parameter(torch.zeros(1))

    def loss(x: torch.Tensor, y: torch.Tensor, pairs: torch.Tensor | None) -> torch.Tensor:
        seen.extend(y.tolist())
        assert pairs is None if len(x) == 1 else (pairs is not None and pairs.shape == (len(x), 2))
        return (theta * x.mean()).sum()

    trainer = engine.trainer({"theta": theta}, 4, torch.Generator().manual_seed(0))
    trainer.run("base", loss, torch.ones(9, 1), torch.arange(9), Schedule(2, 0.1), pairs=True)
    assert sorted(seen[:9]) == sorted(seen[9:]) == list(range(9))
    assert seen[:9] != seen[9:]
