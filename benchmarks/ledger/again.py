"""What was run again on another machine: how far its numbers are from the ledger's, and what the ledger lacks."""

import json
from statistics import fmean

import equal_memory

from engram.bench.results import dataset_title, features_title, method_of, told_title
from engram.bench.tables import markdown
from engram.bench.units import join_words, wrap

HEAD = ("row", "courses", "on the way, there", "here", "after the last, there", "here", "one course, at most")


def run_again(contents, ledger):
    """A line for every row that the ledger has with the same settings; `ledger` are its results files."""
    there = {settings(record): record for content in ledger for record in content["records"]}
    here = [record for content in contents for record in content["records"] if settings(record) in there]
    ideals = {record["dataset"]: (there[settings(record)], record) for record in here}
    lines = [line(there[settings(record)], record) for record in here]
    return markdown(HEAD, [*lines, *(ideal_line(*pair) for pair in ideals.values())])


def files(contents, folder):
    """Where every file is, and how it was made."""
    lines = []
    for name, content in contents.items():
        run = content["run"]
        made = f"{run['device']}, torch {run['torch']}, revision {run['git_revision'][:7]}"
        hashes = f"features {run['features_sha256'][:8]}, weights {run['weights_sha256'][:8]}"
        where = f"[{folder}/{name}.json](../../{folder}/{name}.json)"
        lines.append(f"- {where}: {made}, {hashes}, [environment](../../{folder}/{run['environment']})")
    return "\n".join(lines)


def settings(record):
    """What makes two rows the same experiment. Of projections of the features only the preset's name tells."""
    projected = record["preset"].partition("+projections=")[2]
    plain = json.dumps(record["config"], sort_keys=True)
    whose = record["dataset"], features_title(record["backbone"]), method_of(record)
    return *whose, plain, record["protocol"]["base"], projected


def line(there, here):
    """Accuracy on all classes over the courses that both have, and by how much one of them differs, on the way."""
    courses = [
        {(o["seed"], o["init"]): [t["alpha_all"] for t in o["tasks"]] for o in r["orders"]} for r in (there, here)
    ]
    common = [key for key in courses[0] if key in courses[1]]
    way = [[fmean(found[key][1:]) for key in common] for found in courses]
    end = [[found[key][-1] for key in common] for found in courses]
    title = told_title(method_of(here)) + here.get("name", "").removeprefix(method_of(here))  # ", 1 MB"
    far = max(abs(a - b) for a, b in zip(*way, strict=True))
    return [title, str(len(common)), *(f"{fmean(found):.4f}" for found in (*way, *end)), f"{far:.4f}"]


def ideal_line(there, here):
    """α_ideal, which has its own seeds."""
    ideals = [record["alpha_ideal"] for record in (there, here)]
    far = max(abs(a - b) for a, b in zip(*(ideal["values"] for ideal in ideals), strict=True))
    title = f"α_ideal, {dataset_title(here['dataset'])}"
    return [title, str(len(ideals[0]["values"])), "", "", *(f"{i['accuracy']:.4f}" for i in ideals), f"{far:.4f}"]


def filled_in(contents, ledger):
    """The table at equal memory with what was run again instead of what the ledger has, or has not, under its name."""
    ran = {record["method"] for content in contents.values() for record in content["records"]}
    titles = [equal_memory.title_of(method) for method in equal_memory.SHOWN if method in ran]
    return f"{equal_memory.table(ledger | contents)}\n\n{wrap(f'From this run: {join_words(titles)}.')}"
