"""The rows that change one thing of the paper's method do change it, and nothing else; and what is told of them."""

import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from engram.bench.presets import load_preset
from engram.learners.trying import blobs
from engram.paper.outliers import inliers
from engram.paper.prototypes import Prototypes, PrototypesConfig

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

ablations = pytest.importorskip("ablations")

SMALL = {"layers": (16, 8), "base_epochs": 8, "increment_epochs": 4, "base_rate": 1e-2, "feature_rms": 1.0}


def learner(**changes) -> Prototypes:
    return Prototypes(PrototypesConfig(**SMALL | {"center_rate": 1e-2} | changes), seed=3, device="cpu")


def outlying() -> tuple[np.ndarray, list[str]]:
    X, y = blobs(["a", "b"], seed=5)
    X = X.astype(np.float64)
    X[0] += 60
    return X, y


# --- what the settings of the rows do ---------------------------------------------------------------------------------


def test_without_epochs_an_increment_adds_a_mean_and_moves_nothing():
    made = learner(increment_epochs=0)
    made.learn(*blobs(["a", "b"]))
    before = dict(made.tensors)
    X, y = blobs(["c"])
    made.learn(X, y)
    for name, tensor in before.items():
        if name.startswith(("network.", "consolidation.")):
            assert torch.equal(made.tensors[name], tensor), name
    assert torch.equal(made.tensors["classes.means"][:2], before["classes.means"])
    mean = made.encode(torch.from_numpy(X).float()).mean(dim=0)
    torch.testing.assert_close(made.tensors["classes.means"][2], mean)


def test_lof_alone_moves_the_means_and_not_the_encoder():
    X, y = outlying()
    plain, alone = learner(), learner(outlier_exclusion=True, center_epochs=0)
    for each in (plain, alone):
        each.learn(X, y)
    same = [name for name in plain.tensors if torch.equal(plain.tensors[name], alone.tensors[name])]
    assert sorted(set(plain.tensors) - set(same)) == ["classes.counts", "classes.means"]


def test_additional_training_alone_drops_nothing_and_moves_the_encoder():
    X, y = outlying()
    plain, alone = learner(), learner(outlier_exclusion=True, lof_neighbours=0, center_epochs=3)
    for each in (plain, alone):
        each.learn(X, y)
    assert not inliers(plain.encode(torch.from_numpy(X).float()), torch.tensor([0] * 24 + [1] * 24), 20).all()
    for name in ("classes.means", "classes.counts"):
        assert torch.equal(plain.tensors[name], alone.tensors[name])
    moved = "network.encoder.0.weight"
    assert not torch.equal(plain.tensors[moved], alone.tensors[moved])


def test_neighbours_below_none_are_refused():
    with pytest.raises(ValueError, match="lof_neighbours must be a number of at least 0, not -1"):
        learner(lof_neighbours=-1)


# --- the rows ---------------------------------------------------------------------------------------------------------


BY_FEATURES: dict[str, list] = {}
for rows in ablations.ROWS.values():
    BY_FEATURES.setdefault(rows[0].features, []).extend(rows)


def test_a_file_is_called_after_its_features():
    for file, rows in ablations.ROWS.items():
        assert file.endswith("-ablations")
        assert all(file.startswith(f"{row.features}-") for row in rows)


@pytest.mark.parametrize("features", BY_FEATURES)
def test_a_row_changes_one_thing_of_the_published_one(features):
    rows = BY_FEATURES[features]
    assert rows[0].name == "as published"
    assert not rows[0].settings
    assert len({row.name for row in rows}) == len({(row.settings, row.base) for row in rows}) == len(rows)
    published = asdict(load_preset(rows[0].preset).config)
    for row in rows:
        assert (row.preset, row.features, row.orders, row.seeds) == (rows[0].preset, features, 3, 1)
        changed = {k for k, v in asdict(load_preset(row.preset, row.settings).config).items() if v != published[k]}
        lof = {"outlier_exclusion", "center_epochs", "lof_neighbours"}
        assert len(changed - lof) + bool(changed & lof) + bool(row.base) == (row.name != "as published"), row.name


@pytest.mark.parametrize("features", BY_FEATURES)
def test_the_length_of_the_additional_training_is_that_of_the_row_with_lof(features):
    rows = BY_FEATURES[features]
    named = {row.name: load_preset(row.preset, row.settings).config for row in rows}
    wanted = load_preset(rows[0].preset + "-lof").config.center_epochs
    assert {named[name].center_epochs for name in ("L_add alone", "LOF + L_add")} == {wanted}
    assert (named["LOF alone"].center_epochs, named["LOF alone"].lof_neighbours) == (0, 20)
    assert [named[name].lof_neighbours for name in ("L_add alone", "LOF + L_add")] == [0, 20]


