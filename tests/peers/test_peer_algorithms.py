"""What makes each peer the method of its paper, proved in a small example."""

import functools
import itertools

import numpy as np
import pytest
import torch
from every import assert_same, blobs, teach
from every import make as make_value
from every import make_torch as make

from engram.bench.learners import answers_with, bytes_kept
from engram.bench.metrics import memory_at
from engram.learners import trying
from engram.learners.base import Learner
from engram.paper.tensors import Task, TensorLearner
from engram.peers import gan_replay, gem, growing, hat, icwgan
from engram.peers.ewc import fisher
from engram.peers.fearnet import draw, encode, judge, unit
from engram.peers.icarl import herd
from engram.peers.som import adapt, grid_distances


def taught(name: str, tasks: tuple[list[str], ...] = (["a", "b"], ["c"]), **changes: object) -> TensorLearner:
    learner = teach(make(name, **changes), *tasks)
    assert isinstance(learner, TensorLearner)
    return learner


def taught_value(name: str, *tasks: list[str]) -> Learner:
    return trying.teach(functools.partial(make_value, name), *tasks)


def same_network(one: TensorLearner, two: TensorLearner) -> bool:
    names = [name for name in one.tensors if name.startswith("network.")]
    return all(torch.equal(one.tensors[name], two.tensors[name]) for name in names)


# --- what is held still -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "weight"), [("ewc", "lambda_ewc"), ("lwf", "lambda_old")])
def test_no_weight_on_the_past_is_fine_tuning_bit_for_bit(name, weight):
    plain = taught("finetune", increment_rate=1e-2)
    assert same_network(plain, taught(name, **{weight: 0.0, "increment_rate": 1e-2}))
    assert not same_network(plain, taught(name, **{weight: 10.0, "increment_rate": 1e-2}))


def test_ewcs_fisher_is_the_mean_squared_gradient_of_the_networks_own_answers():
    """By hand: every sample, every class it could have answered, one backward pass each."""
    learner = taught("ewc", (["a", "b", "c"],))
    features = torch.from_numpy(blobs(["a", "c"], n=4, seed=2)[0]).float()
    network = {name: tensor.clone().requires_grad_() for name, tensor in learner.tensors.items()}
    parameters = growing.parameters(network)
    expected = {name: torch.zeros_like(theta) for name, theta in parameters.items()}
    for x in features:
        log_p = growing.logits(network, x[None]).log_softmax(dim=1)[0]
        for c in range(3):
            gradients = torch.autograd.grad(log_p[c], list(parameters.values()), retain_graph=True)
            for name, gradient in zip(parameters, gradients, strict=True):
                expected[name] += log_p[c].exp().detach() * gradient.square() / len(features)
    for name, value in fisher(learner.tensors, features).items():
        torch.testing.assert_close(value, expected[name].detach(), rtol=1e-3, atol=1e-7)


def test_ewc_adds_up_the_fisher_of_all_tasks_and_holds_on_to_what_it_calls_important():
    before = taught("ewc", (["a", "b"],))
    after = taught("ewc")
    F = before.tensors["consolidation.fisher.body.weight"]
    assert (after.tensors["consolidation.fisher.body.weight"] >= F).all()
    assert after.tensors["consolidation.fisher.head.weight"].shape[0] == 3

    def moved(strength: float) -> float:
        held = taught("ewc", lambda_ewc=strength)
        return float((F * (held.tensors[growing.BODY] - before.tensors[growing.BODY]).square()).sum())

    assert moved(1e5) < 0.1 * moved(0.0)


def test_ewc_starts_over_when_every_class_has_been_forgotten():
    learner, fresh = taught("ewc", (["a", "b"],)), make("ewc")
    learner.forget(1)
    learner.forget(0)
    fresh.tasks_learned, fresh.n_features = 1, 8  # the same random numbers
    for each in (learner, fresh):
        each.learn(*blobs(["c", "d"]))
    assert_same(learner, fresh)


def test_lwfs_targets_come_from_the_old_network():
    X, y = blobs(["c"])
    shown = torch.from_numpy(X).float()
    before = taught("lwf", (["a", "b"],))
    wanted = growing.logits(before.tensors, shown).softmax(dim=1)

    def distance(strength: float, spoil: float = 0.0) -> float:
        learner = taught("lwf", (["a", "b"],), lambda_old=strength, increment_epochs=30)
        learner.tensors = {
            **learner.tensors,
            growing.HEAD_BIAS: learner.tensors[growing.HEAD_BIAS] + torch.tensor([spoil, 0]),
        }
        learner.learn(X, y)
        now = growing.logits(learner.tensors, shown)[:, :2].softmax(dim=1)
        return float((now - wanted).abs().mean())

    assert distance(50.0) < 0.05
    assert distance(50.0, spoil=9.0) > 0.2  # another old network, other targets


