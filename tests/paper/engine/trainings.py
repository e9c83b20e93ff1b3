"""Trainings that two processes share; a module of its own, to start each of them with."""

from functools import partial
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from every import blobs, kind_of
from torch.nn.functional import cross_entropy, linear
from torch.overrides import TorchFunctionMode

from engram.bench.offline import Recipe, train_network
from engram.bench.torchrun import from_first
from engram.paper.engine import FAST, PLAIN
from engram.paper.tensors import TensorLearner

PAPER = {"layers": (16, 8), "batch_size": 10, "base_epochs": 3, "increment_epochs": 2, "center_epochs": 2}
SOFTMAX = {"width": 16, "batch_size": 10, "base_epochs": 3, "increment_epochs": 2, "base_rate": 1e-2}


class CountRows(TorchFunctionMode):
    """How many rows went through linear layers."""

    rows = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is linear:
            self.rows += len(args[0])
        return function(*args, **(kwargs or {}))


def learn(name, engine, settings):
    """A life with batches of 10 and of 7, a last one of one sample, and classes alone and together."""
    kind = kind_of(name)
    learner = kind.kind(kind.configure(settings), device="cpu")
    if engine is not None:
        learner.engine = engine
    told = []
    learner.learn(*blobs(["a", "b", "c"], n=19), progress=told.append)
    learner.learn(*blobs(["d"], n=11), progress=told.append)
    learner.learn(*blobs(["e", "f"]), progress=told.append)
    return [(each.phase, each.epoch, each.loss) for each in told], learner.tensors


def offline():
    """The network of α_ideal: its loss on what it was trained on, and its weights."""
    X, y = blobs(list("abc"), n=19)
    X, y = torch.from_numpy(X).to(torch.get_default_dtype()), torch.from_numpy(np.unique(y, return_inverse=True)[1])
    network = train_network(X, y, Recipe(hidden=16, epochs=3, batch_size=10), seed=0)
    loss = float(cross_entropy(network(X), y).detach())
    return [("offline", 3, loss)], {name: theta.detach() for name, theta in network.named_parameters()}


TRAININGS = {
    "mas": partial(learn, "mas-lof", FAST, PAPER),
    "si, all pairs": partial(learn, "si", FAST, PAPER | {"pairs": "all"}),
    "plain engine": partial(learn, "mas-lof", PLAIN, PAPER),
    "joint": partial(learn, "joint", None, SOFTMAX),
    "offline": offline,
    # Their losses are shared in part, and not at all.
    "lwf": partial(learn, "lwf", None, SOFTMAX),
    "icarl": partial(learn, "icarl", None, SOFTMAX),
}
SHARED = [*TRAININGS][:5]


def train_all(dtype):
    """Of every training: losses, weights, and how many rows this process evaluated."""
    torch.set_default_dtype(dtype)
    as_float32 = TensorLearner._features
    if dtype == torch.float64:
        TensorLearner._features = lambda self, X: torch.from_numpy(np.asarray(X, np.float64))
    try:
        found = {}
        for name, training in TRAININGS.items():
            with CountRows() as counter:
                losses, tensors = training()
            found[name] = losses, tensors, counter.rows
        return found
    finally:
        torch.set_default_dtype(torch.float32)
        TensorLearner._features = as_float32


def stumble():
    raise ValueError(f"process {dist.get_rank()}")


def take_part(folder: Path, number: int) -> None:
    """What each of the two processes does."""
    dist.init_process_group("gloo", init_method=f"file://{folder / 'meeting'}", rank=number, world_size=2)
    everything = {dtype: train_all(dtype) for dtype in (torch.float32, torch.float64)}
    everything["read"] = from_first(lambda: number)
    try:
        from_first(stumble)
    except ValueError as error:
        everything["error"] = str(error)
    torch.save(everything, folder / f"{number}.pt")
    dist.destroy_process_group()
