"""The paper's learner against its equations written out again: the losses of one batch, and whole trainings.

Every λ has a value of its own, so that none can stand in for another. A batch holds all samples and L_cos takes all
pairs, so that nothing is drawn; the steps are torch's AMSGrad, in float64.
"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pytest
import torch
from every import blobs
from sklearn.neighbors import LocalOutlierFactor
from torch import Tensor
from torch.nn.functional import elu

from engram.learners.base import Progress
from engram.paper.engine import FAST, Schedule
from engram.paper.prototypes import Prototypes, PrototypesConfig

SETTINGS = PrototypesConfig(
    layers=(6, 4), pairs="all", feature_rms=0.5, batch_size=512, lof_neighbours=5,
    lambda_mse=0.7, lambda_cos=3.0, lambda_l1=0.05, lambda_reg=200.0, lambda_center=1.9, si_damping=0.01,
    base_epochs=5, base_rate=3e-2, base_decay=0.3, base_decay_every=2,
    increment_epochs=4, increment_rate=2e-2, center_epochs=3, center_rate=1e-2,
)  # fmt: skip
Theta = dict[str, Tensor]


def with_outlier(labels: list[str], seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Samples of these classes, the first of which is an outlier of its own."""
    X, y = blobs(labels, n=9, width=5, seed=seed)
    X[0] = -X[0]
    return X, y


BASE, ONE, TWO = with_outlier(["a", "b"]), with_outlier(["c"]), with_outlier(["c", "d"])


def taught(*tasks: tuple[np.ndarray, np.ndarray], **changes: object) -> tuple[Prototypes, list[Progress]]:
    """A learner, and what it told about the last of its tasks."""
    learner = Prototypes(dataclasses.replace(SETTINGS, **changes), seed=1, device="cpu")  # type: ignore[arg-type]
    told: list[Progress] = []
    for X, y in tasks:
        told.clear()
        learner.learn(X, y, progress=told.append)
    return learner, told


def network(learner: Prototypes) -> Theta:
    kept = {name.removeprefix("network."): t for name, t in learner.tensors.items() if name.startswith("network.")}
    return {name: tensor.double() for name, tensor in kept.items() if name != "feature_scale"}


def scaled(X: np.ndarray) -> Tensor:
    """Features in the unit of the base: their root mean square is 0.5 there."""
    return torch.from_numpy(X / np.sqrt(np.mean(BASE[0] ** 2)) * 0.5)


def code(theta: Mapping[str, Tensor], x: Tensor) -> Tensor:
    hidden = elu(x @ theta["encoder.0.weight"].T + theta["encoder.0.bias"])
    return elu(hidden @ theta["encoder.2.weight"].T + theta["encoder.2.bias"])