def test_hat_freezes_the_weights_of_the_units_earlier_tasks_use():
    learner = make("hat", base_epochs=30, hardness=400.0)
    learner.learn(*blobs(["a", "b"]))
    used = learner.tensors[hat.USED]
    before = {name: tensor.clone() for name, tensor in learner.tensors.items()}
    frozen, free = used > 1 - 1e-6, used < 1e-3
    assert frozen.any()
    assert free.any()
    learner.learn(*blobs(["c", "d"]))
    after = learner.tensors
    assert torch.equal(after[growing.BODY][frozen], before[growing.BODY][frozen])
    assert torch.equal(after[growing.BODY_BIAS][frozen], before[growing.BODY_BIAS][frozen])
    assert not torch.equal(after[growing.BODY][free], before[growing.BODY][free])
    assert torch.equal(after[growing.HEAD][:2], before[growing.HEAD][:2])  # a task's read-out is its own
    assert (after[hat.USED] >= used).all()
    # So what the first task answers about its own classes has not changed.
    X, y = blobs(["a", "b"], seed=7)
    assert (learner.scores(X)[:, :2].argmax(axis=1) == (y == "b")).all()


def test_a_scaled_gradient_has_the_same_value():
    x, factor = torch.tensor([1.0, -3.0], requires_grad=True), torch.tensor([0.0, 2.0])
    scaled = hat.scale_gradient(x, factor)
    assert torch.equal(scaled, x)
    assert torch.autograd.grad((scaled * 5).sum(), x)[0].tolist() == [0.0, 10.0]


# --- where old samples come from --------------------------------------------------------------------------------------


def test_icarl_trains_on_its_exemplars():
    whole = taught("icarl", (["a", "b"],))
    without = taught("icarl", (["a", "b"],))
    one = without.tensors["samples.targets"].new_tensor([0, 15])  # one of each class is left
    without.tensors = {n: t[one] if n.startswith("samples.") else t for n, t in without.tensors.items()}
    for learner in (whole, without):
        learner.learn(*blobs(["c"]))
    assert not same_network(whole, without)


def test_herding_chooses_the_best_mean_and_its_first_k_are_a_prefix_of_its_first_k_plus_1():
    codes = torch.from_numpy(np.random.default_rng(0).normal(size=(40, 5))).float()
    chosen = [herd(codes, k).tolist() for k in range(1, 41)]
    for few, more in itertools.pairwise(chosen):
        assert more[: len(few)] == few
    assert sorted(chosen[-1]) == list(range(40))
    mean = codes.mean(dim=0)
    assert chosen[0][0] == int((codes - mean).norm(dim=1).argmin())
    assert float((codes[chosen[9]].mean(dim=0) - mean).norm()) < 0.3 * float((codes[:10].mean(dim=0) - mean).norm())


def test_icarls_exemplars_are_samples_shared_out_and_only_truncated_later():
    learner = taught("icarl", (["a", "b"],), exemplars=30)
    first = learner.tensors["samples.features"][learner.tensors["samples.targets"] == 0]
    assert len(first) == 15
    learner.learn(*blobs(["c"]))
    assert torch.bincount(learner.tensors["samples.targets"]).tolist() == [10, 10, 10]
    later = learner.tensors["samples.features"][learner.tensors["samples.targets"] == 0]
    assert torch.equal(later, first[:10])
    samples = torch.from_numpy(blobs(["a"])[0]).float()
    assert all((row == samples).all(dim=1).any() for row in later)


def test_icarl_answers_the_nearest_mean_of_exemplars():
    learner = taught("icarl")
    X, _ = blobs(["a", "b", "c"], seed=4)

    def codes(x: torch.Tensor) -> np.ndarray:
        h = growing.hidden(learner.tensors, x).numpy()
        return h / np.linalg.norm(h, axis=1, keepdims=True)

    kept, whose = codes(learner.tensors["samples.features"]), learner.tensors["samples.targets"].numpy()
    means = np.stack([kept[whose == c].mean(axis=0) for c in range(3)])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    distances = np.linalg.norm(codes(torch.from_numpy(X).float())[:, None] - means, axis=2)
    assert learner.predict(X).tolist() == [learner.labels[i] for i in distances.argmin(axis=1)]


