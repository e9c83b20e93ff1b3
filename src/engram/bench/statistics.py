"""What a few class orders can say: means, 95 % intervals, and differences on the same orders.

Class orders are the sample: two initialisations on one order are averaged first, because they share its luck.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from scipy.stats import t as student

LEVEL = 0.95
ALPHAS = {"alpha_base": "base classes", "alpha_new": "new class", "alpha_all": "all classes"}


@dataclass(frozen=True)
class Estimate:
    """A mean over class orders. One order has no spread, and its interval is the whole line."""

    mean: float
    std: float
    half: float  # of the 95 % interval; infinite for one order
    orders: int

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.mean + self.half

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of zero."""
        return abs(self.mean) > self.half


def estimate(per_order: Sequence[float]) -> Estimate:
    """Mean, standard deviation and Student's interval of one value for each class order."""
    n = len(per_order)
    if n < 2:
        return Estimate(fmean(per_order), 0.0, math.inf, n)
    std = stdev(per_order)
    return Estimate(fmean(per_order), std, float(student.ppf((1 + LEVEL) / 2, n - 1)) * std / math.sqrt(n), n)


def over_orders(values: Sequence[float], orders: Sequence[Mapping[str, Any]]) -> Estimate:
    """`values` has one entry for every entry of a record's `orders`; those of one class order are averaged first."""
    return estimate(list(_by_order(values, orders).values()))


def measured(record: Mapping[str, Any], field: str) -> list[float]:
    """One value for every entry of `orders`; of `alpha_base`, `_new` and `_all` the mean over the increments."""
    if field in ALPHAS:
        return [fmean(task[field] for task in order["tasks"][1:]) for order in record["orders"]]
    return [float(value) for value in record[field]["values"]]


def summarise(record: Mapping[str, Any], field: str) -> Estimate:
    """One measure of one record, over its class orders."""
    return over_orders(measured(record, field), record["orders"])


def paired(record: Mapping[str, Any], other: Mapping[str, Any], field: str) -> Estimate | None:
    """How much higher `record` is than `other`, order by order; None where they have no class order in common."""
    one, two = (_by_order(measured(each, field), each["orders"]) for each in (record, other))
    common = [key for key in one if key in two]
    return estimate([one[key] - two[key] for key in common]) if common else None


def _by_order(values: Sequence[float], orders: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    """The mean of every class order's initialisations, by its seed."""
    found: dict[int, list[float]] = {}
    for value, order in zip(values, orders, strict=True):
        found.setdefault(order["seed"], []).append(value)
    return {seed: fmean(several) for seed, several in found.items()}
