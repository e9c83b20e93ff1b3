"""What a row would keep, counted from real tensors: with made-up features and no training."""

from dataclasses import replace
from functools import cache

import numpy as np

from engram.bench.learners import bytes_kept
from engram.bench.presets import load_preset
from engram.learners.base import LeavesOut

FEW = 4  # samples of a class that none is kept of


@cache
def count_bytes(preset, changes, width, classes, per_class):
    """The most that a learner keeps between two tasks, from its real tensors, untrained.

    Only the last few classes come one at a time: what grows with the classes is largest there. Of the others there are
    no more samples than there is room for.
    """
    loaded = load_preset(preset, changes)
    config = loaded.config
    untrained = replace(config, **{n: 0 for n in vars(config) if n.endswith("_epochs")})
    learner = replace(loaded, config=untrained).new(device="cpu")
    if learner.method == "fecam":  # every class has its own matrices, and nothing else is kept
        return count_kept(teach(learner, width, range(2), FEW)) * classes // 2
    last = 3
    if "sleep_every" in vars(config):  # the last sleep is as far from the end as in the real protocol
        last = classes // 2 % config.sleep_every + config.sleep_every
    base, room = classes - last, max(getattr(config, name, None) or 0 for name in ("samples", "exemplars", "memories"))
    learner = teach(learner, width, range(base), min(per_class, room // base + 1) if room else FEW)
    peak = count_kept(learner, room)
    for number in range(base, classes):
        learner = teach(learner, width, [number], per_class if learner.about.keeps_samples else FEW)
        peak = max(peak, count_kept(learner, room))
    return peak


def teach(learner, width, task, per_class):
    random = np.random.default_rng(task[0])
    X = np.repeat(random.random((len(task), width), dtype=np.float32), per_class, axis=0)
    X += 0.3 * random.random(X.shape, dtype=np.float32)
    y = np.repeat(list(task), per_class).tolist()
    after = learner.learn(X, y)
    return after.judged(X, y)[0] if isinstance(after, LeavesOut) and after.to_calibrate else after


def count_kept(learner, room=0):
    """Bytes kept now; where there is `room` for more samples than its classes now share, as if it were full."""
    arrays = learner.state().arrays if room else {}
    stored = len(arrays.get("samples.targets", ()))
    each = sum(array[0].nbytes for name, array in arrays.items() if name.startswith("samples.") and stored)
    return sum(bytes_kept(learner).values()) + max(0, room - stored) * each