@pytest.mark.parametrize("features", BY_FEATURES)
def test_every_features_have_codes_of_256_to_4096_and_bases_of_a_tenth_to_three_quarters(features):
    rows = BY_FEATURES[features]
    configs = [load_preset(row.preset, row.settings).config for row in rows]
    assert {256, 512, 1024, 2048, 4096} == {config.layers[-1] for config in configs}
    assert len({config.layers[:-1] for config in configs}) == 1
    classes = 200 if "cub200" in features else 100
    assert {row.base for row in rows} == {None, *(int(classes * share) for share in (0.1, 0.25, 0.75))}


# --- what is told of them ---------------------------------------------------------------------------------------------


def record(name: str, alphas: dict[int, list[float]], new: float, dataset: str = "cub200") -> dict:
    """Made-up results: by class order, α_all after every task, and one α_new."""
    orders = []
    for seed, course in alphas.items():
        tasks = [{"task": t, "alpha_all": value, "alpha_new": new} for t, value in enumerate(course)]
        orders.append({"seed": seed, "tasks": tasks})
    return {"dataset": dataset, "backbone": "resnet50:pooled,stride", "name": name, "orders": orders}


def made_up(dataset: str = "cub200") -> dict:
    records = [
        record("as published", {0: [0.9, 0.6, 0.5], 1: [0.9, 0.8, 0.6]}, 0.5, dataset),
        record("frozen encoder", {0: [0.9, 0.7, 0.6], 1: [0.9, 0.6, 0.5]}, 0.25, dataset),
        record("λ_reg = 0", {1: [0.1, 0.5, 0.3]}, 0.75, dataset),
    ]
    return {f"{dataset}-resnet50-ablations": {"records": records}}


def test_differences_are_within_a_class_order_and_over_increments_alone():
    found = ablations.differences(made_up()["cub200-resnet50-ablations"]["records"])
    assert list(found) == ["frozen encoder", "λ_reg = 0"]
    assert found["frozen encoder"]["alpha_all"] == pytest.approx([0.1, -0.15])
    assert found["frozen encoder"]["alpha_new"] == pytest.approx([-0.25, -0.25])
    assert found["λ_reg = 0"]["alpha_all"] == pytest.approx([-0.3])


def test_another_base_is_compared_where_both_know_as_many_classes():
    published = record("as published", {0: [0.9, 0.6, 0.5]}, 0.5)
    sooner, later = record("sooner", {0: [0.9, 0.8, 0.7, 0.6, 0.4]}, 0.5), record("later", {0: [0.7, 0.52]}, 0.5)
    found = ablations.differences([published, sooner, later])
    assert found["sooner"]["alpha_all"] == pytest.approx([(0.6 + 0.4) / 2 - (0.6 + 0.5) / 2])
    assert found["later"]["alpha_all"] == pytest.approx([0.02])


def test_the_table_has_the_published_row_first_and_a_dash_for_what_was_not_run():
    results = made_up()
    fewer = {"records": made_up("cifar100")["cifar100-resnet50-ablations"]["records"][:2]}
    text = ablations.table(results | {"another": fewer})
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:5]]
    assert lines[0] == ["as published", "0.625", "0.500", "0.625", "0.500"]
    assert lines[1][:3] == ["frozen encoder", "−0.025 (−0.150 to +0.100)", "−0.250 (−0.250 to −0.250)"]
    assert lines[2] == ["λ_reg = 0", "−0.300", "+0.250", "–", "–"]
    assert "CUB-200-2011, resnet50: α_all" in text.splitlines()[0]


def test_a_second_file_on_the_same_features_is_compared_with_the_first():
    whole = made_up()
    records = whole["cub200-resnet50-ablations"]["records"]
    apart = {"a-ablations": {"records": records[:2]}, "a-sizes-ablations": {"records": records[2:]}}
    assert ablations.table(apart) == ablations.table(whole)


def test_the_picture_has_a_panel_for_all_features(tmp_path):
    pytest.importorskip("matplotlib")
    one, other = made_up(), made_up("cifar100")
    again = {"cub200-sizes-ablations": {"records": [record("code of 256", {0: [0.9, 0.6, 0.5]}, 0.5)]}}
    widths = []
    for results in (one, one | again, one | other):
        ablations.picture(results, tmp_path / "made.png")
        widths.append(Image.open(tmp_path / "made.png").width)
    assert widths[1] < 1.2 * widths[0]
    assert widths[2] > 1.8 * widths[0]
