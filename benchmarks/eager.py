"""The baseline: the same training as a straightforward PyTorch loop, one operation after another.

`EagerTrainer` takes the place of `engram.engine.training.Trainer`. It is what one would write from the paper with care
but without tricks: torch's own AMSGrad (its fused kernel on a GPU, foreach on a CPU), the penalty as a term of the
loss, gradients by autograd, the trace with one operation per tensor. Data lies on the device, batches are indexed
there, and the host waits for the device once an epoch.
"""

from dataclasses import replace

import torch

from engram.engine.training import Trainer
from engram.learner import Progress
from engram.nn.consolidation import SI


class EagerTrainer(Trainer):
    def run(self, phase, loss, features, labels, schedule, pairs):
        if getattr(loss, "fixed", None):  # Eq. 2 as it is written, through the whole decoder
            loss, features = replace(loss, fixed=None), loss.fixed.features(features).contiguous()
        thetas = {name: theta.requires_grad_(True) for name, theta in self.parameters.items()}
        gpu = features.is_cuda
        optimizer = torch.optim.Adam(
            thetas.values(), schedule.rate, amsgrad=True, fused=True if gpu else None, foreach=None if gpu else True
        )
        for epoch in range(schedule.epochs):
            for group in optimizer.param_groups:
                group["lr"] = schedule.rate_at(epoch)
            total = torch.zeros((), device=features.device)
            order = torch.randperm(len(features), generator=self.generator, device=features.device)
            batches = order.split(self.batch_size)
            drawn = self._draw_pairs(len(features)) if pairs else [None] * len(batches)  # the same as the other's
            for batch, batch_pairs in zip(batches, drawn, strict=True):
                total += self.step(optimizer, thetas, loss, features[batch], labels[batch], batch_pairs) * len(batch)
            if self.progress is not None:
                self.progress(Progress(phase, epoch + 1, schedule.epochs, float(total) / len(features)))

    def step(self, optimizer, thetas, loss, features, labels, pairs):
        optimizer.zero_grad()
        value = loss(features, labels, pairs)
        if isinstance(self.rule, SI):  # needs the gradient of the task alone, and the parameters before the step
            value.backward()
            task = {name: thetas[name].grad.clone() for name in self.trace}
            before = {name: thetas[name].detach().clone() for name in self.trace}
            if self.penalty is not None:
                self.penalty_of(thetas).backward()
        else:
            (value + self.penalty_of(thetas) if self.penalty is not None else value).backward()
            for name, trace in self.trace.items():
                trace += thetas[name].grad.abs()
        optimizer.step()
        if isinstance(self.rule, SI):
            for name, trace in self.trace.items():
                trace -= task[name] * (thetas[name].detach() - before[name])
        return value.detach()

    def penalty_of(self, thetas):
        """L_reg = λ_reg Σ Ω (θ̃ - θ)²."""
        held = self.penalty
        return held.strength * sum(
            (held.importance[name] * (held.anchor[name] - theta).square()).sum() for name, theta in thetas.items()
        )
