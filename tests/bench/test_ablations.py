"""The rows that change one thing of the paper's method do change it, and nothing else; and what is told of them."""

import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from engram.bench.presets import load_preset
from engram.methods.prototypes import Prototypes, PrototypesConfig
from engram.nn.outliers import inliers
from engram.testing import blobs

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

ablations = pytest.importorskip("ablations")

SMALL = {"layers": (16, 8), "base_epochs": 8, "increment_epochs": 4, "base_rate": 1e-2, "feature_rms": 1.0}


def learner(**changes) -> Prototypes:
    return Prototypes(PrototypesConfig(**SMALL | {"center_rate": 1e-2} | changes), seed=3, device="cpu")


def outlying() -> tuple[np.ndarray, list[str]]:
    X, y = blobs(["a", "b"], seed=5)
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


@pytest.mark.parametrize("file", ablations.ROWS)
def test_a_row_changes_one_thing_of_the_published_one(file):
    rows = ablations.ROWS[file]
    assert rows[0].name == "as published"
    assert not rows[0].settings
    assert len({row.name for row in rows}) == len({(row.settings, row.base) for row in rows}) == len(rows)
    published = asdict(load_preset(rows[0].preset).config)
    for row in rows:
        assert (row.preset, row.features, row.orders, row.seeds) == (rows[0].preset, rows[0].features, 3, 1)
        assert file == f"{row.features}-ablations"
        changed = {k for k, v in asdict(load_preset(row.preset, row.settings).config).items() if v != published[k]}
        lof = {"outlier_exclusion", "center_epochs", "lof_neighbours"}
        assert len(changed - lof) + bool(changed & lof) + bool(row.base) == (row.name != "as published"), row.name


def test_the_length_of_the_additional_training_is_that_of_the_row_with_lof():
    for rows in ablations.ROWS.values():
        named = {row.name: load_preset(row.preset, row.settings).config for row in rows}
        wanted = load_preset(rows[0].preset + "-lof").config.center_epochs
        assert {named[name].center_epochs for name in ("L_add alone", "LOF + L_add")} == {wanted}
        assert (named["LOF alone"].center_epochs, named["LOF alone"].lof_neighbours) == (0, 20)
        assert [named[name].lof_neighbours for name in ("L_add alone", "LOF + L_add")] == [0, 20]


def test_the_expensive_features_have_few_rows():
    vgg = ablations.ROWS["cifar100-vgg16-ablations"]
    assert all(row.base is None and not row.name.startswith("code") for row in vgg)
    others = [row for file, rows in ablations.ROWS.items() if "vgg" not in file for row in rows]
    assert {row.base for row in others} == {None, 10, 25, 75, 20, 50, 150}


# --- what is told of them ---------------------------------------------------------------------------------------------


def record(name: str, alphas: dict[int, list[float]], new: float) -> dict:
    """Made-up results: by class order, α_all after every task, and one α_new."""
    orders = []
    for seed, course in alphas.items():
        tasks = [{"task": t, "alpha_all": value, "alpha_new": new} for t, value in enumerate(course)]
        orders.append({"seed": seed, "tasks": tasks})
    return {"dataset": "cub200", "backbone": "resnet50:pooled,stride", "name": name, "orders": orders}


def made_up() -> dict:
    records = [
        record("as published", {0: [0.9, 0.6, 0.5], 1: [0.9, 0.8, 0.6]}, 0.5),
        record("frozen encoder", {0: [0.9, 0.7, 0.6], 1: [0.9, 0.6, 0.5]}, 0.25),
        record("λ_reg = 0", {1: [0.1, 0.5, 0.3]}, 0.75),
    ]
    return {"cub200-resnet50-ablations": {"records": records}}


def test_differences_are_within_a_class_order_and_over_increments_alone():
    found = ablations.differences(made_up()["cub200-resnet50-ablations"])
    assert list(found) == ["frozen encoder", "λ_reg = 0"]
    assert found["frozen encoder"]["alpha_all"] == pytest.approx([0.1, -0.15])
    assert found["frozen encoder"]["alpha_new"] == pytest.approx([-0.25, -0.25])
    assert found["λ_reg = 0"]["alpha_all"] == pytest.approx([-0.3])


def test_the_table_has_the_published_row_first_and_a_dash_for_what_was_not_run():
    results = made_up()
    fewer = {"records": results["cub200-resnet50-ablations"]["records"][:2]}
    text = ablations.table(results | {"another": fewer})
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()[2:5]]
    assert lines[0] == ["as published", "0.625", "0.500", "0.625", "0.500"]
    assert lines[1][:3] == ["frozen encoder", "−0.025 (−0.150 to +0.100)", "−0.250 (−0.250 to −0.250)"]
    assert lines[2] == ["λ_reg = 0", "−0.300", "+0.250", "–", "–"]
    assert "CUB-200-2011, resnet50: α_all" in text.splitlines()[0]


def test_the_picture_has_a_panel_for_every_file(tmp_path):
    pytest.importorskip("matplotlib")
    widths = []
    for number in (1, 2):
        results = {f"{i}": made_up()["cub200-resnet50-ablations"] for i in range(number)}
        ablations.picture(results, tmp_path / "made.png")
        widths.append(Image.open(tmp_path / "made.png").width)
    assert widths[1] > 1.8 * widths[0]
