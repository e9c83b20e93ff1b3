"""Every method at equal memory: rows that fit, counted from real tensors, and what is told of them."""

import sys
from pathlib import Path

import pytest
from PIL import Image

from engram.bench import drawing
from engram.bench.learners import METHODS
from engram.bench.presets import load_preset

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

equal_memory = pytest.importorskip("equal_memory")
kept = pytest.importorskip("kept")

NOT_RUN = {"prototypes", "imagenet"}  # the learner of the paper's four, and one for the page


def preset_fits(dataset: str, method: str) -> list[int]:
    """The budgets that a method has room in as the ledger has it, by the bytes that it kept there."""
    sizes = {"cifar100": (100, 500), "cub200": (200, 30)}[dataset]
    count = kept.count_bytes(f"{dataset}-{method}", (), 2048, *sizes)
    return [budget for budget in equal_memory.BUDGETS if count <= budget * 1e6]


def test_every_method_is_shown():
    assert set(equal_memory.SHOWN) == METHODS.keys() - NOT_RUN | {"fearnet-head"}


@pytest.mark.parametrize("dataset", equal_memory.CHOSEN)
def test_every_method_has_a_row_for_every_budget_or_needs_more_or_fits_as_it_is(dataset):
    for method in equal_memory.SHOWN:
        chosen = equal_memory.CHOSEN[dataset].get(method, {})
        needs = equal_memory.LEAST[dataset].get(method, ((), 0))[1]
        missing = [b for b in equal_memory.BUDGETS if b not in chosen and needs <= b * 1e6]
        assert not missing or set(missing) <= set(preset_fits(dataset, method)), method
        assert all(needs <= budget * 1e6 for budget in chosen), method


def test_rows_are_of_one_file_and_have_names_of_their_own():
    slow = {"gem", "joint", "fearnet", "fearnet-head", "gan-replay", "icwgan"}
    later = {"whitened": "whitened-", "si-lof": "si-lof-", "fearnet": "fearnet-", "fearnet-head": "fearnet-"}
    later |= dict.fromkeys(("ncm", "slda", "fecam"), "statistics-")
    retuned = {
        "cifar100": ("deepncm", "gan-replay", "gem", "lwf", "icwgan"),
        "cub200": ("deepncm", "icarl", "ewc", "hat", "ranpac", "gem", "gan-replay", "icwgan"),
    }
    for file, rows in equal_memory.ROWS.items():
        assert len({row.name for row in rows}) == len(rows)
        for row in rows:
            dataset, method = row.preset.split("-")[0], row.name.split(",")[0]
            alone = later.get(method, f"{method}-" if method in retuned[dataset] else "")
            assert file == f"{dataset}-{alone}memory"
            assert (row.orders, row.seeds) == (1 if dataset == "cifar100" and method in slow else 3, 1)
            assert row.features == f"{dataset}-resnet50"
            assert row.preset == f"{dataset}-{method}"
            assert load_preset(row.preset, row.settings).method == method
            assert bool(row.settings) != bool(row.projections)


def test_statistics_are_given_projections_that_fill_a_budget():
    for file in ("cifar100-statistics-memory", "cub200-statistics-memory"):
        sizes = (100, 500) if "cifar100" in file else (200, 30)
        for row in equal_memory.ROWS[file]:
            room = equal_memory.budget_of(row.name) * 1e6
            assert kept.count_bytes(row.preset, (), row.projections, *sizes) <= room, row.name
            assert kept.count_bytes(row.preset, (), row.projections + 1, *sizes) > room, row.name


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
    projected = equal_memory.ROWS["cub200-statistics-memory"][0]
    monkeypatch.setattr(equal_memory, "ROWS", {"cub200-memory": [row, projected]})
    monkeypatch.setattr(equal_memory, "LEAST", {"cub200": {"1nn": ((), 5)}})
    monkeypatch.setattr(equal_memory, "count_bytes", lambda preset, *_: 5 if preset == "cub200-1nn" else 10**6)
    assert equal_memory.check() == []
    monkeypatch.setattr(equal_memory, "count_bytes", lambda *given: 10**6 + (given[2] == 2048))
    assert equal_memory.check() == ["cub200 mas, 1 MB", "cub200 1nn, at least"]
    assert "1.000 MB" in capsys.readouterr().out


# --- what is told of them ---------------------------------------------------------------------------------------------


