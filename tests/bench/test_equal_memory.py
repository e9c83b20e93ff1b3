"""Every method at equal memory: rows that fit, counted from real tensors, and what is told of them."""

import sys
from pathlib import Path

import pytest
from PIL import Image

from engram.bench import drawing
from engram.bench.presets import load_preset
from engram.methods import METHODS

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

equal_memory = pytest.importorskip("equal_memory")
kept = pytest.importorskip("kept")

NOT_RUN = {"prototypes", "si-lof", "imagenet"}  # the same learner, and one for the page


def test_every_method_has_a_row_or_says_what_it_needs():
    for dataset, chosen in equal_memory.CHOSEN.items():
        assert chosen.keys() | equal_memory.LEAST[dataset].keys() == METHODS.keys() - NOT_RUN
        for method, budgets in chosen.items():
            missing = [budget for budget in equal_memory.BUDGETS if budget < min(budgets)]
            least = equal_memory.LEAST[dataset].get(method)
            assert bool(missing) == bool(least), method
            assert not missing or missing[-1] * 1e6 < least[1] <= min(budgets) * 1e6
            fixed = () in budgets.values()  # nothing more to give it
            assert fixed or set(budgets) == set(equal_memory.BUDGETS) - set(missing), method


def test_rows_are_of_one_file_and_have_names_of_their_own():
    for file, rows in equal_memory.ROWS.items():
        assert len({row.name for row in rows}) == len(rows)
        for row in rows:
            dataset, method = row.preset.split("-")[0], row.name.split(",")[0]
            slow = method in {"gem", "joint", "fearnet", "gan-replay", "icwgan"}
            alone = method == "whitened" or (dataset == "cifar100" and method in {"deepncm", "gan-replay"})
            assert file == (f"{dataset}-{method}-memory" if alone else f"{dataset}-memory")
            assert (row.orders, row.seeds) == (1 if slow and dataset == "cifar100" else 3, 1)
            assert row.features == f"{dataset}-resnet50"
            assert load_preset(row.preset, row.settings).method == method


@pytest.mark.parametrize("name", ["whitened", "mas", "icarl", "1nn", "ewc", "hat", "gan-replay", "ranpac"])
def test_rows_of_a_megabyte_fit(name):
    """All rows are checked by `equal_memory.py --check`, which takes minutes."""
    row = next(row for row in equal_memory.ROWS[equal_memory.file_of("cifar100", name)] if row.name == f"{name}, 1 MB")
    assert 0.8e6 < kept.count_bytes(row.preset, row.settings, 2048, 100, 500) <= 1e6


def test_the_count_is_of_a_learner_that_learned_one_class_at_a_time():
    """FearNet just before a sleep, and shares of a memory that do not come out even."""
    changes = ("layers=[6, 5]", "bla_width=4", "sleep_every=3")
    network = 4 * ((8 * 6 + 6 + 6 * 5 + 5) + (5 * 6 + 6 + 6 * 8 + 8) + (5 * 4 + 4 + 4 + 1))
    classes = 4 * (5 + 1 + 5 + 25) + 8  # head, mean, covariance, count
    found = kept.count_bytes("cub200-fearnet", changes, 8, 10, 7)
    assert found == network + 10 * classes + 2 * 7 * (8 * 4 + 8)  # 5 classes more: asleep after 3, 2 are waiting
    assert kept.count_bytes("cub200-1nn", ("samples=25",), 8, 10, 7) == 25 * (8 * 4 + 8)
    assert kept.count_bytes("cub200-gem", ("width=2", "memories=25"), 8, 10, 7) == (
        4 * (8 + 8 + 8 * 2 + 2) + 10 * 4 * 3 + 25 * (8 * 4 + 16)
    )
    assert kept.count_bytes("cub200-fecam", (), 8, 10, 7) == 10 * (4 * (8 + 64 + 8) + 8)


def test_the_check_names_what_is_too_large(monkeypatch, capsys):
    row = equal_memory.ROWS["cub200-memory"][0]
    monkeypatch.setattr(equal_memory, "ROWS", {"cub200-memory": [row]})
    monkeypatch.setattr(equal_memory, "LEAST", {"cub200": {"ncm": ((), 5)}})
    monkeypatch.setattr(equal_memory, "count_bytes", lambda preset, *_: 5 if preset == "cub200-ncm" else 10**6)
    assert equal_memory.check() == []
    monkeypatch.setattr(equal_memory, "count_bytes", lambda *_: 10**6 + 1)
    assert equal_memory.check() == ["cub200 mas, 1 MB", "cub200 ncm, at least"]
    assert "1.000 MB" in capsys.readouterr().out


# --- what is told of them ---------------------------------------------------------------------------------------------


def record(method: str, budget: int, course: list[float], peak: int = 10, orders: int = 3) -> dict:
    """Made-up results; the most is kept before the last task."""
    kept_bytes = [5, peak, *[7] * len(course)]
    tasks = [
        {"task": t, "alpha_all": value, "kept_bytes": {"network": kept_bytes[t] - 2, "class memory": 2}}
        for t, value in enumerate([0.99, *course])
    ]
    name = f"{method}, {budget} MB"
    alike = [{"seed": seed, "tasks": tasks} for seed in range(orders)]
    return {"dataset": "cub200", "backbone": "resnet50", "method": method, "name": name, "orders": alike}


