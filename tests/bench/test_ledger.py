"""The parts of the ledger, each on results made up so that what they must say is known."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from made_up import named

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

records = pytest.importorskip("ledger.records")
claims = pytest.importorskip("ledger.claims")
comparison = pytest.importorskip("ledger.comparison")
details = pytest.importorskip("ledger.details")
summary = pytest.importorskip("ledger.summary")
verdicts = pytest.importorskip("ledger.verdicts")
reproduction = pytest.importorskip("reproduction")

LUCK = (0.0, 0.012, -0.012)  # of a class order, shared by all methods; the second initialisation is .002 better


def spread(values: list[float]) -> dict[str, Any]:
    return {"mean": sum(values) / len(values), "std": 0.01, "values": values}


def record(method: str, level: float, ideal: float = 0.8, **more: Any) -> dict[str, Any]:
    """Ten classes and four more; the accuracy on base, new and all classes is `level`, `level` and `level` - .1."""
    orders = []
    for seed, luck in enumerate(LUCK):
        for init in (0, 1):
            base = level + luck + 0.002 * init
            tasks = [
                {
                    "classes_seen": 10 + t,
                    "alpha_base": base,
                    "alpha_new": base,
                    "alpha_all": base - 0.1,
                    "seconds": 1.0,
                    "kept_bytes": {"network": 1000, "class memory": 8 * (10 + t)},
                }
                for t in range(5)
            ]
            orders.append({"seed": seed, "init": init, "classes": list(range(14)), "tasks": tasks})
    found = {
        part: [order["tasks"][1][f"alpha_{part}"] / divisor for order in orders]
        for part, divisor in (("base", ideal), ("new", 1.0), ("all", ideal))
    }
    theirs = {
        part: [value * (1 if part == "new" else ideal / 0.699) for value in values] for part, values in found.items()
    }
    return {
        **named(method),
        "protocol": {"base": 10, "step": 1, "classes": 14},
        "alpha_ideal": {"accuracy": ideal, "std": 0.002, "values": [ideal]},
        **{f"psi_{part}": spread(values) for part, values in found.items()},
        "paper_ideal": {"alpha_ideal": 0.699, **{f"psi_{part}": spread(values) for part, values in theirs.items()}},
        "final_accuracy": spread([order["tasks"][-1]["alpha_all"] for order in orders]),
        "orders": orders,
        "memory": {"as_the_paper_counts": {"100": 1000}, "all_the_next_increment_needs": {"100": 90_000}},
        **more,
    }


def results(*found: dict[str, Any], started: str = "2026-11-17", **run: Any) -> dict[str, Any]:
    about = {
        "git_revision": "0123456789",
        "command": "engram bench",
        "device": "a fast one",
        "torch": "2.11",
        "started": started,
    }
    return {"format": 1, "run": about | run, "records": list(found)}


def rows(*found: dict[str, Any]):
    return records.rows_of([results(*found)])


def cells(table: str, start: str) -> list[list[str]]:
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return [line for line in lines if start in line]


def test_of_one_row_in_two_files_the_later_counts():
    early, late = record("mas", 0.7), record("mas", 0.72)
    other = record("mas", 0.7, name="8 bits")
    files = [results(early, record("si", 0.7), started="2026-11-16"), results(late, other)]
    kept = records.current(files)
    assert [[r["method"] for r in one["records"]] for one in kept] == [["si"], ["mas", "mas"]]
    assert kept[1]["records"][0] is late
    assert records.current([results(early), results(late)]) == [results(late)]
    fewer = record("mas", 0.7, protocol={"base": 5, "step": 1, "classes": 14})
    assert len(records.current([results(fewer), results(late)])) == 2  # another protocol is another row


def test_the_verdict_table_counts_by_both_denominators_and_says_what_is_near():
    """MAS was published as .887, .641, .850; here it has .876, .701, .751, and by .699 1.003, .701, .860."""
    table = verdicts.verdict_table(rows(record("mas", 0.7)))
    (line,) = cells(table, "MAS")
    assert line[2:] == [
        "1 of 3 reproduced, 1 higher, 1 lower",
        "1 of 3 reproduced, 2 higher",
        "Ψ_base near; Ψ_new by .060 higher; Ψ_all by .099 lower.",
    ]
    (total,) = cells(table, "**the paper's method**")
    assert total[2] == "**1 of 3 reproduced, 1 higher, 1 lower**"
    assert total[4].endswith("α_ideal is .800 here, .699 in the paper.")
    assert "those weights are not to be had here" in table


def test_a_set_of_features_has_one_total_and_quoted_systems_another():
    table = verdicts.verdict_table(rows(record("mas", 0.7), record("si", 0.7), record("icarl", 0.7)))
    (own,) = cells(table, "**the paper's method**")
    (quoted,) = cells(table, "**quoted systems**")
    assert " of 6 " in own[2]
    assert " of 3 " in quoted[2]


def test_vgg_19_says_whose_its_weights_are_and_fc1_is_not_missed_once_it_is_there():
    table = verdicts.verdict_table(rows(record("mas", 0.7, backbone="vgg19:conv4_1@32:sha256-0")))
    assert "the weights are Oxford's, with one layer rescaled" in table
    there = record("mas", 0.7, dataset="cub200", backbone="vgg19:fc1@224:sha256-0")
    assert "not to be had" not in verdicts.verdict_table(rows(there))


WHOLE = "… with far less memory, all counted that the next increment needs, FearNet at its peak"


def judged(*found: dict[str, Any], ablations=(), increments=None) -> dict[str, str]:
    made = claims.judge_claims(rows(*found), rows(*ablations) if ablations else [], increments or {})
    return {claim.text: claim.verdict for claim in made}


def test_claims_are_judged_by_paired_differences():
    said = judged(
        record("mas", 0.70),
        record("mas-lof", 0.68),
        record("icarl", 0.60),
        record("1nn", 0.725),
        record("fearnet", 0.74, config={"sleep_trains": "all"}),
    )
    assert said["LOF slightly decreases Ψ_base and Ψ_all"] == "**holds**: 2 of 2"
    assert said["Better than iCaRL"] == "**holds**: 2 of 2"
    assert said["Slightly worse than 1-NN"] == "**holds**: 2 of 2"
    assert said["Comparable to FearNet"] == "**holds in part**: 1 of 2, 1 far lower"
    assert said["… after the last class, too"] == "**holds in part**: 1 of 2, 1 far lower"
    assert said["L1 helps"] == said["LOF alone is not enough"] == "not yet measured"


def test_a_claim_that_fails_says_how():
    said = judged(record("mas", 0.70), record("mas-lof", 0.73), record("icarl", 0.75), record("1nn", 0.6))
    assert said["LOF slightly decreases Ψ_base and Ψ_all"] == "**does not hold**: 0 of 2, 2 the opposite"
    assert said["Better than iCaRL"] == "**does not hold**: 0 of 2, 2 the opposite"
    assert said["Slightly worse than 1-NN"] == "**does not hold**: 0 of 2, 2 the opposite"
    assert said["Comparable to FearNet"] == "not yet measured"


def test_slightly_is_not_far():
    said = judged(record("mas", 0.70), record("1nn", 0.76))
    assert said["Slightly worse than 1-NN"] == "**does not hold**: 0 of 1, 1 far lower"


def shaken(method: str, level: float) -> dict[str, Any]:
    """Another luck with every class order than the others have."""
    found = record(method, level)
    for order, shift in zip(found["orders"], (0.02, 0.02, -0.02, -0.02, 0.0, 0.0), strict=True):
        for task in order["tasks"]:
            task["alpha_all"] += shift
    return found


def test_a_difference_within_its_interval_is_undecided():
    other = shaken("icarl", 0.70)
    assert judged(record("mas", 0.70), other)["Better than iCaRL"] == "**undecided**: 0 of 1, 1 undecided"


def test_fearnet_with_our_sleeps_stands_for_no_claim():
    said = judged(record("mas", 0.7), record("fearnet", 0.7, config={"sleep_trains": "head"}))
    assert said["Comparable to FearNet"] == "not yet measured"


def test_memory_is_judged_by_either_way_of_counting():
    near = {"as_the_paper_counts": {"100": 1999}, "all_the_next_increment_needs": {"100": 1}}
    said = judged(record("mas", 0.7), record("fearnet", 0.7, config={}, memory=near))
    assert said["… with far less memory, as the paper counts it"] == "**does not hold**: 0 of 1, 1 not far less"
    theirs = {"as_the_paper_counts": {"100": 2000}, "all_the_next_increment_needs": {"100": 80_000}}
    said = judged(record("mas", 0.7), record("fearnet", 0.7, config={}, memory=theirs))
    assert said["… with far less memory, as the paper counts it"] == "**holds**: 1 of 1"
    assert said[WHOLE] == "**does not hold**: 0 of 1, 1 more"


def test_fearnet_is_counted_whole_just_before_a_sleep():
    counted = {"as_the_paper_counts": {"100": 1}, "all_the_next_increment_needs": {"100": 80_000}}
    theirs = record("fearnet", 0.7, config={}, memory=counted)
    assert judged(record("mas", 0.7), theirs)[WHOLE] == "**does not hold**: 0 of 1, 1 more"
    for order in theirs["orders"]:
        order["tasks"][1]["kept_bytes"]["stored samples"] = 20_001
    assert judged(record("mas", 0.7), theirs)[WHOLE] == "**does not hold**: 0 of 1, 1 not far less"


def test_cost_is_judged_in_seconds_and_in_bytes():
    growing = record("mas", 0.7)
    for order in growing["orders"]:
        for t, task in enumerate(order["tasks"]):
            task["kept_bytes"]["class memory"] = 8 * t * t
    flat = judged(record("mas", 0.7), increments={("cifar100", "mas"): 1.1})
    assert flat["Constant cost per class, in seconds"] == flat["… and in bytes"] == "**holds**: 1 of 1"
    said = judged(growing, increments={("cifar100", "mas"): 1.2})
    assert said["Constant cost per class, in seconds"] == "**does not hold**: 0 of 1, 1 grows"
    assert said["… and in bytes"] == "**does not hold**: 0 of 1, 1 grows"
    assert judged(record("mas", 0.7))["Constant cost per class, in seconds"] == "not yet measured"


def test_ablations_decide_what_l1_and_lof_are_worth():
    ablations = [
        record("mas", 0.70, name="as published"),
        record("mas", 0.65, name="without L_L1"),
        record("mas-lof", 0.72, name="LOF alone"),
        record("mas-lof", 0.71, name="LOF + L_add"),
    ]
    said = judged(record("mas", 0.7), ablations=ablations)
    assert said["L1 helps"] == "**holds**: 1 of 1"
    assert said["LOF alone is not enough"] == "**does not hold**: 0 of 1, 1 the opposite"


def test_what_beats_the_method_has_to_beat_all_its_configurations():
    found = rows(record("mas", 0.7), record("si", 0.74), record("slda", 0.78), record("ncm", 0.72))
    assert claims.simple_statistics(found).replace("\n ", "") == (
        "- CIFAR-100, resnet50:pooled: SLDA (.681) beats all four configurations, whose best is SI (.641); "
        "Nearest class mean (.621) does not."
    )
    assert "none beats all four" in claims.simple_statistics(rows(record("mas", 0.7), shaken("slda", 0.71)))
    assert "none beats all four" in claims.simple_statistics(rows(record("mas", 0.7), record("ncm", 0.6)))


def test_alpha_ideal_is_no_ceiling_where_a_method_ends_above_it():
    found = rows(record("mas", 0.7), record("slda", 0.95), record("hat", 0.99))
    text = comparison.ideals(found)
    assert "| CIFAR-100 | resnet50:pooled | 0.800 | ± 0.002 | 0.699 |" in text
    assert text.endswith("**It is no ceiling.** On CIFAR-100, resnet50:pooled, SLDA (.851) ends above it.")
    assert comparison.ideals(rows(record("mas", 0.7))).endswith("No method passes it.")


def test_differences_are_against_whitened_and_mas_on_the_same_features():
    table = comparison.differences(rows(record("mas", 0.7), record("whitened", 0.75), record("hat", 0.9)), "cifar100")
    (line,) = cells(table, "MAS")
    assert line[2].startswith("0.601 ± 0.0")  # luck of .012 and Student's t of three orders
    assert float(line[2].split("± ")[1]) == pytest.approx(4.3027 * 0.012 / 3**0.5, abs=5e-4)
    assert line[3].startswith("−.050 [−.050, −.050]")
    assert line[4] == "–"
    assert cells(table, "HAT (told the task)")


def test_a_variant_is_in_no_table_of_methods():
    found = rows(record("mas", 0.7), record("mas", 0.69, name="8 bits"))
    assert not cells(comparison.differences(found, "cifar100"), "MAS, 8 bits")


def test_a_file_s_paragraph_says_how_it_was_made_and_leaves_out_what_was_replaced():
    early = results(record("mas", 0.7), record("slda", 0.7), features_sha256="abcdef0123", weights_sha256="9876543210")
    early["run"]["environment"] = "environments/1234.txt"
    late = results(record("mas", 0.71))
    text = details.details({"early": early, "late": late}, records.rows_of(records.current([early, late])))
    first, second = text.split("### late")
    made = "revision 0123456, features abcdef01, weights 98765432, [environment](../results/environments/1234.txt)"
    assert f"{made}, α_ideal measured 0.800, the paper's 0.699." in first
    assert "Left out: 1 of its 2 rows" in first
    assert "| MAS |" not in first
    assert "| SLDA | 0.876 ± 0.015 |" in first
    assert "| MAS | Ψ_base | 0.887 | 0.889 ± 0.015 | reproduced | 1.017 ± 0.017 | higher |" in second


def test_places_are_filled_inline_and_in_blocks_and_again_to_the_same(monkeypatch):
    monkeypatch.setitem(reproduction.PLACES, "systems", lambda: "two systems")
    page = "beside <!-- systems -->x<!-- end --> here\n\n<!-- systems -->\n\nold\n\n<!-- end -->\n"
    once = reproduction.fill(page)
    assert once == (
        "beside <!-- systems -->two systems<!-- end --> here\n\n<!-- systems -->\n\ntwo systems\n\n<!-- end -->\n"
    )
    assert reproduction.fill(once) == once


def test_a_section_is_its_script_s_table_of_the_files_there_are(monkeypatch):
    made_up = {"b-ablations": results(record("mas", 0.7)), "a-ablations": results(record("mas", 0.6))}
    listed = dict.fromkeys(["b-ablations", "a-ablations", "c-ablations"])
    script = SimpleNamespace(ROWS=listed, ALSO=["plain", "missing"], table=", ".join)
    there = {records.ABLATIONS: sorted(made_up), records.EQUAL_MEMORY: [], "": ["plain", "other"]}
    monkeypatch.setattr(reproduction, "names", lambda ending="": there[ending])
    monkeypatch.setattr(reproduction, "read", (made_up | {"plain": results(record("si", 0.7))}).__getitem__)
    monkeypatch.setattr(reproduction.importlib, "import_module", {"ablations": script}.__getitem__)
    text = reproduction.section("ablations")
    assert text.startswith("b-ablations, a-ablations, plain\n\n![")  # in the script's order, and the ledger's after it
    assert "(../results/b-ablations.json)" in text
    assert reproduction.section("equal-memory") == "Not yet run."


def test_what_is_kept_at_the_end_stands_beside_the_most_on_the_way():
    (plain,) = rows(record("ncm", 0.7))
    sleeping = record("fearnet", 0.7, config={})
    for order in sleeping["orders"]:
        for task in order["tasks"]:
            task["kept_bytes"] = {"network": 2_000_000, "stored samples": 0}
        order["tasks"][2]["kept_bytes"]["stored samples"] = 500_000
    (slept,) = rows(sleeping)
    assert (comparison.kept_mb(plain), comparison.kept_mb(slept)) == ("0.0", "2.0 (peak 2.5)")


def test_how_many_class_orders_is_said_for_every_data_set():
    def made(dataset: str, fewer: tuple[str, ...]) -> list[dict[str, Any]]:
        found = [record(method, 0.7, dataset=dataset) for method in summary.README]
        for one in found:
            if one["method"] in fewer:
                one["orders"] = one["orders"][:4]
                one["psi_all"]["values"] = one["psi_all"]["values"][:4]
        return found

    every = tuple(summary.README)
    assert (
        summary.orders_sentence(rows(*made("cifar100", ()), *made("cub200", ())))
        == "Every method had three class orders."
    )
    said = summary.orders_sentence(rows(*made("cifar100", ("ncm", "joint")), *made("cub200", every))).replace("\n", " ")
    assert said == (
        "Class orders: on CIFAR-100 Whitened prototypes, SLDA, RanPAC, FearNet and MAS three; nearest class mean and "
        "joint training two, on CUB-200-2011 all two."
    )


def test_who_beats_whitened_prototypes_is_said_with_what_it_keeps():
    def made(dataset: str, **levels: float) -> list[dict[str, Any]]:
        found = [record(method, level, dataset=dataset) for method, level in levels.items()]
        for one in found:
            for order in one["orders"]:
                order["tasks"][-1]["kept_bytes"] = {"network": 4_600_000 if one["method"] == "whitened" else 90_000_000}
        return found

    first = made("cifar100", whitened=0.7, ranpac=0.72, joint=0.75, hat=0.9, slda=0.69)
    said = summary.above(rows(*first, *made("cub200", whitened=0.7, ranpac=0.7))).replace("\n", " ")
    assert said == (
        "Whitened prototypes are beaten, on the way, on CIFAR-100 by Joint training (+.050 [.050, .050]; 90.0 MB "
        "instead of 4.6) and RanPAC (+.020 [.020, .020]; 90.0 MB instead of 4.6); on CUB-200-2011 by none."
    )
