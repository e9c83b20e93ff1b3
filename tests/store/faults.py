"""A process that runs `engram learn` again and again, in children that it kills, and checks what is left each time.

    faults.py random N FOLDER       kill N times, at random moments
    faults.py writes EVERY FOLDER   kill, then fill the disk, at every EVERY-th call that changes a file

Children are forked, so that everything is imported once. What is left is compared with an undisturbed run. For
`writes` the library made of faulty_disk.c has to be preloaded. Prints what it did as JSON.
"""

import atexit
import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import engram.cli.app
import engram.cli.learn
import engram.store.learn
from engram.files import model_file
from engram.learners.trying import assert_close
from engram.store import Model, ModelStore

sys.path.append(str(Path(__file__).parents[1]))
from toys import paint

BASE, NEW = ("red", "green", "blue"), ("black", "brown", "cyan", "orange")
OFF, COUNT, KILL, FULL = range(4)


def learn(model: Path, folder: Path) -> None:
    """What the children do."""
    how = ["--backbone", "averages", "--set", "kept_bits=64", "--keep", "20", "--quiet"]  # nothing is rounded
    sys.argv = ["engram", "learn", str(model), str(folder), *how]
    engram.cli.main()


def child(model: Path, folder: Path, prepare: Callable[[], None] = lambda: None) -> int:
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            prepare()
            learn(model, folder)
        except SystemExit as end:
            status = int(end.code or 0)
            atexit._run_exitfuncs()
        finally:
            os._exit(status)
    return pid


def wait(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def kill_after(pid: int, seconds: float) -> bool:
    """Whether the child was still there to be killed."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        if os.waitpid(pid, os.WNOHANG)[0]:
            return False
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    return wait(pid) == -signal.SIGKILL


def parts(model: Model) -> Iterator[np.ndarray]:
    """The means and the scatter."""
    sums = model.learner.sums
    yield sums.means
    yield sums.scatter.unpack(np.float64)


class Trial:
    """One model, from where it starts until it knows everything, however often that is interrupted."""

    def __init__(self, folder: Path, reference: dict[int, Path], start: int) -> None:
        self.folder, self.reference = folder, reference
        self.model = folder / "trial" / "m.engram"
        shutil.rmtree(self.model.parent, ignore_errors=True)
        self.model.parent.mkdir()
        self.known = start
        if start:
            shutil.copyfile(reference[start], self.model)

    def check(self) -> int:
        """Compare with the undisturbed run; the number of classes known."""
        if not self.model.exists():
            assert self.known == 0, "the model is gone"
            return 0
        now = ModelStore(self.model, device="cpu").read()
        assert len(now.names) >= self.known, f"{self.known} classes were known, and now {len(now.names)}"
        self.known = len(now.names)
        expected = ModelStore(self.reference[self.known], device="cpu").read()
        assert now.names == expected.names
        assert now.pictures() == expected.pictures()
        for found, wanted in zip(parts(now), parts(expected), strict=True):
            assert_close(found, wanted, "means or scatter", 1e-9)
        assert now.notes.classes.keys() == set(now.names)
        versions = ModelStore(self.model).versions
        for number in versions.numbers():
            model_file.read(versions.path(number))
        return self.known

    def finish(self, *folders: Path) -> None:
        """Run the same command once more, undisturbed."""
        for folder in folders:
            status = wait(child(self.model, folder))
            assert status in (0, 1), status
        assert self.check() == len(BASE) + len(NEW)
        # What a killed process had begun is swept when it is old, and its lock when the model is next changed.
        left = {path.name for path in self.model.parent.iterdir() if path.suffix != ".tmp"}
        assert left <= {"m.engram", "m.engram.versions", ".m.engram.seen", ".m.engram.lock", ".m.engram.holder"}, left


def undisturbed(folder: Path, pictures: Path) -> tuple[dict[int, Path], float]:
    """Every version of a model that nothing happened to, by the number of classes it knows, and the seconds it took."""
    model = folder / "reference" / "m.engram"
    model.parent.mkdir()
    assert wait(child(model, folder / "base")) == 0
    began = time.perf_counter()
    assert wait(child(model, pictures)) == 0
    seconds = time.perf_counter() - began
    versions = ModelStore(model).versions
    paths = [versions.path(number) for number in versions.numbers()] + [model]
    return {len(BASE) + i: path for i, path in enumerate(paths)}, seconds


def at_random(kills: int, folder: Path, pictures: Path) -> dict[str, object]:
    reference, seconds = undisturbed(folder, pictures)
    chance = random.Random(0)
    done, finished, stops = 0, 0, []
    while done < kills:
        trial = Trial(folder, reference, len(BASE))
        while done < kills and trial.known < len(BASE) + len(NEW):
            fresh, began = trial.known == len(BASE), time.perf_counter()
            killed = kill_after(child(trial.model, pictures), chance.uniform(0, 0.8 * seconds))
            if fresh and not killed:  # the machine is less busy than it was
                seconds = time.perf_counter() - began
            done += killed
            stops.append(trial.check())
        trial.finish(pictures)
        finished += 1
    return {"kills": done, "models": finished, "stopped_at": sorted(set(stops))}


def at_writes(every: int, folder: Path, pictures: Path) -> dict[str, object]:
    disk = ctypes.CDLL(None)
    reference, _ = undisturbed(folder, pictures)
    # The first model of all, and the last two classes: all there is to learn is one or the other.
    results: dict[str, object] = {}
    for start, source in ((0, folder / "base"), (len(BASE) + len(NEW) - 2, pictures)):
        tally = Trial(folder, reference, start)
        reader, writer = os.pipe()

        def count(writer: int = writer) -> None:
            disk.faulty_disk(COUNT, 0)
            atexit.register(lambda: os.write(writer, b"%d" % disk.faulty_disk_calls()))

        assert wait(child(tally.model, source, count)) == 0
        calls = int(os.read(reader, 20))
        killed = full = 0
        for mode in (KILL, FULL):
            for n in range(1 + start % every, calls + 1, every):
                trial = Trial(folder, reference, start)
                status = wait(child(trial.model, source, lambda m=mode, n=n: disk.faulty_disk(m, n)))
                killed += status == -signal.SIGKILL
                full += status == 2
                assert status in ((-signal.SIGKILL, 0) if mode == KILL else (0, 2)), status
                trial.check()
                trial.finish(*dict.fromkeys((source, pictures)))
        results[f"from {start}"] = {"calls": calls, "killed": killed, "full": full}
    return results


if __name__ == "__main__":
    what, number, place = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    paint(place / "base", *BASE)
    everything = paint(paint(place / "all", *BASE), *NEW)
    (place / "warm").mkdir()
    with contextlib.suppress(SystemExit):  # all that is imported on the way
        learn(place / "warm" / "m.engram", place / "base")
    campaign = {"random": at_random, "writes": at_writes}[what]
    sys.stdout.write(json.dumps(campaign(number, place, everything)))
