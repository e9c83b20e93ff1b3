#!/usr/bin/env python3
"""Load on the page's server: many clients ask without pause while a class is being learned.

    serve.py [--clients 64] [--seconds 60] [--pictures 400] [--turns 10] [--json PATH]

A server (`engram serve`, its defaults, on the loopback) is taught three classes of drawn shapes; then a fourth, of
--pictures pictures, again and again under a new name, as long as --clients clients each ask about one picture after the
other. Printed are answers, errors, latency as the clients see it, and the memory of the server and of its worker
(resident set, of /proc): at the start, as a line fitted to the second half of the time, and at most. Before that, with
nothing else going on, the CPU time that the server's process spends on a picture, beside that of a bare loop here which
decodes it, runs the network and compares with the classes, in one thread. The two take turns, so that a machine that is
busy with other things slows both.
"""

import argparse
import asyncio
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch

sys.path.append(str(Path(__file__).parents[1] / "tests" / "web"))
from drawings import draw, drawings

from engram.images.decode import load_image
from engram.store import ModelStore


def lesson(pictures: dict[str, list[bytes]]) -> dict[str, Any]:
    labels = [name for name, each in pictures.items() for _ in each]
    return {
        "data": {"label": labels},
        "files": [("picture", ("x", content)) for each in pictures.values() for content in each],
    }


