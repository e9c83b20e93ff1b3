"""engram merge, and engram learn --statistics, as a person types them."""

from pathlib import Path

import numpy as np
import pytest
from toys import paint

from engram.files import model_file
from engram.store import ModelStore


@pytest.fixture
def two(engram, tmp_path):
    for name, colours, seed in (("garden", ("red", "green"), 0), ("lake", ("red", "blue"), 1)):
        folder = paint(tmp_path / name, *colours, seed=seed)
        assert engram("learn", f"{name}.engram", folder, "--backbone", "averages").code == 0


def test_merge(engram, two, tmp_path):
    done = engram("merge", "out.engram", "garden.engram", "lake.engram")
    assert (done.code, done.out) == (0, "")
    assert "one class of several: red" in done.err
    assert "out.engram knows 3 classes, from 2 models" in done.err
    assert "merged models: 3 classes from" in engram("history", "out.engram").out
    assert engram("predict", "out.engram", tmp_path / "lake" / "blue" / "1-0.png", "--json").json[0]["label"] == "blue"
    again = engram("merge", "out.engram", "garden.engram", "lake.engram")
    assert (again.code, again.err.count("\n")) == (2, 1)
    twice = engram("merge", "out.engram", "out.engram", "lake.engram", "--force", "--json")
    assert twice.json["joined"] == {"blue": 8, "red": 8}
    assert twice.json["learned_twice"][0] == {"name": "blue", "models": ["out.engram", "lake.engram"]}
    assert "learned twice: blue in out.engram and lake.engram" in twice.err
    assert engram("undo", "out.engram", "--yes").err.startswith("undone: merged models")


def test_merge_takes_files_that_are_there(engram, two):
    done = engram("merge", "out.engram", "garden.engram", "nowhere.engram")
    assert (done.code, done.err) == (2, "error: cannot read nowhere.engram: No such file or directory\n")
    assert not ModelStore("out.engram").exists()


# --- engram learn --statistics and --dask -----------------------------------------------------------------------------


def test_statistics_are_counts_means_and_scatter_and_nothing_else(engram, tmp_path):
    folder = paint(tmp_path / "garden", "red", "green", n=12)
    paint(folder, "blue", n=3)
    (folder / "red" / "0-0.png").write_bytes(b"no picture")
    done = engram("learn", "--statistics", "garden.stats", folder, "--min-count", "4", "--backbone", "averages")
    assert done.code == 0
    assert "passed over" in done.err
    assert "not learned: blue: 3 pictures can be read, and --min-count asks for 4" in done.err
    tensors, header = model_file.read("garden.stats")
    assert sorted(tensors) == [
        "classes.counts", "classes.means", "consolidation.newest", "consolidation.samples", "consolidation.scatter",
        "consolidation.unit", "network.unit",
    ]  # fmt: skip
    assert (header["notes"]["classes"], header["notes"]["history"]) == ({}, [])
    assert header["learner"]["labels"] == ["green", "red"]
    assert tensors["classes.counts"].tolist() == [12, 11]
    content = Path("garden.stats").read_bytes()
    assert b".png" not in content
    assert b"garden" not in content
    again = engram("learn", "--statistics", "garden.stats", folder, "--backbone", "averages")
    assert (again.code, again.err.count("\n")) == (2, 1)
    assert "garden.stats exists" in again.err


def test_statistics_merge_into_a_model_as_if_it_had_seen_the_pictures(engram, tmp_path):
    here, there = paint(tmp_path / "here", "red", "green"), paint(tmp_path / "there", "red", "blue", seed=1)
    both = paint(paint(tmp_path / "both", "red", "green"), "red", "blue", seed=1)
    settings = ("--backbone", "averages", "--set", "kept_bits=64")
    assert engram("learn", "m.engram", here, *settings).code == 0
    assert engram("learn", "whole.engram", both, *settings).code == 0
    assert engram("learn", "there.stats", there, "--statistics", *settings[:4]).code == 0
    done = engram("merge", "m.engram", "m.engram", "there.stats", "--force", "--json").json
    assert (done["added"], done["joined"]) == ({"blue": 8}, {"red": 8})
    merged, whole = (ModelStore(path, device="cpu").read() for path in ("m.engram", "whole.engram"))
    assert merged.pictures() == {"green": 8, "red": 16, "blue": 8}
    X = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    values = {label: merged.learner.score(X).values[:, i] for i, label in enumerate(merged.learner.labels)}
    expected = whole.learner.score(X).values
    np.testing.assert_allclose(np.transpose([values[label] for label in whole.learner.labels]), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--statistics", "--dask", "local"), "choose one of --statistics and --dask"),
        (("--min-count", "3"), "--min-count belongs to --statistics, and --block to --dask"),
        (("--block", "3"), "--min-count belongs to --statistics, and --block to --dask"),
        (("--statistics", "--min-count", "9"), "no class to write statistics of; red: 8 pictures can be read"),
        (("--statistics", "--method", "mas"), "models of the method mas cannot be merged"),
    ],
)
def test_options_that_do_not_go_together(engram, tmp_path, options, reason):
    folder = paint(tmp_path / "p", "red")
    if "mas" in options:
        pytest.importorskip("torch")
    done = engram("learn", "m.engram", folder, "--backbone", "averages", *options)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert reason in done.err
    assert not Path("m.engram").exists()


def test_learn_on_a_cluster(engram, tmp_path):
    distributed = pytest.importorskip("distributed")
    folder = paint(tmp_path / "p", "red", "green", n=6)
    (tmp_path / "list.csv").write_text("path,label\n" + "".join(f"p/red/0-{i}.png,rot\n" for i in range(6)))
    workers = {"n_workers": 1, "threads_per_worker": 1, "processes": False}
    with distributed.LocalCluster(**workers, dashboard_address="127.0.0.1:0") as cluster:
        on = ("--dask", cluster.scheduler_address)
        done = engram("learn", "m.engram", folder, "--backbone", "averages", "--block", 4, "--json", *on)
        assert [one["pictures"] for one in done.json["learned"]] == [6, 6]
        assert done.json["workers_lost"] == done.json["blocks_retried"] == 0
        more = engram("learn", "m.engram", "list.csv", *on)
        assert "knows 3 classes, 1 of them new" in more.err
        assert engram("learn", "m.engram", "list.csv", *on).code == 1
    assert "nothing new to learn" in engram("learn", "m.engram", "list.csv").err  # no matter where it was learned
