#!/usr/bin/env python3
"""The story of a person with a phone: is what the page says about itself true?

    story.py FOLDER [--classes 12] [--taught 30] [--asked 25] [--draws 3] [--json PATH]

FOLDER holds one folder of pictures per class, such as CUB_200_2011/images. In every draw a server (`engram serve`, its
defaults, on the loopback) is taught --classes random classes one by one, by at most --taught pictures each. Then it is
asked about --asked others of each class, and about as many of classes it was never taught. Printed are the accuracy the
page shows and the true one, the share of known pictures that are called unknown and the one the page announces, and
the share of strangers that are.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

STARTS = "import sys; sys.argv[0] = 'engram'; from engram.cli import main; main()"


def teach(client: httpx.Client, name: str, pictures: list[Path]) -> None:
    files = [("picture", ("x", path.read_bytes())) for path in pictures]
    number = client.post("/api/lessons", data={"label": name}, files=files).raise_for_status().json()["number"]
    while True:
        lesson = next(one for one in client.get("/api/lessons").json() if one["number"] == number)
        if lesson["state"] == "done":
            return
        if lesson["state"] in ("failed", "cancelled"):
            sys.exit(f"{name}: {lesson['message']}")
        time.sleep(0.1)


def ask(client: httpx.Client, pictures: list[Path]) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = []
    for start in range(0, len(pictures), 16):
        files = [("picture", ("x", path.read_bytes())) for path in pictures[start : start + 16]]
        answers += client.post("/api/predict", files=files).raise_for_status().json()["answers"]
    return answers


def tell(folder: Path, classes: int, taught: int, asked: int, seed: int, model: Path) -> dict[str, float]:
    chance = random.Random(seed)
    folders = sorted(path for path in folder.iterdir() if path.is_dir())
    chance.shuffle(folders)
    shuffled = {
        each.name: chance.sample(files := sorted(each.iterdir()), len(files)) for each in folders[: 2 * classes]
    }
    known, strange = list(shuffled)[:classes], list(shuffled)[classes:]
    command = [sys.executable, "-c", STARTS, "serve", str(model), "--no-open", "--port", "0", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        with httpx.Client(base_url=server.stdout.readline().strip(), timeout=120) as client:
            for name in known:
                teach(client, name, shuffled[name][asked : asked + taught])
            seen = client.get("/api/model").json()
            answers = {name: ask(client, shuffled[name][:asked]) for name in known}
            strangers = [one for name in strange for one in ask(client, shuffled[name][:asked])]
        server.terminate()
    right = [one["top"][0]["label"] == name for name, each in answers.items() for one in each]
    refused = [one["label"] == "unknown" for each in answers.values() for one in each]
    return {
        "page": seen["accuracy"]["share"],
        "true": sum(right) / len(right),
        "announced": seen["unknown"]["share"],
        "refused": sum(refused) / len(refused),
        "caught": sum(one["label"] == "unknown" for one in strangers) / len(strangers),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for name, default in (("classes", 12), ("taught", 30), ("asked", 25), ("draws", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    draws = []
    for seed in range(options.draws):
        with tempfile.TemporaryDirectory() as place:
            model = Path(place) / "birds.engram"
            draws.append(tell(options.folder, options.classes, options.taught, options.asked, seed, model))
        found = draws[-1]
        print(
            f"draw {seed}: right {found['page']:.3f} says the page, {found['true']:.3f} is true; of known pictures "
            f"{found['refused']:.3f} refused ({found['announced']:.3f} announced), of strangers {found['caught']:.3f}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps(draws, indent=1) + "\n")


if __name__ == "__main__":
    main()
