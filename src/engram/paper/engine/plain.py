"""The reference engine: the steps one would write from the paper, one operation after another.

AMSGrad is torch's own, the penalty is a term of the loss, gradients are autograd's, and the trace is kept tensor by
tensor. `engram.paper.engine.fast` has to give the same numbers.
"""

import torch
from torch import Tensor

from engram.paper.autoencoder import Autoencoder
from engram.paper.engine.interface import Engine, Loss, Network, Penalty, Samples, Schedule, Step, TrainingLoop, select
from engram.paper.engine.parallel import average, split_rows


class Trainer(TrainingLoop):
    """Trains named parameters with `torch.optim.Adam`, or `torch.optim.SGD` where the schedule says so."""

    def _start(self, loss: Loss, samples: Samples, labels: Tensor, schedule: Schedule) -> Step:
        thetas = [theta.requires_grad_(True) for theta in self.parameters.values()]
        fused = labels.is_cuda or None  # torch's fastest there; None is its own choice
        optimizer: torch.optim.Optimizer
        if schedule.optimizer == "sgd":
            optimizer = torch.optim.SGD(thetas, schedule.rate)
        else:
            optimizer = torch.optim.Adam(thetas, schedule.rate, amsgrad=True, fused=fused, foreach=not fused)
        steps = self._steps(labels)

        def step(batch: Tensor, pairs: Tensor | None, number: int) -> Tensor:
            for group in optimizer.param_groups:
                group["lr"] = schedule.rate_at(number // steps)
            task_loss = loss(select(samples, batch), labels[batch], pairs)
            task = average(torch.autograd.grad(task_loss, thetas))
            total = task
            if self.penalty is not None:
                held = torch.autograd.grad(self._regularise(self.penalty), thetas)
                total = tuple(ours + theirs for ours, theirs in zip(task, held, strict=True))
            before = {name: self.parameters[name].detach().clone() for name in self.trace}
            for theta, gradient in zip(thetas, total, strict=True):
                theta.grad = gradient
            optimizer.step()
            if self.rule is not None:
                for name, gradient in zip(self.parameters, task, strict=True):
                    if name in self.trace:
                        change = self.parameters[name].detach() - before[name]
                        self.trace[name].add_(self.rule.contribution(gradient, change))
            return task_loss.detach()

        return step

    def _regularise(self, held: Penalty) -> Tensor:
        """λ_reg L_reg = λ_reg Σ Ω (θ̃ - θ)²."""
        terms = [
            (held.importance[name] * (held.anchor[name] - theta).square()).sum()
            for name, theta in self.parameters.items()
        ]
        return held.strength * torch.stack(terms).sum()


def view(network: Autoencoder, features: Tensor, fixed: bool) -> tuple[Network, Samples]:
    """The network and the features as they are."""
    return split_rows(network), features


PLAIN = Engine(Trainer, view)
