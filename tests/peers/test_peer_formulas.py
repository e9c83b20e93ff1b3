"""What the peers minimise and keep, written out again from their papers and compared number by number.

A batch holds all samples and dropout is off, so that nothing is drawn. A training of no epochs gives the network to
start from, one at the rate 0 the loss of a network that is known.
"""

import functools
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch
from every import blobs
from every import make_torch as make
from torch import Tensor

from engram.learners.base import Progress
from engram.paper.tensors import TensorLearner
from engram.peers import fearnet, growing, hat
from engram.peers.ranpac import RIDGES

Theta = Mapping[str, Tensor]
TRAINED = (growing.BODY, growing.BODY_BIAS, growing.HEAD, growing.HEAD_BIAS)


def taught(name: str, *tasks: str, **changes: object) -> tuple[TensorLearner, list[Progress]]:
    """A learner of tasks, each a string of one-letter classes, and what it told about the last one."""
    learner = make(name, **{"dropout": 0.0, "batch_size": 512} | changes)
    assert isinstance(learner, TensorLearner)
    told: list[Progress] = []
    for task in tasks:
        told.clear()
        learner.learn(*blobs(list(task)), progress=told.append)
    return learner, told


def shown(labels: str) -> Tensor:
    return torch.from_numpy(blobs(list(labels))[0]).float()


def classes(*counts: int) -> Tensor:
    return torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))


def hidden(theta: Theta, x: Tensor) -> Tensor:
    standard = (x - theta[growing.MEAN]) * theta[growing.SCALE]
    return (standard @ theta[growing.BODY].T + theta[growing.BODY_BIAS]).clamp(min=0)


def logits(theta: Theta, x: Tensor) -> Tensor:
    return hidden(theta, x) @ theta[growing.HEAD].T + theta[growing.HEAD_BIAS]


