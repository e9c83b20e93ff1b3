"""Intervals and paired differences, against SciPy and by hand."""

import math

import pytest
from scipy import stats

from engram.bench.statistics import estimate, over_orders, paired, summarise


def orders(*seeds: int) -> list[dict]:
    return [{"seed": seed, "init": number} for number, seed in enumerate(seeds)]


def record(values: list[float], *seeds: int, field: str = "psi_all") -> dict:
    return {field: {"mean": 0.0, "values": values}, "orders": orders(*seeds)}


def test_initialisations_of_one_order_are_averaged_before_anything_else():
    found = over_orders([0.5, 0.7, 0.8, 0.8, 0.9], orders(0, 0, 1, 1, 2))
    assert found.orders == 3
    assert found.mean == pytest.approx((0.6 + 0.8 + 0.9) / 3)  # and not the mean of five
    assert found.std == pytest.approx(stats.tstd([0.6, 0.8, 0.9]))


def test_the_interval_is_student_s():
    values = [0.61, 0.64, 0.6, 0.67, 0.63]
    found = estimate(values)
    expected = stats.t.interval(0.95, 4, loc=found.mean, scale=stats.sem(values))
    assert (found.low, found.high) == pytest.approx(expected)
    assert found.half == pytest.approx(2.7764451 * found.std / math.sqrt(5))  # from a table of t


def test_one_order_has_no_interval():
    found = over_orders([0.4, 0.6], orders(3, 3))
    assert (found.mean, found.std, found.half, found.orders) == (0.5, 0.0, math.inf, 1)
    assert not found.excludes_zero


def test_differences_are_taken_order_by_order_on_those_both_have():
    ours = record([0.7, 0.5, 0.9, 0.1], 0, 1, 2, 7)
    theirs = record([0.8, 0.58, 0.42, 0.6], 2, 0, 1, 0)  # in another order, with two initialisations of order 0
    found = paired(ours, theirs, "psi_all")
    assert found is not None
    differences = [0.7 - 0.59, 0.5 - 0.42, 0.9 - 0.8]
    assert found.orders == 3
    assert found.mean == pytest.approx(sum(differences) / 3)
    test = stats.ttest_1samp(differences, 0.0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((test.low, test.high))
    assert found.excludes_zero


def test_a_pairing_says_when_zero_is_inside():
    found = paired(record([0.7, 0.5, 0.6], 0, 1, 2), record([0.6, 0.6, 0.6], 0, 1, 2), "psi_all")
    assert found is not None
    assert not found.excludes_zero
    below = paired(record([0.5, 0.51, 0.49], 0, 1, 2), record([0.6, 0.6, 0.6], 0, 1, 2), "psi_all")
    assert below is not None
    assert below.excludes_zero
    assert below.high < 0


def test_no_order_in_common_is_no_difference():
    assert paired(record([0.7], 0), record([0.6], 1), "psi_all") is None


def test_accuracies_are_averaged_over_the_increments_without_the_base():
    tasks = [{"alpha_all": 0.9}, {"alpha_all": 0.6}, {"alpha_all": 0.4}]
    found = summarise({"orders": [{"seed": 0, "tasks": tasks}]}, "alpha_all")
    assert found.mean == pytest.approx(0.5)


def test_a_value_too_few_is_an_error():
    with pytest.raises(ValueError, match="argument"):
        over_orders([0.5], orders(0, 1))