def test_gems_step_makes_no_memory_worse():
    """Against the explicit gradients: products as claimed, none negative after the projection, some before."""
    learner = taught("gem", (["a", "b"], ["c"], ["d"]), memories=24)
    network = {name: t.clone().requires_grad_(name.startswith("network.")) for name, t in learner.tensors.items()}
    parameters = list(growing.parameters(network).values())
    X, _ = blobs(["e"], n=6)
    x, y = torch.from_numpy(X).float(), torch.zeros(6, dtype=torch.int64)  # called what it is not: a conflict

    def gradient(features: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        loss = torch.nn.functional.cross_entropy(growing.logits(network, features), targets)
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)])

    stored, targets, tasks = (learner.tensors[f"samples.{name}"] for name in ("features", "targets", "tasks"))
    rows = [gradient(stored[tasks == t], targets[tasks == t]) for t in tasks.unique()] + [gradient(x, y)]
    G = torch.stack(rows)
    shares = torch.stack([(tasks == t) / (tasks == t).sum() for t in tasks.unique()])
    shares = torch.block_diag(shares, torch.full((1, 6), 1 / 6))
    with torch.no_grad():
        products = gem.gradient_products(network, torch.cat([stored, x]), torch.cat([targets, y]), shares)
    torch.testing.assert_close(products, G @ G.T, rtol=1e-3, atol=1e-6)
    memories, new = G[:-1], G[-1]
    v = gem.solve_dual(products[:-1, :-1], products[:-1, -1])
    projected = new + memories.T @ v
    lengths = memories.norm(dim=1) * new.norm()
    assert ((memories @ new) / lengths).min() < -0.01
    assert ((memories @ projected) / lengths).min() > -1e-4
    # Eq. 11's optimum: a memory that pulls (v > 0) is exactly neither better nor worse off.
    assert ((memories @ projected) / lengths)[v > 1e-6].abs().max() < 1e-3
    assert (v >= 0).all()
    # And the loss that is minimised has this gradient.
    loss = learner._loss(network, Task(x, y, 4, 4, None))
    followed = torch.autograd.grad(loss(x, y, None), parameters)
    torch.testing.assert_close(torch.cat([g.flatten() for g in followed]), projected, rtol=1e-3, atol=1e-6)


def test_gems_step_is_plain_sgd_unless_told_otherwise():
    """One step of the increment, and the base as ever."""
    step = {"increment_epochs": 1, "batch_size": 64, "increment_rate": 0.3}
    learner = taught("gem", (["a", "b"],), **step)
    assert same_network(learner, taught("gem", (["a", "b"],), **{**step, "optimizer": "amsgrad"}))
    task = plain_task(learner, ["c"])
    network = {name: tensor.requires_grad_() for name, tensor in learner._network(task).items()}
    parameters = growing.parameters(network)
    loss = learner._loss(network, task)(task.features, task.targets, None)
    gradients = torch.autograd.grad(loss, list(parameters.values()))
    learner.learn(task.features.numpy(), ["c"] * 24)
    for (name, theta), gradient in zip(parameters.items(), gradients, strict=True):
        torch.testing.assert_close(learner.tensors[name], theta.detach() - 0.3 * gradient)


def test_gem_learns_new_classes_with_the_rate_it_has_by_default():
    """A tenth of it, AMSGrad's, is too short a step for plain SGD."""
    X, y = blobs(["e"], seed=7)
    for settings, learned in (({}, 1.0), ({"increment_rate": 1e-4}, 0.0)):
        learner = teach(gem.GEM(gem.Method.configure(settings)), ["a", "b", "c", "d"], ["e"])
        assert np.mean(np.asarray(learner.predict(X)) == y) == pytest.approx(learned, abs=0.2)


def test_the_gans_dreams_are_of_the_class_asked_for():
    learner = taught("gan-replay", (["a", "b", "c"],), gan_base_epochs=300, gan_rate=3e-3)
    X, y = blobs(["a", "b", "c"])
    z = torch.randn(90, 8, generator=torch.Generator().manual_seed(0))
    targets = torch.arange(90) % 3
    dreamt = gan_replay.generate(learner.tensors, z, targets)
    dreamt = dreamt / learner.tensors[growing.SCALE] + learner.tensors[growing.MEAN]
    means = torch.stack([torch.from_numpy(X[y == label]).float().mean(dim=0) for label in "abc"])
    assert (torch.cdist(dreamt, means).argmin(dim=1) == targets).float().mean() > 0.8
    assert dreamt[targets == 0].std(dim=0).mean() > 0.1  # and not one sample again and again


