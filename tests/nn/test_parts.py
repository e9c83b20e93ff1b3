"""Outlier exclusion, the prototype memory, the autoencoder and the training loop's edges."""

import pytest
import torch
from sklearn.neighbors import LocalOutlierFactor

from engram.engine.training import Schedule, Trainer
from engram.nn.autoencoder import Autoencoder
from engram.nn.outliers import inliers
from engram.nn.prototypes import PrototypeMemory


def test_inliers_are_scikit_learns():
    codes = torch.randn(60, 4, generator=torch.Generator().manual_seed(0)) + 5
    codes[:3] = -codes[:3]
    kept = LocalOutlierFactor(n_neighbors=20, metric="cosine").fit_predict(codes.numpy()) == 1
    assert kept[3:].mean() > 0.8
    assert not kept[:3].any()
    assert torch.equal(inliers(codes, 20), codes[torch.from_numpy(kept)])


@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_a_class_smaller_than_the_neighbourhood_works(n: int):
    codes = torch.randn(n, 4, generator=torch.Generator().manual_seed(n))
    assert 1 <= len(inliers(codes, 20)) <= n


def test_more_data_later_updates_the_mean_exactly():
    codes = torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    at_once, in_two = PrototypeMemory(6), PrototypeMemory(6)
    at_once.add("a", codes)
    in_two.add("a", codes[:13])
    in_two.add("b", codes[:5])
    b = in_two.means[1].clone()
    in_two.add("a", codes[13:])
    torch.testing.assert_close(in_two.means[0], at_once.means[0], rtol=1e-6, atol=1e-7)
    assert in_two.counts.tolist() == [50, 5]
    assert torch.equal(in_two.means[1], b)


def test_similarity_is_cosine_and_independent_of_scale():
    memory = PrototypeMemory(2)
    memory.add("x", torch.tensor([[10.0, 0.0]]))
    memory.add("y", torch.tensor([[0.0, 0.1]]))
    similarity = memory.similarity(torch.tensor([[1.0, 1.0], [0.0, -5.0], [0.0, 0.0]]))
    torch.testing.assert_close(similarity, torch.tensor([[0.5**0.5, 0.5**0.5], [0.0, -1.0], [0.0, 0.0]]))


def test_forget_and_rename_touch_one_class():
    memory = PrototypeMemory(2)
    for i, label in enumerate(["a", "b", "c"]):
        memory.add(label, torch.full((i + 1, 2), float(i)))
    memory.forget("b")
    memory.rename("c", "d")
    assert memory.labels == ["a", "d"]
    assert memory.means[:, 0].tolist() == [0.0, 2.0]
    assert memory.counts.tolist() == [1, 3]
    with pytest.raises(ValueError, match="unknown class 'b'; known classes: 'a', 'd'"):
        memory.forget("b")
    with pytest.raises(ValueError, match="a class of that name exists"):
        memory.rename("a", "d")


def test_the_decoder_mirrors_the_encoder():
    network = Autoencoder(32, (16, 8))
    shapes = {name: tuple(p.shape) for name, p in network.named_parameters() if name.endswith("weight")}
    assert shapes == {
        "encoder.0.weight": (16, 32),
        "encoder.2.weight": (8, 16),
        "decoder.0.weight": (16, 8),
        "decoder.2.weight": (32, 16),
    }
    assert network.code_size == 8


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


def test_every_sample_is_seen_once_an_epoch_in_a_new_order():
    seen: list[int] = []
    theta = torch.nn.Parameter(torch.zeros(1))

    def loss(x: torch.Tensor, y: torch.Tensor, pairs: torch.Tensor | None) -> torch.Tensor:
        seen.extend(y.tolist())
        assert pairs is None if len(x) == 1 else (pairs is not None and pairs.shape == (len(x), 2))
        return (theta * x.mean()).sum()

    trainer = Trainer({"theta": theta}, 4, torch.Generator().manual_seed(0))
    trainer.run("base", loss, torch.ones(9, 1), torch.arange(9), Schedule(2, 0.1), pairs=True)
    assert sorted(seen[:9]) == sorted(seen[9:]) == list(range(9))
    assert seen[:9] != seen[9:]


@pytest.mark.parametrize("k", [1, 3, 7])
def test_the_nearest_classes_chunk_by_chunk_are_those_of_the_whole_table(k, monkeypatch):
    monkeypatch.setattr("engram.nn.prototypes.CHUNK", 3)
    generator = torch.Generator().manual_seed(0)
    memory = PrototypeMemory(code_size=4)
    for name in range(7):  # three chunks, the last of one class
        memory.add(name, torch.randn(5, 4, generator=generator) * (name + 1))
    codes = torch.randn(6, 4, generator=generator)
    similarity, rows = memory.nearest(codes, k)
    expected, order = memory.similarity(codes).sort(dim=1, descending=True)
    torch.testing.assert_close(similarity, expected[:, :k])
    assert rows.tolist() == order[:, :k].tolist()