def record(method: str, budget: int | None, course: list[float], peak: int = 10, orders: int = 3) -> dict:
    """Made-up results; the most is kept before the last task. Without a budget it is a row of the ledger."""
    kept_bytes = [5, peak, *[7] * len(course)]
    tasks = [
        {"task": t, "alpha_all": value, "kept_bytes": {"network": kept_bytes[t] - 2, "class memory": 2}}
        for t, value in enumerate([0.99, *course])
    ]
    named = {"name": f"{method}, {budget} MB"} if budget else {}
    alike = [{"seed": seed, "tasks": tasks} for seed in range(orders)]
    return {"dataset": "cub200", "backbone": "resnet50", "method": method, "orders": alike} | named


def made_up(*more: dict) -> dict:
    MB = 1_000_000
    records = [
        record("ncm", 5, [0.6, 0.5], 4 * MB),
        record("mas", 1, [0.3, 0.2], MB),
        record("mas", 20, [0.8, 0.7], 19 * MB),
        record("mas", 100, [0.75, 0.65], 99 * MB),
        record("hat", 100, [0.9, 0.8], 99 * MB),
        record("whitened", 20, [0.85, 0.75], 12 * MB),
        record("whitened-recency", None, [0.95, 0.95], MB),
    ]
    return {"cub200-memory": {"records": [*records, *more]}}


def lines_of(text: str) -> dict[str, list[str]]:
    return {row[0]: row[1:] for row in ([c.strip() for c in line.strip("|").split("|")] for line in text.splitlines())}


def test_the_table_says_what_does_not_fit_and_what_needs_no_more():
    text = equal_memory.table(made_up())
    found = lines_of(text)
    assert found["Nearest class mean"] == ["not run", "0.550 / 0.500", "as at 5 MB", "as at 5 MB"]
    assert found["MAS"] == ["0.250 / 0.200", "as at 1 MB", "0.750 / 0.700", "as at 20 MB"]  # and not worse with more
    assert found["HAT (told the task)"] == ["not run", "not run", "not run", "0.850 / 0.800"]
    assert found["1-NN"] == ["— (needs 1.64 MB)", "not run", "not run", "not run"]
    named = [line.split("|")[1].strip() for line in text.splitlines()[2:6]]
    assert named == ["HAT (told the task)", "Whitened", "MAS", "Nearest class mean"]  # the best first
    assert "recency" not in text


def test_a_row_of_the_ledger_stands_wherever_it_fits_and_is_better():
    fits = {"cub200-peers": {"records": [record("mas", None, [0.9], 4_000_000), record("ncm", None, [0.4], 900_000)]}}
    found = lines_of(equal_memory.table(made_up() | fits))
    assert found["MAS"] == ["0.250 / 0.200", "0.900 / 0.900", "as at 5 MB", "as at 5 MB"]
    assert found["Nearest class mean"] == ["0.400 / 0.400", "0.550 / 0.500", "as at 5 MB", "as at 5 MB"]


def test_the_files_of_a_data_set_make_one_table():
    apart = {"cub200-whitened-memory": {"records": [record("whitened", 1, [0.95])]}}
    lines = equal_memory.table(made_up() | apart).splitlines()
    assert sum("ResNet-50" in line for line in lines) == 1
    assert next(line for line in lines if "Whitened" in line).startswith("| Whitened | 0.950 / 0.950 |")


def test_the_order_of_the_files_does_not_matter():
    """As `results/*` gives them, or as the rows are listed: the page, and lines over each other in the picture."""
    apart = {
        "cub200-gem-memory": {"records": [record("gem", 5, [0.55], orders=1)]},
        "cub200-joint-memory": {"records": [record("joint", 5, [0.55], orders=1), record("gem", None, [0.6])]},
    }
    given = list((made_up() | apart).items())
    orders = [equal_memory.by_dataset(dict(some)) for some in (given, given[::-1])]
    assert orders[0] == orders[1]
    assert list(map(list, orders[0].values())) == list(map(list, orders[1].values()))
    assert sorted(orders[0]["cub200"]) == ["gem", "hat", "joint", "mas", "ncm", "whitened"]


def test_the_table_says_of_which_methods_there_is_one_class_order_alone():
    assert "on three class orders, and the method's row" in equal_memory.table(made_up())
    one = [record("gem", budget, [0.5], orders=1) for budget in (5, 20)]
    unseen = record("mas", 20, [0.1], orders=1)
    said = equal_memory.table(made_up(*one, unseen, record("fearnet-head", 1, [0.5], orders=1)))
    assert "three class orders, on CUB-200-2011 one of FearNet (our sleeps) and GEM, and the method's row" in said


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
