"""Counts and means of classes, and one scatter for all, as a model keeps them: in few bits, and yet sums.

The scatter S = Σ_c Σ_{i in c} (z_i - μ_c)(z_i - μ_c)ᵀ of N samples is kept packed, in a unit of its own.
"""

from collections.abc import Mapping, Sequence
from functools import reduce

import torch
from torch import Tensor

from engram.nn import statistics, symmetric, whitening
from engram.nn.layout import Kept, Layout, whole

Sums = dict[str, Tensor]  # by their names in the state of a learner

LARGEST_UNIT = 1e30  # of a scatter: it is to be multiplied in single precision

# What one of several models keeps, the rows its classes get in all of them, and the unit of its z in theirs.
Part = tuple[Mapping[str, Tensor], Tensor, Tensor]


def add(
    had: Mapping[str, Tensor],
    z: Tensor,
    targets: Tensor,
    classes: int,
    bits: int,
    random: torch.Generator,
    tasks: int,
) -> Sums:
    """The sums with more samples, the task after `tasks` others, and how many classes are new with it.

    Only the rows they touch are computed: one class more costs the same however many there are.
    """
    rows, own = targets.unique(return_inverse=True)
    counts, means = had.get("classes.counts", rows[:0].int()), had.get("classes.means", z[:0])
    before = len(counts)
    known = rows[rows < before]
    now = statistics.update(counts[known], means[known], z, own, len(rows))
    new = symmetric.round_to(now.means, bits, random)
    counts, means = statistics.with_rows(counts, classes), statistics.with_rows(means.to(new.dtype), classes)
    counts[rows], means[rows] = now.counts.int(), new
    scatter, unit = had.get("consolidation.scatter"), had.get("consolidation.unit")
    samples = had.get("consolidation.samples", 0) + torch.tensor(len(z), device=z.device)
    packed = symmetric.add(scatter, unit, now.scatter, bits, random, tasks, int(samples))
    return _named(counts, means, packed, samples, newest=classes - before if before else 0)


def unite(parts: Sequence[Part], classes: int, bits: int, random: torch.Generator, tasks: int) -> Sums:
    """The sums of several models: exactly what their samples together would have made, up to rounding."""
    first = parts[0][0]["classes.means"]
    dtype = reduce(torch.promote_types, (kept["classes.means"].dtype for kept, _, _ in parts), torch.float32)
    d = first.shape[1]
    counts = torch.zeros(classes, dtype=torch.int64, device=first.device)
    means = torch.zeros(classes, d, dtype=dtype, device=first.device)
    scatter = torch.zeros(d, d, dtype=dtype, device=first.device)
    samples = torch.zeros((), dtype=torch.int64, device=first.device)
    for kept, rows, scale in parts:
        n, mu = kept["classes.counts"].long(), kept["classes.means"].double() * scale
        between = statistics.unite(counts, means, rows, n, mu * n[:, None])
        between = between[between.any(dim=1)].to(dtype)  # classes that only one model knows add nothing here
        unit = kept["consolidation.unit"] * scale**2
        scatter += symmetric.unpack_triangle(kept["consolidation.scatter"], dtype) * unit.to(dtype)
        scatter += between.T @ between
        samples += kept["consolidation.samples"]
    packed = symmetric.add(None, None, scatter, bits, random, tasks, int(samples))
    return _named(counts.int(), symmetric.round_to(means, bits, random), packed, samples, newest=0)


def without(kept: Mapping[str, Tensor], rest: statistics.Rest, bits: int, random: torch.Generator, tasks: int) -> Sums:
    """What changes in the sums, where only this rest is left; for a model without scatter, counts and means alone.

    Calibration was measured where more was known: its numbers stay, and the next task measures anew.
    """
    means = symmetric.round_to(rest.means, bits, random)
    sums = {"classes.counts": rest.counts.to(kept["classes.counts"].dtype), "classes.means": means}
    if rest.scatter is not None:
        samples, newest = kept["consolidation.samples"] - rest.samples, int(kept["consolidation.newest"])
        scatter, unit, less = kept["consolidation.scatter"], kept["consolidation.unit"], -rest.scatter
        if int(samples) == len(rest.counts):  # of one sample each, nothing varies, and what is left is rounding
            scatter, less = torch.zeros_like(scatter), torch.zeros_like(less)
        packed = symmetric.add(scatter, unit, less, bits, random, tasks, int(samples))
        newest = int(rest.left[len(rest.left) - newest :].sum())
        sums = _named(sums["classes.counts"], means, packed, samples, newest)
    if "consolidation.calibration" in kept:
        outdated = kept["consolidation.calibration"].clone()
        outdated[0] = 0
        sums["consolidation.calibration"] = outdated
    return sums


def scatter_of(kept: Mapping[str, Tensor]) -> Tensor | None:
    """The upper triangle of the scatter, at least; None if there is none."""
    if "consolidation.scatter" not in kept:
        return None
    if "consolidation.unit" not in kept:
        return kept["consolidation.scatter"].double()
    return symmetric.unpack_triangle(kept["consolidation.scatter"], torch.float64) * kept["consolidation.unit"]


def layout(classes: int, width: int, bits: int) -> Layout:
    """What they have to be; the scatter may need more bits than were asked for."""
    dtype = symmetric.DTYPES[bits]
    formats = (dtype, torch.float32) if bits == 16 else (dtype,)
    return {
        "classes.counts": Kept((classes,), (torch.int32,), least=1),
        "classes.means": Kept((classes, width), (dtype,)),
        # Its mean diagonal is 1, so no entry is beyond its width.
        "consolidation.scatter": Kept((-(-width // 2), width + 1), formats, -2 * width, 2 * width),
        "consolidation.unit": Kept((), (torch.float64,), 0, LARGEST_UNIT),
        "consolidation.samples": whole(least=1),
        "consolidation.newest": whole(most=classes),
    }


def space(kept: Mapping[str, Tensor]) -> whitening.Space:
    """The space that they make to answer in."""
    shared = (kept[f"consolidation.{name}"] for name in ("scatter", "unit", "samples"))
    return whitening.build(kept["classes.means"], kept["classes.counts"], *shared)


def _named(counts: Tensor, means: Tensor, scatter: Sequence[Tensor], samples: Tensor, newest: int) -> Sums:
    return {
        "classes.counts": counts,
        "classes.means": means,
        "consolidation.scatter": scatter[0],
        "consolidation.unit": scatter[1],
        "consolidation.samples": samples,
        "consolidation.newest": torch.tensor(newest, device=counts.device),
    }