def made_up(*more: dict) -> dict:
    records = [
        record("ncm", 5, [0.6, 0.5]),
        record("mas", 1, [0.3, 0.2]),
        record("mas", 20, [0.8, 0.7]),
        record("hat", 100, [0.9, 0.8]),
        record("whitened", 20, [0.85, 0.75]),
    ]
    return {"cub200-memory": {"records": [*records, *more]}}


def test_the_table_says_what_does_not_fit_and_what_needs_no_more():
    lines = equal_memory.table(made_up()).splitlines()
    found = {row[0]: row[1:] for row in ([c.strip() for c in line.strip("|").split("|")] for line in lines)}
    assert found["Nearest class mean"] == ["— (needs 1.64 MB)", "0.550 / 0.500", "as at 5 MB", "as at 5 MB"]
    assert found["MAS"] == ["0.250 / 0.200", "as at 1 MB", "0.750 / 0.700", "as at 20 MB"]
    assert found["HAT (told the task)"] == ["not run", "not run", "not run", "0.850 / 0.800"]
    assert found["SLDA"] == ["— (needs 20.1 MB)"] * 4
    assert found["FeCAM"] == ["— (needs 3.36 GB)"] * 4
    named = [line.split("|")[1].strip() for line in lines[2:6]]
    assert named == ["HAT (told the task)", "Whitened", "MAS", "Nearest class mean"]  # the best first


def test_the_files_of_a_data_set_make_one_table():
    apart = {"cub200-whitened-memory": {"records": [record("whitened", 1, [0.95])]}}
    lines = equal_memory.table(made_up() | apart).splitlines()
    assert sum("ResNet-50" in line for line in lines) == 1
    assert next(line for line in lines if "Whitened" in line).startswith("| Whitened | 0.950 / 0.950 |")


def test_the_order_of_the_files_does_not_matter():
    """As `results/*` gives them, or as the rows are listed: the page, and lines over each other in the picture."""
    apart = {
        "cub200-gem-memory": {"records": [record("gem", 5, [0.55], orders=1)]},
        "cub200-joint-memory": {"records": [record("joint", 5, [0.55], orders=1)]},
    }
    given = list((made_up() | apart).items())
    orders = [equal_memory.by_dataset(dict(some)) for some in (given, given[::-1])]
    assert orders[0] == orders[1]
    assert [one["method"] for one in orders[0]["cub200"]] == ["mas", "mas", "whitened", "ncm", "gem", "hat", "joint"]


def test_the_table_says_of_which_methods_there_is_one_class_order_alone():
    assert "means over three class orders. Everything" in equal_memory.table(made_up())
    one = [record("gem", budget, [0.5], orders=1) for budget in (5, 20)]
    said = equal_memory.table(made_up(*one, record("fearnet", 1, [0.5], orders=1)))
    assert "three class orders, on CUB-200-2011 one of FearNet (our sleeps) and GEM. Everything" in said


def test_a_row_that_kept_more_than_it_was_given_is_no_row():
    with pytest.raises(ValueError, match="cub200: ncm, 1 MB kept 1,000,001 bytes"):
        equal_memory.table(made_up(record("ncm", 1, [0.5], peak=1_000_001)))
    equal_memory.table(made_up(record("ncm", 1, [0.5], peak=1_000_000)))


def test_the_picture_shows_the_two_that_matter_and_who_is_told_the_task(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    named = []
    monkeypatch.setattr(equal_memory, "name_lines", lambda axis, ends: named.append((axis, ends)))
    equal_memory.picture(made_up(), tmp_path / "made.png")
    assert Image.open(tmp_path / "made.png").width > 1000
    assert len(named) == 2  # the mean, and the end
    ends = {name: (x, y, colour) for x, y, name, colour in named[0][1]}
    assert ends["Nearest class mean"] == (100, pytest.approx(0.55), drawing.COLOURS[3])  # goes on to the right
    assert ends["MAS"] == (100, pytest.approx(0.75), drawing.COLOURS[0])
    assert ends["Whitened"][2] == drawing.COLOURS[1]
    assert "HAT (told the task)" in ends
    assert {name: y for _, y, name, _ in named[1][1]}["MAS"] == pytest.approx(0.7)


def test_names_beside_lines_keep_apart_in_figures_of_several_rows():
    """The same distance in inches, whatever the number of rows of panels."""
    pytest.importorskip("matplotlib")
    pyplot = drawing.load_pyplot()
    gaps = []
    for rows in (1, 2):
        image, axes = pyplot.subplots(rows, 1, figsize=(4, 4 * rows), squeeze=False)
        drawing.name_lines(axes[0][0], [(0.5, 0.5, "one", "k"), (0.5, 0.5, "two", "k")])
        low, high = (text.xyann[1] for text in axes[0][0].texts)
        gaps.append(high - low)
        pyplot.close(image)
    assert gaps[0] == pytest.approx(gaps[1])