def start(model: Path) -> tuple[subprocess.Popen[str], str]:
    command = "import sys; sys.argv[0] = 'engram'; from engram.cli import main; main()"
    server = subprocess.Popen(
        [sys.executable, "-c", command, "serve", str(model), "--no-open", "--port", "0", "--quiet"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    return server, server.stdout.readline().strip()


async def finished(client: httpx.AsyncClient, number: int) -> dict[str, Any]:
    while True:
        lessons = (await client.get("/api/lessons")).json()
        one = next(one for one in lessons if one["number"] == number)
        if one["state"] in ("done", "failed", "cancelled"):
            return dict(one)
        await asyncio.sleep(0.2)


async def ask(address: str, until: float, seed: int, times: list[float], errors: list[str]) -> None:
    picture = draw(("circle", "dots", "stripes")[seed % 3], 1000 + seed)
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        while time.perf_counter() < until:
            began = time.perf_counter()
            try:
                answer = await client.post("/api/predict", files=[("picture", ("x", picture))])
                if answer.status_code != 200 or not answer.json()["answers"][0]["top"]:
                    errors.append(f"{answer.status_code} {answer.text[:200]}")
            except httpx.HTTPError as error:
                errors.append(repr(error))
            times.append(time.perf_counter() - began)


async def teach(client: httpx.AsyncClient, until: float, pictures: int) -> list[dict[str, Any]]:
    """Keep a lesson under way until the time is over, and see the last one through."""
    done = []
    while time.perf_counter() < until:
        name = f"square {len(done) + 1}"
        sent = await client.post("/api/lessons", **lesson({name: drawings("square", pictures, 10_000 * len(done))}))
        sent.raise_for_status()
        done.append(await finished(client, sent.json()[0]["number"]))
    return done


def resident(pid: int) -> float:
    """Megabytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) / 1000


def worker_of(pid: int) -> int:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return next(int(child) for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes())


async def watch(pids: dict[str, int], until: float, memory: dict[str, list[float]]) -> None:
    while time.perf_counter() < until:
        for name, pid in pids.items():
            memory[name].append(resident(pid))
        await asyncio.sleep(1)


def cpu_seconds(pid: int) -> float:
    """What a process has spent so far, its threads together."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def compare_cpu(client: httpx.AsyncClient, pid: int, model: Path, turns: int, per_turn: int) -> dict[str, float]:
    """CPU milliseconds for a picture: of the server, of the bare loop, and how many times as much."""
    picture = draw("circle", 1000)
    known = ModelStore(model, device="cpu").read()
    network, preprocess = known.backbone, known.backbone.preprocess

    def look() -> None:
        pixels = torch.from_numpy(preprocess.image(load_image(picture)))[None].to(memory_format=torch.channels_last)
        with torch.inference_mode():
            values = network(preprocess.normalise(pixels)).numpy()
        known.clf.nearest(values, 5)

    spent: dict[str, list[float]] = {"server": [], "bare": []}
    for turn in range(turns + 1):
        before = cpu_seconds(pid)
        for _ in range(per_turn):
            (await client.post("/api/predict", files=[("picture", ("x", picture))])).raise_for_status()
        server = cpu_seconds(pid) - before
        before = time.process_time()
        for _ in range(per_turn):
            look()
        bare = time.process_time() - before
        if turn:  # the first is a rehearsal
            spent["server"].append(server / per_turn * 1000)
            spent["bare"].append(bare / per_turn * 1000)
    ratio = np.median(np.divide(spent["server"], spent["bare"]))
    return {name: round(float(np.median(each)), 1) for name, each in spent.items()} | {"times": round(float(ratio), 2)}


async def load(address: str, pid: int, model: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    times: list[float] = []
    errors: list[str] = []
    async with httpx.AsyncClient(base_url=address, timeout=60) as client:
        while True:
            try:
                await client.get("/api/model")
                break
            except httpx.TransportError:
                await asyncio.sleep(0.1)
        base = await client.post(
            "/api/lessons", **lesson({name: drawings(name, 30) for name in ("circle", "dots", "stripes")})
        )
        first = await finished(client, base.json()[0]["number"])
        if first["state"] != "done":
            raise SystemExit(f"the first lesson failed: {first['message']}")
        cpu = await compare_cpu(client, pid, model, arguments.turns, 50)
        alone: list[float] = []
        await ask(address, time.perf_counter() + 5, 0, alone, errors)
        pids = {"server": pid, "worker": worker_of(pid)}
        memory: dict[str, list[float]] = {name: [] for name in pids}
        until = time.perf_counter() + arguments.seconds
        clients = [ask(address, until, seed, times, errors) for seed in range(arguments.clients)]
        done, *_ = await asyncio.gather(teach(client, until, arguments.pictures), watch(pids, until, memory), *clients)

    def line(values: list[float]) -> dict[str, float]:
        half = values[len(values) // 2 :]
        slope = float(np.polyfit(np.arange(len(half)), half, 1)[0]) * 60 if len(half) > 1 else 0.0
        return {"start_mb": values[0], "most_mb": max(values), "end_mb": values[-1], "mb_per_minute": slope}

    return {
        "clients": arguments.clients,
        "seconds": arguments.seconds,
        "answers": len(times),
        "errors": errors,
        "cpu_ms_a_picture": cpu,
        "alone_ms": {"p50": _ms(alone, 50), "p99": _ms(alone, 99)},
        "under_load_ms": {"p50": _ms(times, 50), "p99": _ms(times, 99), "most": _ms(times, 100)},
        "lessons": [
            {"state": one["state"], "seconds": round(one["seconds"], 1), "pictures": sum(one["classes"].values())}
            for one in done
        ],
        "memory": {name: line(values) for name, values in memory.items()},
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "torch": torch.__version__},
    }


def _ms(seconds: list[float], percentile: float) -> float:
    return round(float(np.percentile(seconds, percentile)) * 1000, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--pictures", type=int, default=400)
    parser.add_argument("--turns", type=int, default=10, help="of 50 pictures each, for the CPU time of a picture")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "shapes.engram"
        server, address = start(model)
        try:
            result = asyncio.run(load(address, server.pid, model, arguments))
        finally:
            server.terminate()
            server.wait()
    print(f"{result['answers']:,} answers, {len(result['errors'])} errors, {arguments.clients} clients")
    for what in ("cpu_ms_a_picture", "alone_ms", "under_load_ms"):
        print(f"{what}: " + ", ".join(f"{name} {value}" for name, value in result[what].items()))
    print("lessons: " + ", ".join(f"{one['state']} in {one['seconds']} s" for one in result["lessons"]))
    for name, about in result["memory"].items():
        print(f"{name}: " + ", ".join(f"{key} {value:.1f}" for key, value in about.items()))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