def test_gan_replay_learns_from_its_dreams():
    learner, spoilt = (taught("gan-replay", (["a", "b"],)) for _ in range(2))
    spoilt.tensors = {**spoilt.tensors, "consolidation.generator.1.bias": torch.full((8,), 30.0)}
    for each in (learner, spoilt):
        each.learn(*blobs(["c"]))
    assert not same_network(learner, spoilt)


def plain_task(learner: TensorLearner, names: list[str], n: int = 24) -> Task:
    """A task of the classes named, as the learner would see it."""
    X, y = blobs(names, n=n, seed=5)
    labels = [*learner.labels, *(name for name in names if name not in learner.labels)]
    targets = torch.tensor([labels.index(label) for label in y])
    return Task(torch.from_numpy(X).float(), targets, labels, len(learner.labels))


def test_icwgans_loss_is_the_cross_entropy_and_the_distillation_at_temperature_2():
    """By hand, with weights that differ: the label among all classes, the old network's answers among the old ones."""
    learner = taught("icwgan", lambda_old=3.0, dropout=0.0)
    task = plain_task(learner, ["d"])
    network = learner._network(task)
    x, y = learner._training_data(task)
    answers = growing.logits(network, x)
    label = -answers.log_softmax(dim=1)[torch.arange(len(y)), y].mean()
    wanted = (growing.logits(learner.tensors, x) / 2).softmax(dim=1)
    distilled = -(wanted * (answers[:, :3] / 2).log_softmax(dim=1)).sum(dim=1).mean()
    torch.testing.assert_close(learner._loss(network, task)(x, y, None), label + 3 * distilled)


def test_icwgan_trains_on_as_many_samples_of_every_class():
    learner = taught("icwgan", replayed=10_000)
    _, targets = learner._training_data(plain_task(learner, ["d"]))
    assert torch.bincount(targets).tolist() == [24, 24, 24, 24]
    _, targets = learner._training_data(plain_task(learner, ["b", "d"], n=7))  # "b" is there already
    assert torch.bincount(targets).tolist() == [7, 7, 7, 7]
    few = taught("icwgan", replayed=30)
    _, targets = few._training_data(plain_task(few, ["d"]))
    assert torch.bincount(targets).tolist() == [10, 10, 10, 24]  # no more dreams than `replayed`


def test_icwgan_chooses_the_dreams_the_old_network_is_surest_of():
    learner = taught("icwgan", candidates=5)
    task = plain_task(learner, ["d"])
    x, y = learner._training_data(task)
    dreamt = learner._dream(y[24:].repeat_interleave(5)).reshape(len(y) - 24, 5, -1)
    sure = growing.logits(learner.tensors, dreamt).softmax(dim=2)
    for row, target in enumerate(y[24:]):
        assert torch.equal(x[24 + row], dreamt[row, sure[row, :, target].argmax()])
    assert len(dreamt.flatten(0, 1).unique(dim=0)) == dreamt.shape[0] * 5
    one = icwgan.select_representative(learner.tensors, dreamt[:, 0], y[24:], 1)
    assert torch.equal(one, dreamt[:, 0])


def test_icwgans_gan_learns_from_all_its_dreams_and_not_from_the_chosen():
    plain, choosy = taught("icwgan", candidates=1), taught("icwgan", candidates=5)
    assert not same_network(plain, choosy)
    for name in plain.tensors:
        if name.startswith(("consolidation.", "classes.")):
            assert torch.equal(plain.tensors[name], choosy.tensors[name]), name


def test_joint_training_is_base_training_on_everything():
    learner = make("joint")
    X, y = blobs(["a", "b"])
    Z, z = blobs(["c"])
    learner.learn(X, y)
    learner.learn(Z, z)
    offline = make("joint")
    offline.tasks_learned = 1  # the same random numbers
    offline.learn(np.concatenate([X, Z]), np.concatenate([y, z]))
    assert_same(learner, offline)


# --- FearNet ----------------------------------------------------------------------------------------------------------