def surprise(answers: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy."""
    p = answers.exp() / answers.exp().sum(dim=1, keepdim=True)
    return -p[torch.arange(len(y)), y].log().mean()


def amsgrad(start: Theta, loss: Callable[[Theta], Tensor], rates: list[float]) -> Theta:
    theta = {name: t.clone().requires_grad_(name in TRAINED) for name, t in start.items()}
    optimizer = torch.optim.Adam([theta[name] for name in TRAINED], amsgrad=True)
    for rate in rates:
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad()
        loss(theta).backward()
        optimizer.step()
    return theta


def assert_same_network(learner: TensorLearner, theta: Theta) -> None:
    for name in TRAINED:
        torch.testing.assert_close(learner.tensors[name], theta[name].detach(), rtol=1e-3, atol=1e-4, msg=name)


# --- one loss each ----------------------------------------------------------------------------------------------------


def icarls(old: Theta, theta: Theta) -> Tensor:
    """Sigmoid outputs: towards the label for the new class, towards the old network's answer for old ones."""
    x, y = torch.cat([shown("c"), old["samples.features"]]), torch.cat([torch.full((24,), 2), old["samples.targets"]])
    wanted = torch.cat([logits(old, x).sigmoid(), (y == 2).float()[:, None]], dim=1)
    p = logits(theta, x).sigmoid()
    return -(wanted * p.log() + (1 - wanted) * (1 - p).log()).sum() / len(x)


def lwfs(old: Theta, theta: Theta) -> Tensor:
    """λ = 3: cross-entropy with the old network's answers, both at the temperature 4."""
    soft, now = (logits(old, shown("c")) / 4).softmax(dim=1), (logits(theta, shown("c"))[:, :2] / 4).softmax(dim=1)
    return surprise(logits(theta, shown("c")), torch.full((24,), 2)) - 3 * (soft * now.log()).sum() / 24


def ewcs(old: Theta, theta: Theta) -> Tensor:
    """λ/2 Σ F (θ - θ̃)², λ = 80; the row of a new class is free."""
    held = [
        (
            old[name.replace("network.", "consolidation.fisher.")] * (theta[name][: len(old[name])] - old[name]) ** 2
        ).sum()
        for name in TRAINED
    ]
    return surprise(logits(theta, shown("c")), torch.full((24,), 2)) + 80 / 2 * torch.stack(held).sum()


@pytest.mark.parametrize(
    ("name", "loss", "settings"),
    [("icarl", icarls, {"exemplars": 12}), ("lwf", lwfs, {"lambda_old": 3.0, "temperature": 4.0})],
)
@pytest.mark.parametrize("epochs", [0, 5])
def test_the_loss_of_an_increment_is_the_papers(name, loss, settings, epochs):
    """After some epochs, too, when the network is no longer the one it is to answer like."""
    settings = {"increment_rate": 1e-2, **settings}
    before, _ = taught(name, "ab", **settings)
    now, _ = taught(name, "ab", "c", increment_epochs=epochs, **settings)
    _, told = taught(name, "ab", "c", increment_epochs=epochs + 1, **settings)
    assert told[-1].loss == pytest.approx(float(loss(before.tensors, now.tensors)), rel=1e-4)


def test_ewcs_steps_are_held_by_half_of_lambda():
    settings = {"increment_rate": 1e-2, "lambda_ewc": 80.0}
    before, _ = taught("ewc", "ab", **settings)
    start, _ = taught("ewc", "ab", "c", increment_epochs=0, **settings)
    after, _ = taught("ewc", "ab", "c", increment_epochs=6, **settings)
    assert_same_network(after, amsgrad(start.tensors, functools.partial(ewcs, before.tensors), [1e-2] * 6))


def test_the_rate_of_the_base_decays():
    start, _ = taught("finetune", "ab", base_epochs=0)
    after, _ = taught("finetune", "ab", base_epochs=5, base_rate=1e-2, base_decay=0.1, base_decay_every=2)
    rates = [1e-2, 1e-2, 1e-3, 1e-3, 1e-4]
    assert_same_network(
        after, amsgrad(start.tensors, lambda t: surprise(logits(t, shown("ab")), classes(24, 24)), rates)
    )


# --- iCaRL and GEM: what is remembered --------------------------------------------------------------------------------


def test_icarl_keeps_the_samples_whose_normalised_codes_have_the_mean_of_all():
    learner, _ = taught("icarl", "ab", exemplars=10)
    for row, own in enumerate(shown("ab").split(24)):
        codes = hidden(learner.tensors, own).numpy()
        codes = codes / np.linalg.norm(codes, axis=1, keepdims=True)
        chosen: list[int] = []
        for k in range(1, 6):
            gaps = [np.linalg.norm(codes.mean(axis=0) - codes[[*chosen, i]].sum(axis=0) / k) for i in range(24)]
            chosen.append(min((i for i in range(24) if i not in chosen), key=gaps.__getitem__))
        kept = learner.tensors["samples.features"][learner.tensors["samples.targets"] == row]
        assert torch.equal(kept, own[chosen])


def test_icarl_answers_by_the_cosine_to_the_mean_of_normalised_exemplars():
    learner, _ = taught("icarl", "ab", "c", exemplars=12)
    X, _ = blobs(list("abc"), n=5, seed=4)
    codes, kept = (hidden(learner.tensors, x).numpy() for x in (torch.from_numpy(X).float(), learner.tensors["samples.features"]))  # fmt: skip # noqa: E501
    kept = kept / np.linalg.norm(kept, axis=1, keepdims=True)
    for row in range(3):
        mean = kept[learner.tensors["samples.targets"].numpy() == row].mean(axis=0)
        expected = codes @ mean / np.linalg.norm(codes, axis=1) / np.linalg.norm(mean)
        np.testing.assert_allclose(learner.scores(X)[:, row], expected, atol=1e-5)


def test_gem_keeps_the_last_samples_of_every_class_with_their_task():
    learner, _ = taught("gem", "ab", "c", memories=14)
    kept, targets, tasks = (learner.tensors[f"samples.{name}"] for name in ("features", "targets", "tasks"))
    assert targets.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    assert tasks.tolist() == [0] * 8 + [1] * 4
    assert torch.equal(kept, torch.cat([own[-4:] for own in (*shown("ab").split(24), shown("c"))]))


def test_gem_follows_the_gradient_as_it_is_where_no_memory_is_hurt():
    """More of the same classes: nothing to project, so that it is fine-tuning."""
    step = {"increment_epochs": 1, "increment_rate": 1e-3}
    gem = taught("gem", "ab", "ab", optimizer="amsgrad", **step)[0]  # fine-tuning's
    assert_same_network(gem, taught("finetune", "ab", "ab", **step)[0].tensors)


# --- HAT --------------------------------------------------------------------------------------------------------------


def test_hat_learns_gates_with_compensated_gradients_and_pays_for_new_units():
    """Three epochs with s = 1/s_max, then half-way, then s_max = 4, which leaves gates that can be inverted."""
    settings = {"hardness": 4.0, "lambda_sparse": 2.0, "increment_rate": 3e-2}
    before, _ = taught("hat", "ab", **settings)
    start, _ = taught("hat", "ab", "cd", increment_epochs=0, **settings)
    after, told = taught("hat", "ab", "cd", increment_epochs=3, **settings)
    free = 1 - before.tensors[hat.USED]
    theta = {name: start.tensors[name].clone().requires_grad_() for name in TRAINED}
    e = (start.tensors["classes.gates"][2].logit() / 4).requires_grad_()
    fixed = {name: start.tensors[name] for name in (growing.MEAN, growing.SCALE)}
    optimizer = torch.optim.Adam([*theta.values(), e], 3e-2, amsgrad=True)
    for s, said in zip([1 / 4, 1 / 4 + (4 - 1 / 4) / 2, 4.0], told, strict=True):
        optimizer.zero_grad()
        gate = (s * e).sigmoid()
        answers = (hidden(theta | fixed, shown("cd")) * gate) @ theta[growing.HEAD][2:].T + theta[growing.HEAD_BIAS][2:]
        loss = surprise(answers, classes(24, 24)) + 2.0 * (gate * free).sum() / free.sum()
        assert said.loss == pytest.approx(loss.item(), rel=1e-3)
        loss.backward()
        assert e.grad is not None
        e.grad *= 4 / s * ((s * e).cosh() + 1) / (e.cosh() + 1)  # Eq. 4-5
        theta[growing.BODY].grad *= free[:, None]  # Eq. 2
        theta[growing.BODY_BIAS].grad *= free
        optimizer.step()
    assert_same_network(after, theta)
    gate = (4 * e.detach()).sigmoid()
    torch.testing.assert_close(after.tensors["classes.gates"][2:], gate.expand(2, -1), rtol=1e-3, atol=1e-3)
    assert torch.equal(after.tensors["classes.gates"][:2], before.tensors["classes.gates"])
    assert torch.equal(
        after.tensors[hat.USED], torch.maximum(before.tensors[hat.USED], after.tensors["classes.gates"][2])
    )


def test_hat_answers_through_the_gates_of_each_class():
    learner, _ = taught("hat", "ab", "cd")
    X, _ = blobs(list("abcd"), seed=4)
    code, kept = hidden(learner.tensors, torch.from_numpy(X).float()), learner.tensors
    for row in range(4):
        expected = (code * kept["classes.gates"][row]) @ kept[growing.HEAD][row] + kept[growing.HEAD_BIAS][row]
        np.testing.assert_allclose(learner.scores(X)[:, row], expected, rtol=1e-3, atol=1e-3)


# --- DeepNCM, GAN replay, RanPAC --------------------------------------------------------------------------------------


def test_deepncms_means_move_a_part_of_the_way_with_every_batch():
    learner, told = taught("deepncm", "abc", base_rate=0.0, base_epochs=3, mean_decay=0.6)
    codes = hidden(learner.tensors, shown("abc"))
    whole = torch.stack([own.mean(dim=0) for own in codes.split(24)])
    for batches, said in enumerate(told, start=1):
        means = (1 - 0.6**batches) * whole
        squares = ((codes[:, None] - means) ** 2).sum(dim=2)
        assert said.loss == pytest.approx(float(surprise(-squares / 2, classes(24, 24, 24))), rel=1e-4)


def test_the_critics_penalty_is_how_far_its_slope_is_from_one():
    """Of a critic whose units are all active its slope is the same everywhere: W₀ᵀ(w₁ + the class's embedding)."""
    still = {"increment_rate": 0.0, "gan_rate": 0.0, "gan_increment_epochs": 1, "replayed": 48}
    said = []
    for weight in (0.0, 7.0):
        learner, _ = taught("gan-replay", "ab", lambda_penalty=weight, gan_base_epochs=0, **still)
        bias = torch.full_like(learner.tensors["consolidation.critic.0.bias"], 50.0)
        learner.tensors = {**learner.tensors, "consolidation.critic.0.bias": bias}
        told: list[Progress] = []
        learner.learn(*blobs(["c"]), progress=told.append)
        said.append(next(each.loss for each in told if each.phase == "increment GAN"))
    kept = learner.tensors
    rows = kept["consolidation.critic.1.weight"] + kept["classes.critic"]
    lengths = (rows @ kept["consolidation.critic.0.weight"]).norm(dim=1)
    assert said[1] - said[0] == pytest.approx(7 * float((lengths - 1).square().mean()), rel=1e-2)  # 24 of each class


@pytest.mark.parametrize(("noise", "least", "most"), [(0.0, RIDGES[0], RIDGES[2]), (30.0, RIDGES[4], RIDGES[-1])])
def test_ranpacs_ridge_is_small_where_samples_are_telling_and_large_where_they_are_noise(noise, least, most):
    """Samples that were not held out would always be fitted best by the smallest."""
    learner = make("ranpac", width=200)
    X, y = blobs(["a", "b"], n=60)
    learner.learn(X + np.random.default_rng(0).normal(size=X.shape) * noise, y)
    ridge, gram = learner.tensors["consolidation.ridge"], learner.tensors["consolidation.gram"]
    share = float(ridge / gram.diagonal().mean()) * 120 / 96  # the ridge was in parts of four fifths of these samples
    assert least * 0.5 < share < most * 2


# --- FearNet ----------------------------------------------------------------------------------------------------------

ELU = torch.nn.functional.elu


def layer(kept: Theta, name: str, x: Tensor) -> Tensor:
    return x @ kept[f"network.{name}.weight"].T + kept[f"network.{name}.bias"]


def fearnets(kept: Theta, x: Tensor, y: Tensor) -> Tensor:
    """Cross-entropy, and what the decoder's layers miss of the encoder's: λ is 3 for the input, 0.7 for the hidden."""
    first = ELU(layer(kept, "encoder.0", x))
    code = ELU(layer(kept, "encoder.1", first))
    mirrored = ELU(layer(kept, "decoder.0", code))
    matching = 3.0 * (layer(kept, "decoder.1", mirrored) - x).square().mean() + 0.7 * (mirrored - first).square().mean()
    return surprise(layer(kept, "head", code), y) + matching


MATCHING = {"lambda_input": 3.0, "lambda_hidden": 0.7, "sleep_every": 2, "bla_epochs": 1}


def test_fearnets_base_is_cross_entropy_and_matching_layers():
    learner, told = taught("fearnet", "ab", base_epochs=1, base_rate=0.0, **MATCHING)
    expected = fearnets(learner.tensors, fearnet.unit(shown("ab")), classes(24, 24))
    assert told[0].loss == pytest.approx(float(expected), rel=1e-4)


def test_fearnets_sleep_mixes_the_hc_with_decoded_dreams(monkeypatch):
    """As many dreams of an old class as told for every sample it had, from its widened, shrunk Gaussian."""
    drawn = []

    def draw(*arguments):
        drawn.append((*arguments, *real(*arguments)))
        return drawn[-1][3:]

    real = fearnet.draw
    monkeypatch.setattr(fearnet, "draw", draw)
    settings = {**MATCHING, "sleep_trains": "all", "sleep_epochs": 1, "sleep_rate": 0.0, "bla_dreams": 5}
    learner, _ = taught("fearnet", "ab", "c", dreams=3, spread=1.5, shrinkage=0.2, **settings)
    before, told = dict(learner.tensors), []
    drawn.clear()
    learner.learn(*blobs(["d"]), progress=told.append)
    ((means, covariances, counts, codes, whose),) = drawn
    assert counts.tolist() == [72, 72, 0, 0]
    assert torch.equal(means[:2], before["classes.means"][:2])
    for row in range(2):
        plain = before["classes.covariances"][row]
        expected = 1.5 * (0.8 * plain + 0.2 * plain.trace() / len(plain) * torch.eye(len(plain)))
        torch.testing.assert_close(covariances[row], expected)
    decoded = layer(before, "decoder.1", ELU(layer(before, "decoder.0", codes)))
    x, y = (
        torch.cat([fearnet.unit(shown("c")), fearnet.unit(shown("d")), decoded]),
        torch.cat([classes(0, 0, 24, 24), whose]),
    )
    assert told[0].phase == "sleep"
    assert told[0].loss == pytest.approx(float(fearnets(learner.tensors, x, y)), rel=1e-4)
    assert learner.tensors["classes.counts"].tolist() == [24] * 4  # a dream is no sample
    dreamt = fearnet.encode(learner.tensors, decoded)
    expected = torch.cov(dreamt[whose == 0].T) / 1.5
    torch.testing.assert_close(learner.tensors["classes.covariances"][0], expected, rtol=1e-3, atol=1e-4)


def test_fearnets_judge_weighs_recent_samples_by_the_prior():
    """One recent class, three others: (1/3)^prior, as if both sides had as many samples."""
    told = {}
    for prior in (0.0, 2.0):
        settings = {"bla_prior": prior, "bla_epochs": 1, "bla_rate": 0.0, "bla_dreams": 5}
        learner, (said,) = taught("fearnet", "abe", "c", **settings)
        told[prior] = said.loss
    code = fearnet.encode(learner.tensors, fearnet.unit(shown("c")))
    recent = -fearnet.judge(learner.tensors, code).sigmoid().log().sum()
    samples = 24 + 3 * 5
    assert told[0.0] - told[2.0] == pytest.approx(float(15 / 24 * (1 - 1 / 9) * recent / samples), rel=1e-3)


def test_fearnets_recent_memory_answers_by_the_inverse_of_the_nearest_distance():
    learner, _ = taught("fearnet", "ab", "c", "d", sleep_every=5, closeness=0.5, sharpness=2.0)
    X, _ = blobs(list("abcd"), n=5, seed=9)
    x = fearnet.unit(torch.from_numpy(X).float())
    near = torch.stack([torch.cdist(x, fearnet.unit(shown(label))).amin(dim=1) for label in "cd"], dim=1)
    chances = 1 / (0.5 + near) ** 2
    judged = fearnet.judge(learner.tensors, fearnet.encode(learner.tensors, x)).sigmoid()[:, None]
    expected = judged * chances / chances.sum(dim=1, keepdim=True)
    np.testing.assert_allclose(learner.scores(X)[:, 2:], expected.detach(), rtol=1e-3)
