#!/usr/bin/env python3
"""Try as many settings of every method, drawn from the ranges of spaces.py, and choose among them by one rule.

    trials.py cub200 --features FILE --method icarl --method gem --workers 14 --device cuda --out FOLDER
    trials.py cub200 --out FOLDER --best          # the settings chosen, as a preset has them
    trials.py cifar100 --features FILE --wider …  # as many again, and further where a choice lay at an end

Trial 1 is the preset as it is, the others are drawn, the same ones every time. All are measured on base classes alone
(base_split.py). Every trial is written to FOLDER/DATASET-METHOD.json as soon as it ends, one that fails with its
message. Run again with the same FOLDER, it goes on with what is missing or was out of memory.
"""

import argparse
import gc
import hashlib
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from base_split import PARTS, Split, add_arguments, measure, read_features, split_base
from pool import run_jobs
from spaces import SPACES, TRIALS, draw, draw_wider

from engram.bench.presets import Preset, load_preset, preset_for
from engram.bench.protocol import Samples
from engram.bench.results_file import write_json
from engram.paper.device import resolve_device

CLOSE = 0.01  # trials whose accuracy on all classes is this near to the best are as good; new classes then decide

Record = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One job."""

    method: str
    number: int
    settings: dict[str, Any]  # what is changed of the preset
    preset: Preset

    @property
    def config(self) -> Any:
        """Every setting, as it is when it has been read back."""
        return json.loads(json.dumps(asdict(self.preset.config)))


def plan(dataset: str, method: str, trials: int = TRIALS, wider: bool = False) -> list[Trial]:
    """The trials of a method; the wider ones are counted on from the last of the others."""
    name, planned = preset_for(dataset, method), []
    drawn, first = (draw_wider, 1 + trials) if wider else (draw, 1)
    for number, settings in enumerate(drawn(dataset, method, trials), first):
        preset = load_preset(name, [f"{key}={value}" for key, value in settings.items()])
        planned.append(Trial(method, number, settings, preset))
    return planned


def choose(records: Sequence[Record]) -> Record | None:
    """The rule: of the trials within .01 of the best on all classes, the one that knows new classes best.

    What it chose of the first trials stays, unless a wider one is better by more than that, or is at least as good on
    all classes and better on new ones by more than that.
    """
    measured = [record for record in records if "failed" not in record]
    first = best_of([record for record in measured if record["trial"] <= TRIALS])
    wider = [record for record in measured if record["trial"] > TRIALS]
    if first is None or any(record["all"] > first["all"] + CLOSE for record in wider):
        return best_of(measured)
    beside = [record for record in wider if record["all"] >= first["all"] and record["new"] > first["new"] + CLOSE]
    return best_of(beside) or first


def best_of(measured: Sequence[Record]) -> Record | None:
    """Of the trials that are as good as the best on all classes, the best on new ones."""
    best = max((record["all"] for record in measured), default=0.0)
    close = [record for record in measured if record["all"] >= best - CLOSE]
    return max(close, key=lambda record: record["new"], default=None)


# --- in a worker -----------------------------------------------------------------------------------------------------

_loaded: dict[str, Any] = {}


def load(shown: Any, held: Any, device: str) -> None:
    """Put the features where they are used; once for all trials of this worker."""
    where = resolve_device(device)
    samples = [Samples(torch.from_numpy(X).to(where), y) for X, y in (shown, held)]
    _loaded.update(split=Split(*samples), device=device)


def attempt(trial: Trial) -> Record:
    """Run one trial."""
    try:
        found = measure(trial.preset, _loaded["split"], _loaded["device"])
    finally:
        gc.collect()
        torch.cuda.empty_cache()  # other workers want the memory
    return {part: round(found[part], 5) for part in PARTS} | {"seconds": round(found["seconds"], 1)}


# --- in the parent ---------------------------------------------------------------------------------------------------


class Book:
    """The file of one method's trials."""

    def __init__(self, folder: Path, dataset: str, method: str) -> None:
        self.path = folder / f"{dataset}-{method}.json"
        self.content: Record = json.loads(self.path.read_text()) if self.path.exists() else {}

    def begin(self, about: Record, trials: Sequence[Trial]) -> list[Trial]:
        """Keep what is there of these trials, and of those with other numbers; give what is missing."""
        if self.content.get("features", about["features"]) != about["features"]:
            raise SystemExit(f"{self.path} is of other features; choose another --out")
        had = {
            json.dumps(record["config"]): record
            for record in self.content.get("trials", [])
            if "out of memory" not in record.get("failed", "")  # which was the fault of what else was running
        }
        if any(record["trial"] == 1 for record in had.values()):  # the preset as it was; since, it may have changed
            trials = [trial for trial in trials if trial.number > 1]
        wanted, numbers = {json.dumps(trial.config): trial for trial in trials}, {trial.number for trial in trials}
        kept = [had[config] | {"trial": trial.number} for config, trial in wanted.items() if config in had]
        kept += [had[config] for config in had.keys() - wanted.keys() if had[config]["trial"] not in numbers]
        self.content = about | {"trials": sorted(kept, key=lambda record: record["trial"])}
        return [trial for config, trial in wanted.items() if config not in had]

    def add(self, trial: Trial, found: Record) -> None:
        """Write it down at once."""
        record = {"trial": trial.number, "settings": trial.settings, "config": trial.config, **found}
        self.content["trials"] = sorted([*self.content["trials"], record], key=lambda record: record["trial"])
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, self.content)