def test_fearnets_sleep_empties_the_hc():
    learner = taught("fearnet", (["a", "b"], ["c"], ["d"]), sleep_every=3)
    assert learner.tensors["samples.targets"].unique().tolist() == [2, 3]
    assert learner.tensors["classes.counts"].tolist() == [24, 24, 0, 0]  # the mPFC knows the base only
    learner.learn(*blobs(["e"]))
    assert len(learner.tensors["samples.features"]) == 0
    assert learner.tensors["classes.counts"].tolist() == [24] * 5
    X, y = blobs(list("abcde"), seed=1)
    assert (learner.predict(X) == y).mean() > 0.6


@pytest.mark.parametrize(
    ("trains", "learning"),
    [("all", {"encoder", "decoder", "head"}), ("encoder", {"encoder", "head"}), ("head", {"head"})],
)
def test_fearnets_sleep_trains_what_it_is_told_to(trains, learning):
    before = taught("fearnet", (["a", "b"], ["c"]), sleep_every=2, sleep_trains=trains).tensors
    after = taught("fearnet", (["a", "b"], ["c"], ["d"]), sleep_every=2, sleep_trains=trains).tensors
    for part, name in (("encoder", "encoder.0.weight"), ("decoder", "decoder.1.bias"), ("head", "head.weight")):
        changed = not torch.equal(before[f"network.{name}"][:2], after[f"network.{name}"][:2])
        assert changed is (part in learning), part


def test_fearnets_statistics_are_of_all_samples_a_class_ever_had():
    """Also of one that comes again before both sleeps."""
    learner = taught("fearnet", (["a", "b"],), sleep_every=2, sleep_trains="head")
    pieces = [(blobs([name], seed=seed)[0] + seed, name) for seed, name in enumerate("acda")]  # never the same mean
    for X, name in pieces:
        learner.learn(X, [name] * len(X))
    assert not len(learner.tensors["samples.targets"])
    first, labels = blobs(["a", "b"])
    parts = [(first[labels == name], name) for name in "ab"] + pieces
    for row, label in enumerate(learner.labels):
        own = np.concatenate([X for X, name in parts if name == label])
        codes = encode(learner.tensors, unit(torch.from_numpy(own).float())).numpy()
        assert learner.tensors["classes.counts"][row] == len(own)
        np.testing.assert_allclose(learner.tensors["classes.means"][row].numpy(), codes.mean(axis=0), atol=1e-4)
        covariance, largest = np.cov(codes.T), np.cov(codes.T).max()
        np.testing.assert_allclose(learner.tensors["classes.covariances"][row], covariance, atol=1e-3 * largest)


def test_fearnets_dreams_have_the_mean_and_covariance_of_their_class():
    learner = taught("fearnet", (["a", "b"],))
    X, y = blobs(["a", "b"])
    means, covariances = learner.tensors["classes.means"], learner.tensors["classes.covariances"]
    for row, label in enumerate("ab"):
        codes = encode(learner.tensors, unit(torch.from_numpy(X[y == label]).float())).numpy()
        np.testing.assert_allclose(means[row].numpy(), codes.mean(axis=0), atol=1e-4)
        np.testing.assert_allclose(covariances[row].numpy(), np.cov(codes.T), atol=1e-4)
    torch.manual_seed(0)
    full = covariances + 0.1 * torch.eye(6)
    codes, whose = draw(means, full, torch.tensor([20000, 10000]))
    assert torch.bincount(whose).tolist() == [20000, 10000]
    for row in range(2):
        torch.testing.assert_close(codes[whose == row].mean(dim=0), means[row], atol=0.05, rtol=0)
        torch.testing.assert_close(torch.cov(codes[whose == row].T), full[row], atol=0.05, rtol=0.05)


def test_fearnets_answer_is_its_papers_rule():
    """The HC's best class if A/(1 - A) · max P_HC > max P_mPFC, else the mPFC's."""
    learner = taught("fearnet", (["a", "b"], ["c"], ["d"]), sleep_every=5)
    X, _ = blobs(list("abcd"), n=40, seed=9)
    X = X + np.random.default_rng(0).normal(size=X.shape) * 3
    scores = learner.scores(X)
    code = encode(learner.tensors, unit(torch.from_numpy(X).float()))
    A = judge(learner.tensors, code).sigmoid().detach().numpy()
    hc, mpfc = scores[:, 2:] / A[:, None], scores[:, :2] / (1 - A[:, None])
    np.testing.assert_allclose(hc.sum(axis=1), 1, rtol=1e-3)
    np.testing.assert_allclose(mpfc.sum(axis=1), 1, rtol=1e-3)
    asks_hc = A / (1 - A) * hc.max(axis=1) > mpfc.max(axis=1)
    assert 0 < asks_hc.mean() < 1
    assert scores.argmax(axis=1).tolist() == np.where(asks_hc, 2 + hc.argmax(axis=1), mpfc.argmax(axis=1)).tolist()


