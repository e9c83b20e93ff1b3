#!/usr/bin/env python3
"""Run the ledger: every row of benchmarks/rows.py, from pictures to results files.

    make reproduce DATA=data WEIGHTS=weights                 # everything; hours on a GPU
    make reproduce DATA=data WEIGHTS=weights ONLY='cub200-*' # the results files whose names fit

A row on one class order with one initialisation is a job; jobs run side by side, and what has ended is not run again,
so that a stopped run goes on. A results file is written when all its rows have ended, all of one revision: a working
copy with changes is refused, since its numbers could not be made again. Which revision, features, weights and
environment they are of is written by this script alone.
"""

import argparse
import fnmatch
import functools
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import ablations
import equal_memory
import finished
import numpy as np
import torch
from pool import run_jobs
from reproduction import PAGES, TABLES
from rows import FEATURES, LEDGER, Row

from engram.bench.inputs import Inputs, export_features, import_features, load_features
from engram.bench.presets import Preset, load_preset
from engram.bench.protocol import Samples
from engram.bench.results_file import read_results, write_json, write_results
from engram.bench.runner import Bench, about, git_revision, make_record, measure_ideal, run_course
from engram.stats import projection

ROOT = Path(__file__).resolve().parents[1]
GROUPS = LEDGER | ablations.ROWS | equal_memory.ROWS
MADE = [f":!{path.relative_to(ROOT)}" for path in (*PAGES, TABLES)]  # from results: no reason to refuse the next run
# Their steps move all weights of large networks: matrix products in TF32, which changes no mean of Ψ by more than .004.
TF32 = ("mas", "si", "mas-lof", "si-lof", "whitened-encoder")