def terms(theta: Mapping[str, Tensor], x: Tensor, y: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
    """L_MSE, L_cos and L_L1 (Eq. 2-4), sample by sample and pair by pair."""
    h = code(theta, x)
    hidden = elu(h @ theta["decoder.0.weight"].T + theta["decoder.0.bias"])
    errors = hidden @ theta["decoder.2.weight"].T + theta["decoder.2.bias"] - x
    l_cos, pairs = torch.zeros(()), 0
    for i in range(len(x)):
        for j in range(i):
            cosine = h[i] @ h[j] / (h[i].norm() * h[j].norm())
            l_cos, pairs = l_cos + (1 - cosine if y[i] == y[j] else cosine.clamp(min=0)), pairs + 1
    return sum(e @ e for e in errors) / len(x), l_cos / pairs, sum(c.abs().sum() for c in h) / len(x)


def l_base(theta: Mapping[str, Tensor], x: Tensor, y: np.ndarray) -> Tensor:
    """Eq. 5, and Eq. 13 without its penalty for a task of several classes."""
    l_mse, l_cos, l_l1 = terms(theta, x, y)
    return 0.7 * l_mse + 3.0 * l_cos + 0.05 * l_l1


def l_one(theta: Mapping[str, Tensor], x: Tensor, y: np.ndarray) -> Tensor:
    """Eq. 13 without its penalty for a task of one class."""
    l_mse, _, l_l1 = terms(theta, x, y)
    return 0.7 * l_mse + 0.05 * l_l1


def l_add(theta: Mapping[str, Tensor], x: Tensor, y: np.ndarray, means: Mapping[str, Tensor]) -> Tensor:
    """Eq. 7, with Eq. 6."""
    gaps = [c - means[label] for c, label in zip(code(theta, x), y.tolist(), strict=True)]
    return 1.9 * sum(gap @ gap for gap in gaps) / len(x) + 3.0 * terms(theta, x, y)[1]  # type: ignore[no-any-return]


def clean_means(theta: Mapping[str, Tensor], X: np.ndarray, y: np.ndarray) -> dict[str, Tensor]:
    """μ_new: without what LOF calls outliers, class by class."""
    means = {}
    for label in np.unique(y).tolist():
        codes = code(theta, scaled(X[y == label])).detach()
        kept = LocalOutlierFactor(n_neighbors=5, metric="cosine").fit_predict(codes.numpy()) == 1
        means[label] = codes[torch.from_numpy(kept)].mean(dim=0)
    return means


def test_l_base_of_a_batch():
    start, _ = taught(BASE, base_epochs=0)
    _, told = taught(BASE, base_epochs=1)
    assert told[0].loss == pytest.approx(float(l_base(network(start), scaled(BASE[0]), BASE[1])), rel=1e-4)


@pytest.mark.parametrize(("task", "loss"), [(ONE, l_one), (TWO, l_base)], ids=["one class", "two classes"])
def test_l_inc_of_a_batch(task, loss):
    start, _ = taught(BASE)
    _, told = taught(BASE, task)
    assert told[0].loss == pytest.approx(float(loss(network(start), scaled(task[0]), task[1])), rel=1e-4)


def test_l_add_of_a_batch():
    start, _ = taught(BASE, outlier_exclusion=True, center_epochs=0)
    _, told = taught(BASE, outlier_exclusion=True, center_epochs=1)
    means = clean_means(network(start), *BASE)
    assert told[-1].phase == "center"
    assert told[-1].loss == pytest.approx(float(l_add(network(start), scaled(BASE[0]), BASE[1], means)), rel=1e-4)


def train(
    theta: Theta, loss: Callable[[Theta], Tensor], rates: list[float], rule: str, trace: Theta, *,
    held: Theta | None = None, whole: bool = False,
) -> Theta:  # fmt: skip
    """AMSGrad on loss + λ_reg Σ Ω (θ - θ̃)², Ω = `held`, of the encoder or the whole network.

    What a step adds to importance is added to `trace`.
    """
    start, theta = theta, {name: tensor.clone().requires_grad_() for name, tensor in theta.items()}
    encoder = [name for name in theta if name.startswith("encoder.")]
    moving = {name: theta[name] for name in (theta if whole else encoder)}
    optimizer = torch.optim.Adam(moving.values(), amsgrad=True)
    for rate in rates:
        optimizer.param_groups[0]["lr"] = rate
        task = dict(zip(theta, torch.autograd.grad(loss(theta), list(theta.values()), allow_unused=True), strict=True))
        before = {name: theta[name].detach().clone() for name in encoder}
        for name, parameter in moving.items():
            pull = 2 * 200.0 * held[name] * (before[name] - start[name]) if held is not None else 0.0
            parameter.grad = task[name] + pull
        optimizer.step()
        for name in encoder:
            change = theta[name].detach() - before[name]
            trace[name] = trace.get(name, 0.0) + (task[name].abs() if rule == "mas" else -task[name] * change)
    return {name: tensor.detach() for name, tensor in theta.items()}


def importance(rule: str, trace: Theta, start: Theta, end: Theta, n: int) -> Theta:
    """Eq. 12: over the samples; Eq. 9: over the squared way of the whole task, nothing below zero."""
    if rule == "mas":
        return {name: traced / n for name, traced in trace.items()}
    return {name: traced.clamp(min=0) / ((end[name] - start[name]) ** 2 + 0.01) for name, traced in trace.items()}


@pytest.mark.parametrize("lof", [False, True], ids=["", "lof"])
@pytest.mark.parametrize("rule", ["mas", "si"])
def test_base_and_increments_are_amsgrad_on_the_papers_losses(rule, lof):
    """θ, Ω and the means, after the base and after an increment of each kind."""
    start, _ = taught(BASE, consolidation=rule, outlier_exclusion=lof, base_epochs=0, center_epochs=0)
    (X, y), theta, trace = BASE, network(start), {}
    rates = [3e-2 * 0.3 ** (epoch // 2) for epoch in range(5)]
    end = train(theta, partial(l_base, x=scaled(X), y=y), rates, rule, trace, whole=True)
    means = {label: code(end, scaled(X[y == label])).mean(dim=0) for label in "ab"}
    if lof:
        means = clean_means(end, X, y)
        end = train(end, partial(l_add, x=scaled(X), y=y, means=means), [1e-2] * 3, rule, trace)
    omega = importance(rule, trace, theta, end, len(X))
    compare(taught(BASE, consolidation=rule, outlier_exclusion=lof)[0], end, omega, means)

    for (X, y), loss in ((ONE, l_one), (TWO, l_base)):
        trace = {}
        late = train(end, partial(loss, x=scaled(X), y=y), [2e-2] * 4, rule, trace, held=omega)
        share = importance(rule, trace, end, late, len(X))
        learner, told = taught(BASE, (X, y), consolidation=rule, outlier_exclusion=lof)
        # No outlier exclusion here: the mean is that of every sample, and there is no phase of L_add.
        new = {label: code(late, scaled(X[y == label])).mean(dim=0) for label in np.unique(y).tolist()}
        compare(learner, late, {name: omega[name] + share[name] for name in omega}, means | new)
        assert {each.phase for each in told} == {"increment"}
        assert learner.counts()[2:].tolist() == [9] * len(new)


def compare(learner: Prototypes, theta: Theta, omega: Theta, means: Mapping[str, Tensor]) -> None:
    for name, tensor in network(learner).items():
        torch.testing.assert_close(tensor, theta[name], rtol=1e-3, atol=1e-4, msg=name)
    for name, tensor in learner.importance.items():
        largest = float(omega[name].abs().max())
        torch.testing.assert_close(tensor.double(), omega[name], rtol=1e-2, atol=1e-3 * largest, msg=name)
    for row, label in enumerate(learner.labels):
        torch.testing.assert_close(learner.tensors["classes.means"][row].double(), means[label], rtol=1e-3, atol=1e-3)


def test_random_pairs_are_drawn_anew_and_are_all_pairs_on_average():
    alone = {"lambda_mse": 0.0, "lambda_l1": 0.0, "base_rate": 0.0}  # L_cos of a network that stands still
    _, every = taught(BASE, pairs="all", base_epochs=1, **alone)
    _, drawn = taught(BASE, pairs="random", base_epochs=300, **alone)
    values = np.array([each.loss for each in drawn])
    assert len(np.unique(values)) > 250
    assert values.mean() == pytest.approx(every[0].loss, rel=0.03)


def test_where_gradients_fall_steps_stay_as_short_as_the_largest_made_them():
    """AMSGrad, and not Adam, whose steps grow again."""

    def slope(step: int) -> float:
        return 1.0 if step < 20 else 0.05

    ours, steps = torch.zeros(1), iter(range(600))
    trainer = FAST.trainer({"theta": ours}, 1, torch.Generator())
    schedule = Schedule(600, 1e-2)
    trainer.run("base", lambda x, y, pairs: ours.sum() * slope(next(steps)), torch.ones(1, 1), torch.zeros(1), schedule, False)  # fmt: skip # noqa: E501
    found = {}
    for amsgrad in (True, False):
        theta = torch.zeros(1)
        optimizer = torch.optim.Adam([theta], 1e-2, amsgrad=amsgrad)
        for step in range(600):
            theta.grad = torch.full((1,), slope(step))
            optimizer.step()
        found[amsgrad] = theta.item()
    assert ours.item() == pytest.approx(found[True], rel=1e-4)
    assert found[False] < 1.1 * found[True] < 0  # it would have gone farther
