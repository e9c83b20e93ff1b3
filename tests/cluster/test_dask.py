"""Learning on a Dask cluster: the model that one process makes, whatever happens to the workers."""

import os
import random
import signal
from pathlib import Path

import numpy as np
import pytest
from toys import paint, quick_plan

from engram.cluster import Cluster
from engram.cluster.dask_job import connect
from engram.datasets.folders import class_folders
from engram.images.stream import Encoded
from engram.learners.trying import assert_close
from engram.store import ImageUrl, Model, ModelStore, Plan, Step, examine, learn_classes

distributed, dask = pytest.importorskip("distributed"), pytest.importorskip("dask")
pytestmark = pytest.mark.filterwarnings("ignore")
PLAN = {"settings": {"kept_bits": 32}}


@pytest.fixture(scope="module", autouse=True)
def toys_in_every_process():
    with dask.config.set({"distributed.worker.preload": ["toys"]}):
        yield


@pytest.fixture(scope="module")
def address():
    """Two workers in this process: what a cluster does, without the seconds it takes to start one."""
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with distributed.LocalCluster(**workers, dashboard_address="127.0.0.1:0") as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, list[Path]]:
    return class_folders(paint(tmp_path / "pictures", "red", "green", "blue", "cyan", "white", n=10))


def new(tmp_path: Path, name: str = "m") -> ModelStore:
    return ModelStore(tmp_path / f"{name}.engram", device="cpu")


def assert_same_model(one: Model, other: Model) -> None:
    """Names and counts to the bit, means and scatter to 1e-6."""
    assert one.names == other.names
    assert one.pictures() == other.pictures()
    mine, theirs = ((each.learner.sums.scaled(each.learner.unit), each.learner.sums.samples) for each in (one, other))
    assert mine[1] == theirs[1]
    assert_close(mine[0].means, theirs[0].means, "means", 1e-6)
    assert_close(*(sums.scatter.unpack(np.float64) for sums, _ in (mine, theirs)), "scatter", 1e-6)


def test_the_model_that_one_process_makes(tmp_path, folders, address):
    folders["red"][0].write_bytes(b"no picture")
    steps = []
    report = learn_classes(new(tmp_path), folders, quick_plan(**PLAN), steps.append, cluster=Cluster(address, 4))
    learn_classes(new(tmp_path, "one"), folders, quick_plan(**PLAN))
    assert_same_model(new(tmp_path).read(), new(tmp_path, "one").read())
    assert [(one.name, one.pictures, one.increment) for one in report.learned] == [
        ("blue", 10, 0), ("cyan", 10, 0), ("green", 10, 0), ("red", 9, 0), ("white", 10, 0),
    ]  # fmt: skip
    assert [name for name, _ in report.unreadable] == [str(folders["red"][0])]
    assert (report.workers_lost, report.blocks_retried) == (0, 0)
    looked = [(step.done, step.total) for step in steps if step.stage == "look"]
    assert looked[-1] == (50, 50)
    assert looked == sorted(looked)
    event = new(tmp_path).history()[0]
    assert (event.what, sum(event.pictures.values())) == ("base", 49)
    assert new(tmp_path).read().unknown_above() is not None
    assert not list(tmp_path.glob("*.blocks"))
    again = learn_classes(new(tmp_path), folders, quick_plan(**PLAN))
    assert sorted(again.known) == sorted(folders)


def test_a_few_pictures_are_enough_to_judge_by(tmp_path, folders, address, monkeypatch):
    monkeypatch.setattr("engram.store.learn._MOST_JUDGED", 25)
    learn_classes(new(tmp_path), folders, quick_plan(**PLAN), cluster=Cluster(address))
    health = examine(new(tmp_path).read())
    assert [one.pictures for one in health.classes.values()] == [5] * 5
    assert health.overall() == 1.0
    assert set(new(tmp_path).read().pictures().values()) == {10}


def test_pictures_that_only_the_workers_can_read_are_not_enough(tmp_path, folders, address, monkeypatch):
    nothing = Encoded(np.empty((0, 8), np.float32), np.empty(0, np.intp), [])
    monkeypatch.setattr("engram.store.learn.encode_all", lambda *_, **__: nothing)
    with pytest.raises(ValueError, match="read here"):
        learn_classes(new(tmp_path), folders, quick_plan(**PLAN), cluster=Cluster(address))
    assert not new(tmp_path).exists()


def test_into_a_model_that_knows_something_all_at_once(tmp_path, folders, address):
    first = {name: folders[name] for name in ("red", "green")}
    more = {"red": sorted((paint(tmp_path / "more", "red", n=6, seed=3) / "red").iterdir())}
    for name in ("m", "one"):
        learn_classes(new(tmp_path, name), first, quick_plan(**PLAN))
    plan = quick_plan(**PLAN, more=True)
    rest = {**folders, **more}
    report = learn_classes(new(tmp_path), rest, plan, cluster=Cluster(address, 5))
    learn_classes(new(tmp_path, "one"), rest, plan)
    assert_same_model(new(tmp_path).read(), new(tmp_path, "one").read())
    assert report.known == ["green"]
    assert [event.what for event in new(tmp_path).history()] == ["base", "learn"]
    assert new(tmp_path).undo().what == "learn"
    assert new(tmp_path).read().names == ["green", "red"]
    before = new(tmp_path).path.read_bytes()
    nothing = learn_classes(new(tmp_path), {"green": folders["green"]}, quick_plan(), cluster=Cluster(address))
    assert (nothing.learned, nothing.known) == ([], ["green"])
    gone = learn_classes(
        new(tmp_path), {"heron": [tmp_path / "list.txt"], "egret": []}, _touch(tmp_path), cluster=Cluster(address)
    )
    assert [name for name, _ in gone.skipped] == ["egret", "heron"]
    assert new(tmp_path).path.read_bytes() == before


