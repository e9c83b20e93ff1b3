#!/usr/bin/env python3
"""Make deliberate mistakes in a copy of the source, one at a time, and see that the tests that must notice do.

    mutants.py [--only NAME ...] [--jobs N]

The mistakes are in mutants.toml. Prints a line for each; fails if one survives, or can no longer be made.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KILLED = "killed by "


@dataclass(frozen=True)
class Mutant:
    """One mistake, and the tests one of which has to fail with it."""

    name: str
    means: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def apply(self, source: Path) -> None:
        path = source / "engram" / self.file
        text = path.read_text()
        if (found := text.count(self.old)) != 1 or self.old == self.new:
            raise ValueError(f"{self.file} has the text {found} times, and not once: {self.old!r}")
        path.write_text(text.replace(self.old, self.new))


def load(path: Path = ROOT / "benchmarks" / "mutants.toml") -> list[Mutant]:
    groups = tomllib.loads(path.read_text())["mutants"]
    mutants = [
        Mutant(name, means, group["file"], old, new, tuple(f"tests/{test}" for test in group["tests"]))
        for group in groups
        for name, means, old, new in group["changes"]
    ]
    names = [mutant.name for mutant in mutants]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"names that stand for two mistakes: {', '.join(sorted(twice))}")
    return mutants


def judge(mutant: Mutant, root: Path = ROOT) -> str:
    """What became of it: killed by which test, survived, or why that cannot be said."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        source = copy_source(root, Path(folder))
        try:
            mutant.apply(source)
        except ValueError as error:
            return f"does not apply: {error}"
        process = run_tests(mutant.tests, root, source)
    failed = [line.removeprefix("FAILED ") for line in process.stdout.splitlines() if line.startswith("FAILED ")]
    if process.returncode == 1 and failed:
        return KILLED + failed[0]
    # Anything but a test that failed, such as one that is no longer there, says nothing about the mistake.
    return f"cannot be tested:\n{process.stdout}{process.stderr}" if process.returncode else "SURVIVED"


def copy_source(root: Path, folder: Path) -> Path:
    return shutil.copytree(root / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))


def run_tests(tests: tuple[str, ...], root: Path, source: Path) -> subprocess.CompletedProcess[str]:
    """The tests of `root` with the package of `source`."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # they take longer to load than most of these tests to run
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "200",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(source.parent / "hypothesis"),
    }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "pytest_timeout", *tests]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)


def check_unchanged(mutants: list[Mutant], root: Path = ROOT) -> str | None:
    """Without a mistake all the tests have to pass, on the copy; else why they cannot tell."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        source = copy_source(root, Path(folder))
        process = run_tests(tuple(sorted({test for mutant in mutants for test in mutant.tests})), root, source)
        if process.returncode:
            return f"the tests fail without any mistake:\n{process.stdout}{process.stderr}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mistakes alone")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="so many at a time")
    options = parser.parse_args()
    mutants = load()
    if unknown := set(options.only or ()) - {mutant.name for mutant in mutants}:
        parser.error(f"no mistake is called {', '.join(sorted(unknown))}")
    mutants = [mutant for mutant in mutants if not options.only or mutant.name in options.only]
    started = time.perf_counter()
    if failure := check_unchanged(mutants):
        print(failure)
        return 1
    killed = 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, verdict in zip(mutants, pool.map(judge, mutants), strict=True):
            print(f"{mutant.name}: {mutant.means}: {verdict}", flush=True)
            killed += verdict.startswith(KILLED)
    print(f"{killed} of {len(mutants)} killed, in {time.perf_counter() - started:.0f} s")
    return 0 if killed == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