def describe(arguments: argparse.Namespace, backbone: str, split: Split) -> Record:
    """What the numbers of this run depend on; a record has the revision and the device it was made with."""
    digest = hashlib.sha256(split.shown.X.cpu().numpy().tobytes() + split.held.X.cpu().numpy().tobytes())
    return {"dataset": arguments.dataset, "features": {"backbone": backbone, "sha256": digest.hexdigest()}}


def circumstances(device: str) -> Record:
    """Of every record: made by which code, and where."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        revision = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:
        revision = ""
    where = resolve_device(device)
    name = torch.cuda.get_device_name(where) if where.type == "cuda" else where.type
    return {"git_revision": revision or None, "device": name, "torch": torch.__version__}


def run_trials(arguments: argparse.Namespace) -> int:
    """Run what is missing; how many trials still are."""
    inputs = read_features(arguments)
    split = split_base(inputs.train)
    about, made = describe(arguments, inputs.backbone, split), circumstances(arguments.device)
    books, jobs = {}, []
    for method in sorted(arguments.method, key=list(SPACES).index):  # the slowest first
        books[method] = Book(arguments.out, arguments.dataset, method)
        jobs += books[method].begin(about, plan(arguments.dataset, method, arguments.trials, arguments.wider))
    print(f"{len(jobs)} trials to run", flush=True)
    given = [(part.X.cpu().numpy(), part.y) for part in (split.shown, split.held)]
    del inputs, split
    gc.collect()
    left = len(jobs)
    running = run_jobs(attempt, jobs, arguments.workers, load, (*given, arguments.device), arguments.limit_seconds)
    try:
        for trial, found in running:
            left -= 1
            if isinstance(found, Exception):
                found = {"failed": f"{type(found).__name__}: {found}".strip().splitlines()[0]}
            books[trial.method].add(trial, found | made)
            outcome = found.get("failed") or " ".join(f"{part} {found[part]:.3f}" for part in PARTS)
            took = f"  {found['seconds']:.0f} s" if "seconds" in found else ""
            settings = " ".join(f"{name}={value}" for name, value in trial.settings.items()) or "as the preset is"
            print(f"{arguments.dataset} {trial.method} {trial.number}: {outcome}{took}  {settings}", flush=True)
    except BrokenExecutor:
        print("a worker process ended by itself; run again for what is missing", file=sys.stderr)
    if left:
        print(f"{left} trials not run; run again for them", flush=True)
    return left


def print_best(folder: Path, dataset: str, methods: Sequence[str]) -> None:
    """The settings chosen, as a preset has them."""
    for method in methods:
        records = Book(folder, dataset, method).content.get("trials", [])
        chosen = choose(records)
        if chosen is None:
            continue
        numbers = " / ".join(f"{chosen[part]:.3f}" for part in PARTS)
        print(f"\n# {preset_for(dataset, method)}: trial {chosen['trial']} of {len(records)}, {numbers}")
        for name, value in chosen["settings"].items():
            print(f"{name} = {json.dumps(value)}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--method", action="append", choices=SPACES, metavar="METHOD", help="any number; all if none")
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"of every method, {TRIALS} if not said")
    parser.add_argument("--wider", action="store_true", help="as many again, beside what is recorded")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="then end, whatever is running")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--best", action="store_true", help="run nothing; print what the rule chooses")
    arguments = parser.parse_args()
    arguments.method = arguments.method or list(SPACES)
    if arguments.best:
        print_best(arguments.out, arguments.dataset, arguments.method)
        return 0
    return 1 if run_trials(arguments) else 0


if __name__ == "__main__":
    sys.exit(main())