# --- GeppNet and DeepNCM ----------------------------------------------------------------------------------------------


def test_the_map_moves_towards_its_samples_and_only_where_they_weigh_something():
    rng = torch.Generator().manual_seed(0)
    prototypes, x = torch.randn(9, 4, generator=rng), torch.randn(30, 4, generator=rng)
    grid = grid_distances(3, torch.device("cpu"))
    assert grid[0].tolist() == pytest.approx([0, 1, 4, 1, 2, 5, 4, 5, 8], rel=1e-5)
    assert torch.equal(adapt(prototypes, x, torch.zeros(30), grid, 1.0, 0.5), prototypes)
    one = x[:1]
    winner = int(torch.cdist(one, prototypes).argmin())
    moved = adapt(prototypes, one, torch.ones(1), grid, 1.0, 0.5)
    share = 0.5 * torch.exp(-grid[winner] / 2)
    torch.testing.assert_close(moved, prototypes + share[:, None] * (one - prototypes))


def test_geppnets_map_stays_where_the_read_out_is_sure_and_right():
    X, y = blobs(["a", "b"])
    learner = taught("geppnet", (["a", "b"],), base_epochs=200, unsure=0.0)
    assert (learner.predict(X) == y).all()
    before = learner.tensors["network.map"]
    learner.learn(X, y)
    assert torch.equal(learner.tensors["network.map"], before)
    learner.learn(*blobs(["c"]))
    assert not torch.equal(learner.tensors["network.map"], before)


def test_deepncm_answers_the_nearest_mean_and_never_trains_again():
    learner = taught("deepncm", (["a", "b"],))
    body = learner.tensors[growing.BODY].clone()
    learner.learn(*blobs(["c"]))
    assert torch.equal(learner.tensors[growing.BODY], body)
    (A, a), (C, c) = blobs(["a", "b"]), blobs(["c"])
    X, y = np.concatenate([A, C]), np.concatenate([a, c])
    codes = growing.hidden(learner.tensors, torch.from_numpy(X).float()).numpy()
    means = np.stack([codes[y == label].mean(axis=0) for label in "abc"])
    np.testing.assert_allclose(learner.tensors[growing.HEAD].numpy(), means, atol=1e-4)
    distances = np.linalg.norm(codes[:, None] - means, axis=2)
    assert learner.predict(X).tolist() == [learner.labels[i] for i in distances.argmin(axis=1)]


# --- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "paper", "kept"),
    [
        ("1nn", 24 * 8 * 4, 24 * (8 * 4 + 8)),  # 24 samples of a class, each with the number of its class
        ("icarl", 20 * 8 * 4, 20 * (8 * 4 + 8)),  # the head answers, too
        ("ncm", 8 * 4, 8 * 4 + 8),
        ("fecam", (8 + 64 + 8) * 4, (8 + 64 + 8) * 4 + 8),
        ("fearnet", (6 + 36) * 4, (6 + 36) * 4 + 8),
    ],
)
def test_bytes_of_a_further_class(name, paper, kept):
    memory = memory_at(taught_value(name, ["a", "b"], ["c"]), (100, 1000))
    grows = {flavour: (sizes["1000"] - sizes["100"]) / 900 for flavour, sizes in memory.items()}
    assert grows["as_the_paper_counts"] == pytest.approx(paper, rel=1e-3)
    assert grows["kept_between_increments"] == pytest.approx(kept, rel=1e-3)


@pytest.mark.parametrize("name", ["1nn", "slda", "fecam", "ewc", "prototypes"])
def test_bytes_kept_at_the_number_of_classes_there_are(name):
    learner = taught_value(name, ["a", "b"], ["c"])
    answering = sum(size for array, size in bytes_kept(learner).items() if answers_with(learner, array))
    kept = memory_at(learner, (3,))["kept_between_increments"]["3"]
    assert kept == sum(bytes_kept(learner).values()) - answering
