"""The fast engine gives the numbers of the plain one, which is the paper written down."""

import shutil

import numpy as np
import pytest
import torch
from every import blobs

from engram.learners.base import Progress
from engram.paper.consolidation import make_rule
from engram.paper.engine import FAST, PLAIN, Engine, Penalty, Schedule, engine_for, fast
from engram.paper.prototypes import Prototypes, PrototypesConfig

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


class InFloat64(Prototypes):
    def _features(self, X):
        return torch.from_numpy(np.asarray(X, np.float64)).to(self.device)


@pytest.fixture
def float64():
    """Rounding is then far below AMSGrad's ε of 1e-8.

    In float32 it is not: where a gradient is nothing but rounding, AMSGrad still takes a whole step, in a direction
    that rounding decides, and two hundred steps make a visible difference of that.
    """
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def teach(
    kind: type[Prototypes], engine: Engine, device: str, width: int = 8, **changes: object
) -> tuple[dict[str, torch.Tensor], list[Progress]]:
    """Base, L_add and increments of one class and of several, with batches of several sizes."""
    settings = {"layers": (16, 8), "batch_size": 10, "base_epochs": 20, "base_decay": 0.5, "base_decay_every": 5}
    settings |= {"increment_epochs": 20, "center_epochs": 5, "feature_rms": 1.0, "outlier_exclusion": True}
    learner = kind(PrototypesConfig(**{**settings, **changes}), device=device)
    learner.engine = engine
    told: list[Progress] = []
    learner.learn(*blobs(["a", "b"], width=width), progress=told.append)
    learner.learn(*blobs(["c"], width=width), progress=told.append)
    learner.learn(*blobs(["d"], width=width, n=11), progress=told.append)  # a last batch of one
    learner.learn(*blobs(["e", "f"], width=width), progress=told.append)
    return learner.tensors, told


def assert_equal(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor], tolerance: float) -> None:
    assert ours.keys() == theirs.keys()
    for name, tensor in theirs.items():
        difference = (ours[name] - tensor).double().norm() / tensor.double().norm()
        assert difference <= tolerance, f"{name}: {difference:.1e}"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("compiles", [False, True], ids=["", "compiled"])
@pytest.mark.parametrize("pairs", ["random", "all"])
@pytest.mark.parametrize("rule", ["mas", "si", None])
def test_fast_training_is_plain_training(rule, pairs, compiles, device, float64, monkeypatch):
    """Blocks, compiled updates and losses, graphs and the fixed decoder, through a whole life of a learner.

    A hundred steps of each task add up a hundred roundings of 1e-16; what is 1e-10 of the whole is a mistake.
    """
    if compiles and device == "cpu" and not shutil.which("g++"):
        pytest.skip("compiling for the CPU needs g++")
    monkeypatch.setattr(fast, "WORTH_COMPILING", 0 if compiles else 1e18)
    # On a GPU wide enough for the compiler to try several kernels: it must have done so before a graph is captured.
    size = {"width": 512, "layers": (1024, 256)} if device == "cuda" else {}
    ours, our_losses = teach(InFloat64, FAST, device, consolidation=rule, pairs=pairs, **size)
    theirs, their_losses = teach(InFloat64, PLAIN, device, consolidation=rule, pairs=pairs, **size)
    assert ours["network.encoder.0.weight"].dtype == torch.float64
    assert_equal(ours, theirs, 1e-10)
    assert [(p.phase, p.epoch) for p in our_losses] == [(p.phase, p.epoch) for p in their_losses]
    assert [p.loss for p in our_losses] == pytest.approx([p.loss for p in their_losses], rel=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rule", ["mas", "si"])
def test_fast_gradient_descent_is_plain_gradient_descent(rule, device, float64):
    """With a decaying rate, a penalty and a trace; a batch is larger than the rest."""
    random = np.random.default_rng(0)
    x, start = (torch.from_numpy(random.normal(size=size)).to(device) for size in ((25, 3), (3, 2)))
    labels = torch.arange(25, device=device) % 2
    found = []
    for engine in (FAST, PLAIN):
        w, trace = start.clone(), torch.zeros_like(start)
        trainer = engine.trainer(
            {"w": w},
            10,
            torch.Generator(device).manual_seed(1),
            rule=make_rule(rule, 1e-3),
            penalty=Penalty({"w": torch.ones_like(w)}, {"w": torch.zeros_like(w)}, 0.1),
            trace={"w": trace},
        )
        loss = lambda x, y, pairs, w=w: torch.nn.functional.cross_entropy(x @ w, y)  # noqa: E731
        trainer.run("base", loss, x, labels, Schedule(6, 0.1, 0.5, 2, "sgd"), False)
        found.append({"w": w.detach(), "trace": trace})
    assert not torch.equal(found[0]["w"], start)
    assert_equal(found[0], found[1], 1e-12)


@pytest.mark.parametrize("rule", ["mas", "si"])
def test_it_is_in_float32_too(rule):
    ours, our_losses = teach(Prototypes, FAST, "cpu", consolidation=rule)
    theirs, their_losses = teach(Prototypes, PLAIN, "cpu", consolidation=rule)
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-5)
    assert [p.loss for p in our_losses] == pytest.approx([p.loss for p in their_losses], rel=1e-4)


def test_devices_for_which_nothing_is_faster_take_the_plain_engine():
    assert engine_for(torch.device("cpu")) == engine_for(torch.device("cuda")) == FAST
    assert engine_for(torch.device("mps")) == PLAIN


@pytest.mark.gpu
def test_a_step_is_captured_once_a_task_and_size_and_nothing_outlives_the_task(monkeypatch):
    captures = []
    capture = fast.CapturedStep._capture

    def counted(self, batch, *rest):
        captures.append(len(batch))
        return capture(self, batch, *rest)

    monkeypatch.setattr(fast.CapturedStep, "_capture", counted)
    config = PrototypesConfig(layers=(1024, 256), base_epochs=20, increment_epochs=20, batch_size=10, feature_rms=1.0)
    learner = Prototypes(config, device="cuda")
    learner.learn(*blobs(["a", "b"], width=512))  # 48 samples: batches of 10 and 8
    assert sorted(captures) == [8, 10]
    learner.learn(*blobs(["c"], width=512))  # 24 samples: batches of 10 and 4
    assert sorted(captures) == [4, 8, 10, 10]
    before = torch.cuda.memory_allocated()
    learner.learn(*blobs(["d"], width=512))
    assert torch.cuda.memory_allocated() - before <= 4096  # one mean of 1 kB more
