"""Killed processes, and several at once."""

import os
import signal
import time

import filling
import numpy as np
import pytest

from engram.bench.cache import FeatureCache
from engram.bench.cache_file import open_cache_file

pytestmark = pytest.mark.skipif(os.name != "posix", reason="kills processes the POSIX way")

ROWS, N, NAP = 16, 600, 0.01


@pytest.fixture
def begin(processes, tmp_path):
    """Start processes that fill a cache, and return when all are about to begin."""

    def start(root, *orders, nap=NAP, log="log"):
        barrier = processes.Barrier(len(orders) + 1)
        arguments = [(root, order, ROWS, nap, tmp_path / log, barrier) for order in orders]
        running = [processes.Process(target=filling.fill, args=each) for each in arguments]
        for process in running:
            process.start()
        barrier.wait(60)
        return running

    return start


def finished(store):
    """Return what each whole file holds, and proof that it is the same file."""
    return {path: (path.stat().st_mtime_ns, open_cache_file(path).keys()) for path in store.root.rglob("*.safetensors")}


def test_killed_five_times_at_random_moments(begin, tmp_path, pictures, fake, expected):
    paths, log = pictures(N), tmp_path / "log"
    store = FeatureCache(tmp_path / "killed")
    rng = np.random.default_rng(int.from_bytes(os.urandom(4)))
    kills = []
    before: dict = {}
    for _ in range(5):
        (process,) = begin(store.root, paths)
        kills.append(rng.uniform(0.05, 0.25))
        time.sleep(kills[-1])
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        after = finished(store)
        assert before.items() <= after.items(), kills  # nothing that was finished went away or was written again
        before = after
    (process,) = begin(store.root, paths)
    process.join()
    assert process.exitcode == 0
    after = finished(store)
    assert before.items() <= after.items()
    keys = [key for _, file_keys in after.values() for key in file_keys]
    assert len(keys) == len(set(keys)) == N, kills  # nothing that was finished was computed again
    lost = log.stat().st_size - N
    assert 0 <= lost <= 5 * (ROWS + 8 * 4), kills  # a file that was not full, and the batches under way

    encoder = fake()
    found = store.features(paths, encoder)
    assert encoder.seen == 0
    undisturbed = FeatureCache(tmp_path / "undisturbed").features(paths, fake(batch=4))
    np.testing.assert_array_equal(found.values, undisturbed.values)
    np.testing.assert_allclose(found.values, expected(paths), rtol=1e-6)


def test_two_processes_at_once(begin, tmp_path, pictures, fake, expected):
    paths = pictures(100)
    store = FeatureCache(tmp_path / "shared")
    half = len(paths) // 2
    # In two orders, so that they finish files of different content.
    for process in begin(store.root, paths, paths[half:] + paths[:half], nap=0.002):
        process.join()
        assert process.exitcode == 0
    encoder = fake()
    np.testing.assert_allclose(store.features(paths, encoder).values, expected(paths), rtol=1e-6)
    assert encoder.seen == 0
    assert store.entries()[0].count == 100  # kept twice perhaps, counted once
    assert not list(store.root.rglob(".*.tmp"))