def _touch(tmp_path: Path) -> Plan:
    (tmp_path / "list.txt").write_text("no picture")
    return quick_plan()


def test_what_is_done_is_not_done_again_after_a_failure(tmp_path, folders, address, monkeypatch):
    def commit(*_: object, **__: object) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(ModelStore, "commit", commit)
        with pytest.raises(OSError, match="disk is full"):
            learn_classes(new(tmp_path), folders, quick_plan(**PLAN), cluster=Cluster(address, 9))
    kept = sorted((tmp_path / "m.engram.blocks").iterdir())
    assert len(kept) == 6
    assert not new(tmp_path).exists()
    times = [path.stat().st_mtime_ns for path in kept]
    with monkeypatch.context() as patched:
        patched.setattr("engram.store.learn.shutil.rmtree", lambda *_, **__: None)
        learn_classes(new(tmp_path), folders, quick_plan(**PLAN), cluster=Cluster(address, 9))
    assert [path.stat().st_mtime_ns for path in kept] == times
    assert set(new(tmp_path).read().pictures().values()) == {10}


def test_addresses_instead_of_files(tmp_path, folders, address):
    urls = {name: [ImageUrl(f"file://{path}") for path in paths] for name, paths in folders.items()}
    report = learn_classes(new(tmp_path), urls, quick_plan(), cluster=Cluster(address))
    assert [one.pictures for one in report.learned] == [10] * 5
    assert learn_classes(new(tmp_path), urls, quick_plan(), cluster=Cluster(address)).known == sorted(folders)


def test_what_cannot_work_is_said_at_once_and_changes_nothing(tmp_path, folders, address, monkeypatch):
    refused = [
        (quick_plan(), "tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9; start one"),
        (quick_plan(), "nonsense://x", "no Dask scheduler answers at nonsense://x"),
        (quick_plan(), "local:0", "local or local:N, not 'local:0'"),
        (quick_plan(), "local:many", "local or local:N, not 'local:many'"),
    ]
    monkeypatch.setattr("engram.cluster.dask_job.PATIENCE", 0.5)
    for plan, where, reason in refused:
        with pytest.raises(ValueError, match=reason):
            learn_classes(new(tmp_path), folders, plan, cluster=Cluster(where))
    idle = distributed.LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0")
    with idle, pytest.raises(ValueError, match="has no workers; start some with dask worker"):
        learn_classes(new(tmp_path), folders, quick_plan(), cluster=Cluster(idle.scheduler_address))
    with pytest.raises(ValueError, match="at least one class, and found 0"):
        learn_classes(new(tmp_path), {"a": [tmp_path / "list.txt"]}, _touch(tmp_path), cluster=Cluster(address))
    assert not new(tmp_path).exists()
    monkeypatch.setattr("engram.cluster.dask_job.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=r"pip install 'engram-learn\[dask\]'"), connect("local"):
        pass


def test_a_method_whose_parts_do_not_add_up_is_refused(trained, tmp_path, folders, address):
    with pytest.raises(ValueError, match="cannot be merged"):
        learn_classes(new(tmp_path), folders, quick_plan(**trained), cluster=Cluster(address))
    assert not new(tmp_path).exists()


def test_workers_killed_three_times_at_random_moments(tmp_path):
    """Two processes; each kill takes the worker with all it was at and had done. None is counted twice."""
    folders = class_folders(paint(tmp_path / "pictures", "red", "green", "blue", "cyan", n=30))
    chance = random.Random(0)
    moments, killed = [*sorted(chance.sample(range(8, 90), 3)), np.inf], list[int]()
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs="CRITICAL", memory_limit=0
    ) as cluster:

        def kill(step: Step) -> None:
            pids = [nanny.process.pid for nanny in cluster.workers.values() if nanny.process]
            if step.done >= moments[0] and (alive := [pid for pid in pids if pid and pid not in killed]):
                killed.append(chance.choice(alive))
                os.kill(killed[-1], signal.SIGKILL)
                moments.pop(0)

        report = learn_classes(
            new(tmp_path), folders, quick_plan(**PLAN), kill, cluster=Cluster(cluster.scheduler_address, 3)
        )
    assert len(killed) == 3
    assert 1 <= report.workers_lost <= 3  # one that is killed before it has reported for work is not missed
    assert report.blocks_retried >= 1
    learn_classes(new(tmp_path, "one"), folders, quick_plan(**PLAN))
    assert_same_model(new(tmp_path).read(), new(tmp_path, "one").read())


def test_as_many_processes_as_asked_for():
    with connect("local:1") as client:
        assert list(client.nthreads().values()) == [1]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_processes_on_this_machine(tmp_path, folders, workers):
    learn_classes(new(tmp_path), folders, quick_plan(**PLAN), cluster=Cluster(f"local:{workers}", 4))
    learn_classes(new(tmp_path, "one"), folders, quick_plan(**PLAN))
    assert_same_model(new(tmp_path).read(), new(tmp_path, "one").read())
