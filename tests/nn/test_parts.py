"""Outlier exclusion, class means, distance, the autoencoder and the training loop's edges."""

import pytest
import torch
from sklearn.neighbors import LocalOutlierFactor

from engram.engine import FAST, PLAIN, Schedule
from engram.nn import distance, statistics
from engram.nn.autoencoder import Autoencoder
from engram.nn.outliers import inliers


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