# A job is (features, row, class order, initialisation); row None measures α_ideal.
Job = tuple[str, Row | None, int, int]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="where the data sets are")
    parser.add_argument("--weights", type=Path, required=True, metavar="DIR", help="where the backbones' files are")
    parser.add_argument(
        "--only", default="*", metavar="NAMES", help="results files to make, like 'cub200-*,cifar100-vgg16'"
    )
    parser.add_argument("--results", type=Path, default=ROOT / "results", metavar="DIR")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build" / "reproduce", metavar="DIR", help="unfinished work"
    )
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 1) - 2))
    parser.add_argument("--device", default="auto")
    parser.add_argument("--limit-seconds", type=float, default=float("inf"), help="stop then; the next run goes on")
    parser.add_argument(
        "--keep", type=Path, metavar="FILE.tar.gz", help="finished courses: read at the start, written after each"
    )
    asked = parser.parse_args()
    began = time.monotonic()
    try:
        revision = clean_revision()
        wanted = {name: rows for name, rows in GROUPS.items() if fits(name, asked.only)}
        if not wanted:
            raise ValueError(f"no results file is called {asked.only}; there are {', '.join(GROUPS)}")
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    work = asked.work / revision[:12]
    if asked.keep:
        finished.unpack(asked.keep, asked.work)
    keys = list(dict.fromkeys(row.features for rows in wanted.values() for row in rows))
    known = {key: make_features(key, asked) for key in keys}
    for key in keys:
        share_ideal(key, known[key]["backbone"], wanted, asked.results, work)
    setup = (asked.work, work, asked.device)
    devices: dict[str, str] = {}
    missing = {name: {job for row in rows for job in jobs_of(row)} for name, rows in wanted.items()}

    def ended(job: Job) -> None:
        """Write a results file as soon as its last job has ended: whoever stops this early keeps what is whole."""
        if asked.keep:
            finished.pack(asked.keep, asked.work, work.name)
        for name in [name for name, jobs in missing.items() if jobs == {job}]:
            assemble(name, wanted[name], known, asked, work, devices)
            print(f"{asked.results / name}.json", flush=True)
            del missing[name]
        for jobs in missing.values():
            jobs.discard(job)

    todo = in_order(wanted, known)
    for workers in (asked.workers, max(1, asked.workers // 4)):  # what finds no room beside many, may beside few
        left = asked.limit_seconds - (time.monotonic() - began)
        todo = run_all(todo, workers, setup, devices, left, ended) if todo else []
    for name in missing:
        print(f"{name}: not all rows have ended; run the same command again", file=sys.stderr)
    return 1 if missing else 0


def run_all(jobs: list[Job], workers: int, setup: tuple, devices: dict, seconds: float, ended: Callable) -> list[Job]:
    """Run them side by side and tell of each; those that found no memory, to be run again."""
    crowded, began = [], time.monotonic()
    for number, (job, answer) in enumerate(run_jobs(run_job, jobs, workers, set_up, setup, seconds), 1):
        if isinstance(answer, Exception):
            crowded += [job] * ("out of memory" in str(answer))
            said = f"failed, {answer!r}"
        else:
            took, devices[job[0]] = answer
            said = f"{took:.1f} s"
        print(f"{time.monotonic() - began:7.1f} s  {number}/{len(jobs)}  {title(job)}: {said}", flush=True)
        if not isinstance(answer, Exception):
            ended(job)
    return crowded


def clean_revision() -> str:
    """The commit that this working copy is of, if it has no changes of its own but results and what is made of them."""
    command = ["git", "status", "--porcelain", "--", ".", ":!results", *MADE]
    changed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    revision = git_revision()
    if changed.returncode or revision is None:
        raise ValueError("this is no git working copy, so nobody could say which revision the numbers are of")
    if changed.stdout:
        raise ValueError(f"the working copy has changes; commit or stash them first:\n{changed.stdout.rstrip()}")
    return revision


def fits(name: str, patterns: str) -> bool:
    """Whether a results file was asked for."""
    return any(fnmatch.fnmatchcase(name, pattern.strip()) for pattern in patterns.split(","))


def make_features(key: str, asked: argparse.Namespace) -> dict:
    """Features as a file for the workers; what is known of them, their hash and labels, in another beside it."""
    path, facts = asked.work / "features" / f"{key}.safetensors", asked.work / "features" / f"{key}.json"
    before = json.loads(facts.read_text()) if facts.exists() else None
    if before and path.exists():
        return before
    source = FEATURES[key]
    weights = asked.weights / source.weights
    inputs = load_features(
        source.dataset,
        asked.data,
        backbone=source.backbone,
        weights=weights,
        cache=asked.work / "cache",
        device=asked.device,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    export_features(path, source.dataset, inputs)
    content = {
        "dataset": source.dataset,
        "backbone": inputs.backbone,
        "features_sha256": hash_of(inputs.train, inputs.test),
        "weights_sha256": hashlib.sha256(weights.read_bytes()).hexdigest(),
        "labels": {"train": inputs.train.y.tolist(), "test": inputs.test.y.tolist()},
    }
    if before and before["features_sha256"] != content["features_sha256"]:
        raise ValueError(f"the features {key} are not those that the finished courses were run on")
    write_json(facts, content)
    print(f"features {key}: {len(inputs.train.y):,} and {len(inputs.test.y):,}", flush=True)
    return content


def share_ideal(key: str, backbone: str, wanted: dict[str, list[Row]], results: Path, work: Path) -> None:
    """Rows of one feature set share one α_ideal: that of a results file, unless the file is to be made again now."""
    path = work / key / "state" / "ideal.json"
    there = [name for name, rows in LEDGER.items() if rows[0].features == key and name not in wanted]
    for file in [results / f"{name}.json" for name in there]:
        if file.exists() and not path.exists():
            record = read_results(file)["records"][0]
            if record["backbone"] == backbone:
                write_json(path, {"backbone": backbone, **record["alpha_ideal"]})


def hash_of(*parts: Samples) -> str:
    """Of all numbers and all labels, in their order."""
    digest = hashlib.sha256()
    for samples in parts:
        digest.update(np.ascontiguousarray(samples.X.cpu().numpy()))
        digest.update("\n".join(map(str, samples.y.tolist())).encode())
    return digest.hexdigest()


def jobs_of(row: Row) -> list[Job]:
    """α_ideal of the features, and every class order with every initialisation; name and counts are not a job's own."""
    plain = replace(row, name="", orders=0, first=0, seeds=0)
    courses = [(row.features, plain, order, init) for order in orders_of(row) for init in range(row.seeds)]
    return [(row.features, None, 0, 0), *courses]


def orders_of(row: Row) -> range:
    """The seeds of its class orders."""
    return range(row.first, row.first + row.orders)


def title(job: Job) -> str:
    """For a line of progress."""
    key, row, order, init = job
    return f"{key} α_ideal" if row is None else f"{preset_of(row).name} on {key}, order {order}, initialisation {init}"


def in_order(wanted: dict[str, list[Row]], known: dict) -> list[Job]:
    """Every job once: features by features, since a worker holds one set; then file by file; long jobs first."""
    place: dict[Job, int] = {}
    for number, rows in enumerate(wanted.values()):
        for row in rows:
            for job in jobs_of(row):
                place.setdefault(job, number)

    def rank(job: Job) -> tuple[int, int, float]:
        key, row, *_ = job
        work = float("inf") if row is None else bench_of(row, known[key], Path()).row_work(preset_of(row))
        return list(known).index(key), place[job], -work

    return sorted(place, key=rank)


def preset_of(row: Row) -> Preset:
    """The preset as the row has it, under a name that says how it was changed."""
    preset = load_preset(row.preset, row.settings)
    more = {"base": row.base, "projections": row.projections}
    changes = [*row.settings, *(f"{name}={number}" for name, number in more.items() if number)]
    return replace(preset, name="+".join([row.preset, *changes]).replace("/", "-"), variant=row.name)


def bench_of(row: Row, facts: dict, work: Path, inputs=None, device: str = "auto") -> Bench:
    """The benchmark of one row; without features it can say what there is to do and read what was done."""
    labels = {split: np.asarray(facts["labels"][split]) for split in ("train", "test")}
    empty = {split: Samples(torch.empty(len(y), 0), y) for split, y in labels.items()}
    return Bench(
        dataset=facts["dataset"],
        backbone=facts["backbone"],
        train=inputs.train if inputs else empty["train"],
        test=inputs.test if inputs else empty["test"],
        out=work / row.features,
        base=row.base or len(set(labels["train"].tolist())) // 2,
        order_seeds=orders_of(row),
        initialisations=row.seeds,
        device=device,
        checkpoint_every=600.0,
    )


def set_up(*folders) -> None:
    """What a worker has to know, once."""
    global SETUP
    SETUP = folders


@functools.lru_cache(maxsize=1)
def worker_features(key: str):
    store, _, device = SETUP
    facts = json.loads((store / "features" / f"{key}.json").read_text())
    return import_features(store / "features" / f"{key}.safetensors", facts["dataset"], device), facts


def run_job(job: Job) -> tuple[float, str]:
    """Do it, in a worker; the seconds it took, and on what."""
    began = time.perf_counter()
    key, row, order, init = job
    _, work, device = SETUP
    inputs, facts = worker_features(key)
    where = torch.cuda.get_device_name() if inputs.train.X.is_cuda else platform.processor() or platform.machine()
    torch.set_float32_matmul_precision("high" if row and preset_of(row).method in TF32 else "highest")
    if row is None:
        measure_ideal(bench_of(Row("", key), facts, work, inputs, device))
    else:
        run_course(bench_of(row, facts, work, project(inputs, row.projections), device), preset_of(row), order, init)
    if inputs.train.X.is_cuda:
        torch.cuda.empty_cache()
    return time.perf_counter() - began, where


def project(inputs: Inputs, width: int | None) -> Inputs:
    """Random projections of the features, which a seed alone brings back: nothing has to be kept of them."""
    if width is None:
        return inputs
    matrix = torch.from_numpy(projection.signs(inputs.train.X.shape[1], width, 0)).to(inputs.train.X)
    train, test = (replace(samples, X=samples.X @ matrix) for samples in (inputs.train, inputs.test))
    return replace(inputs, train=train, test=test)


def assemble(name: str, rows: list[Row], known: dict, asked: argparse.Namespace, work: Path, devices: dict) -> None:
    """The results file of some rows, and what they were run with."""
    records = [make_record(bench_of(row, known[row.features], work), preset_of(row)) for row in rows]
    if name not in LEDGER:
        records = list(map(shorten, records))
    key = rows[0].features
    facts = known[key]
    run = about(bench_of(rows[0], facts, work)) | {
        "device": devices[key],
        "float32_matmul_precision": {"high": list(TF32), "highest": "all others"},
        "command": f"make reproduce DATA=data WEIGHTS=weights ONLY={name}",
        "side_by_side": asked.workers,
        "features_sha256": facts["features_sha256"],
        "weights": FEATURES[key].weights,
        "weights_sha256": facts["weights_sha256"],
        "environment": write_environment(asked.results),
    }
    write_results(asked.results / f"{name}.json", {"format": 1, "run": run, "records": records})


def shorten(record: dict) -> dict:
    """What the tables and pictures of variants need: there are many of them, and nobody looks at their confusions."""
    dropped = ("forgetting", "peak_memory_bytes")
    orders = [
        order | {"tasks": [{k: v for k, v in task.items() if k not in dropped} for task in order["tasks"]]}
        for order in record["orders"]
    ]
    return {k: v for k, v in record.items() if k not in ("confusion", "predictions")} | {"orders": orders}


def write_environment(folder: Path) -> str:
    """System, GPU and every package with its version, in a file named after its content."""
    cuda = torch.cuda.is_available()
    lines = [
        f"python {platform.python_version()}",
        f"system {platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        f"gpu {torch.cuda.get_device_name() if cuda else 'none'}",
        f"cuda {torch.version.cuda or 'none'}, cudnn {torch.backends.cudnn.version() or 'none'}",
        *sorted({f"{d.metadata['Name']}=={d.version}" for d in importlib.metadata.distributions()}, key=str.lower),
    ]
    text = "\n".join(lines) + "\n"
    path = folder / "environments" / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return f"environments/{path.name}"


if __name__ == "__main__":
    sys.exit(main())
