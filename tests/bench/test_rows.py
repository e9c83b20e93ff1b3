"""What a record is called, and by what it is judged: the same for tables, reports and the ledger."""

from typing import Any

import pytest
from made_up import named

from engram.bench.results import Row, count_verdicts, group, judge, load
from engram.bench.tables import in_order, protocols


def spread(value: float) -> dict[str, Any]:
    return {"mean": value, "std": 0.0, "values": [value]}


def record(method: str, psi: tuple[float, float, float], constant: float = 0.699, **more: Any) -> dict[str, Any]:
    base, new, every = psi
    ours = {"psi_base": spread(base), "psi_new": spread(new), "psi_all": spread(every)}
    share = 0.774 / constant
    theirs = {"psi_base": spread(base * share), "psi_new": spread(new), "psi_all": spread(every * share)}
    task = {"classes_seen": 3, "alpha_base": 0.5, "alpha_new": 0.5, "alpha_all": 0.5, "seconds": 1.0}
    return {
        **named(method),
        "protocol": {"base": 2, "step": 1, "classes": 3},
        "alpha_ideal": {"accuracy": 0.774},
        "paper_ideal": {"alpha_ideal": constant, **theirs},
        "orders": [{"seed": 0, "classes": [0, 1, 2], "tasks": [task, task]}],
        **ours,
        **more,
    }


def rows(*records: dict[str, Any]) -> list[Row]:
    return group(load([{"format": 1, "run": {}, "records": list(records)}]))[0].rows


def test_every_number_is_judged_by_both_denominators():
    """MAS was published as .887, .641, .850; near is within .03."""
    (row,) = rows(record("mas", (0.89, 0.65, 0.75)))
    assert row.verdicts("ours") == ["reproduced", "reproduced", "lower"]
    assert row.verdicts("paper") == ["higher", "reproduced", "reproduced"]  # .985, .65, .830
    assert judge([row]) == "By our α_ideal 2 of 3 reproduced, 1 lower; by the paper's 2 of 3 reproduced, 1 higher."


def test_without_the_paper_s_constant_only_ours_judges():
    (row,) = rows(record("mas", (0.89, 0.65, 0.75), paper_ideal=None))
    assert len(row.verdicts("ours")) == 3
    assert row.verdicts("paper") == []


def test_verdicts_are_counted_in_words():
    assert count_verdicts(["lower", "reproduced", "higher", "lower"]) == "1 of 4 reproduced, 1 higher, 2 lower"
    assert count_verdicts(["reproduced"]) == "1 of 1 reproduced"


def test_fearnet_with_sleeps_of_our_own_is_a_row_of_its_own_and_not_judged():
    theirs, ours = in_order(
        rows(
            record("fearnet", (0.927, 0.824, 0.947), config={"sleep_trains": "all"}),
            record("fearnet", (0.927, 0.824, 0.947), config={"sleep_trains": "head"}),
        )
    )
    assert (theirs.label, ours.label) == ("FearNet", "FearNet, head-only sleeps (ours)")
    assert theirs.verdicts("ours") == ["reproduced"] * 3
    assert ours.published is None
    assert ours.verdicts("ours") == ours.verdicts("paper") == []


@pytest.mark.parametrize(
    ("more", "title"),
    [
        ({"name": "without L_L1"}, "MAS, without L_L1"),
        ({"config": {"kept_bits": 8}}, "MAS, 8 bits"),
    ],
)
def test_a_variant_says_so_and_is_not_judged(more: dict[str, Any], title: str):
    plain, variant = in_order(rows(record("mas", (0.887, 0.641, 0.85)), record("mas", (0.887, 0.641, 0.85), **more)))
    assert (plain.label, variant.label) == ("MAS", title)
    assert plain.verdicts("ours") == ["reproduced"] * 3
    assert variant.verdicts("ours") == []


def test_who_is_told_the_task_is_called_so():
    (row,) = rows(record("hat", (1.0, 1.0, 1.0)))
    assert row.label == "hat (told the task)"
    assert in_order([row])[0].label == "HAT (told the task)"


def test_the_protocol_counts_class_orders_and_initialisations():
    one = record("mas", (0.8, 0.6, 0.8))
    order = one["orders"][0]
    more = [order | {"seed": seed, "init": init} for seed in range(3) for init in range(2)]
    assert rows(one)[0].protocol.endswith("; 1 class order.")
    assert rows({**one, "orders": more})[0].protocol.endswith("; 3 class orders with 2 initialisations each.")
    several = rows(one, {**one, "method": "si", "orders": more}, {**one, "method": "si-lof"})
    assert protocols(several) == (
        "2 classes at first, then 1 more, one at a time, without the earlier data; 1 class order, or 3 class orders "
        "with 2 initialisations each."
    )
