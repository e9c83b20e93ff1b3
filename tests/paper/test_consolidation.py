"""SI and MAS on a model of two parameters, computed by hand."""

import pytest
import torch

from engram.paper.consolidation import MAS, SI, add_importance
from engram.paper.engine import FAST, PLAIN, Penalty, Schedule

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
X = [[1.0, -2.0], [3.0, 0.5], [-1.0, 1.0]]


def by_hand(theta: list[float], steps: int, rate: float, omega: list[float] | None, strength: float):
    """Full-batch AMSGrad on mean_x Σ_k (θ_k x_k - 1)², in plain Python; returns θ and both traces."""
    anchor = list(theta)
    first, second, top = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
    mas, si = [0.0, 0.0], [0.0, 0.0]
    for t in range(1, steps + 1):
        for k in range(2):
            task = sum(2 * (theta[k] * x[k] - 1) * x[k] for x in X) / len(X)
            total = task + (2 * strength * omega[k] * (theta[k] - anchor[k]) if omega else 0.0)
            first[k] = BETA1 * first[k] + (1 - BETA1) * total
            second[k] = BETA2 * second[k] + (1 - BETA2) * total**2
            top[k] = max(top[k], second[k])
            root = (top[k] / (1 - BETA2**t)) ** 0.5
            change = -rate / (1 - BETA1**t) * first[k] / (root + EPSILON)
            theta[k] += change
            mas[k] += abs(task)  # the penalty is no part of what importance is taken of
            si[k] -= task * change
    return theta, mas, si


ENGINES = pytest.mark.parametrize("engine", [PLAIN, FAST], ids=["plain", "fast"])


def train(engine, rule, steps: int, rate: float, penalty: Penalty | None = None):
    theta = torch.nn.Parameter(torch.tensor([0.5, -0.3]))
    trace = {"theta": torch.zeros(2)}
    trainer = engine.trainer({"theta": theta}, 64, torch.Generator().manual_seed(0), rule, penalty, trace)
    labels = torch.zeros(len(X), dtype=torch.int64)

    def loss(x: torch.Tensor, y: torch.Tensor, pairs: object) -> torch.Tensor:
        return (theta * x - 1).square().sum(dim=1).mean()

    trainer.run("base", loss, torch.tensor(X), labels, Schedule(steps, rate), pairs=False)
    return theta.detach(), trace["theta"]


@ENGINES
@pytest.mark.parametrize("omega", [None, [0.7, 0.1]])
@pytest.mark.parametrize("rule", [MAS(), SI(1e-3)])
def test_trace_and_steps_match_a_hand_computation(rule, omega, engine):
    penalty = None
    if omega:
        penalty = Penalty({"theta": torch.tensor(omega)}, {"theta": torch.tensor([0.5, -0.3])}, 10.0)
    theta, trace = train(engine, rule, 7, 0.05, penalty)
    expected, mas, si = by_hand([0.5, -0.3], 7, 0.05, omega, 10.0)
    assert theta.tolist() == pytest.approx(expected, rel=1e-5)
    assert trace.tolist() == pytest.approx(mas if isinstance(rule, MAS) else si, rel=1e-4)


def test_mas_divides_by_the_samples_of_the_data_set():
    assert MAS().importance(torch.tensor([6.0, 3.0]), torch.tensor([9.0, 9.0]), 3).tolist() == [2.0, 1.0]


def test_si_divides_by_the_squared_change_and_drops_what_made_things_worse():
    importance = SI(0.5).importance(torch.tensor([3.0, -3.0]), torch.tensor([1.0, 1.0]), 3)
    assert importance.tolist() == [2.0, 0.0]


def test_steps_are_torch_amsgrad_with_the_penalty_through_autograd():
    """The analytic penalty and our AMSGrad against torch.optim and autograd, on random data."""
    generator = torch.Generator().manual_seed(1)
    X = torch.randn(64, 5, generator=generator)
    omega, anchor = torch.rand(5, generator=generator), torch.randn(5, generator=generator)
    ours = torch.nn.Parameter(anchor.clone() + 0.1)
    theirs = torch.nn.Parameter(ours.detach().clone())

    def loss(theta: torch.Tensor) -> torch.Tensor:
        return (torch.tanh(X * theta) - 0.3).square().sum(dim=1).mean()

    trainer = FAST.trainer(
        {"theta": ours}, 64, torch.Generator().manual_seed(0), None, Penalty({"theta": omega}, {"theta": anchor}, 3.0)
    )
    schedule = Schedule(40, 1e-2, decay=0.5, decay_every=10)
    trainer.run("base", lambda x, y, p: loss(ours), X, torch.zeros(64, dtype=torch.int64), schedule, pairs=False)
    optimizer = torch.optim.Adam([theirs], lr=1e-2, amsgrad=True)
    steps = torch.optim.lr_scheduler.StepLR(optimizer, 10, 0.5)
    for _ in range(40):
        optimizer.zero_grad()
        (loss(theirs) + 3.0 * (omega * (theirs - anchor).square()).sum()).backward()
        optimizer.step()
        steps.step()
    torch.testing.assert_close(ours.detach(), theirs.detach(), rtol=1e-5, atol=1e-6)


@ENGINES
@pytest.mark.parametrize(("start", "direction"), [(0.5, 0.0), (0.8, -1.0), (0.1, 1.0)])
def test_penalty_is_nothing_at_the_anchor_and_pulls_back_off_it(start, direction, engine):
    """With a flat loss, only the penalty can move θ."""
    theta = torch.nn.Parameter(torch.tensor([start]))
    penalty = Penalty({"theta": torch.tensor([2.0])}, {"theta": torch.tensor([0.5])}, 10.0)
    trainer = engine.trainer({"theta": theta}, 4, torch.Generator().manual_seed(0), None, penalty)
    flat = Schedule(1, 0.01)
    trainer.run("base", lambda x, y, p: (theta * 0).sum(), torch.zeros(4, 1), torch.zeros(4), flat, pairs=False)
    assert torch.sign(theta.detach() - start).item() == direction


def test_importance_is_added_to_that_of_earlier_tasks():
    trace, start, end = {"a": torch.tensor([6.0])}, {"a": torch.tensor([1.0])}, {"a": torch.tensor([2.0])}
    assert add_importance(MAS(), trace, start, end, 3, {})["a"].tolist() == [2.0]
    assert add_importance(MAS(), trace, start, end, 3, {"a": torch.tensor([10.0])})["a"].tolist() == [12.0]
    assert add_importance(SI(2.0), trace, start, end, 3, {"a": torch.tensor([10.0])})["a"].tolist() == [12.0]
