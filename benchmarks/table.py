"""What the benchmarks share: their options, and a table on screen and as JSON."""

import argparse
import json
import operator
import platform
from pathlib import Path


def parser(doc):
    options = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="auto")
    options.add_argument("--json", type=Path)
    return options


def row(name, value, unit, bar=""):
    """One line; `bar` is a text like ">= 1.5"."""
    return {"name": name, "value": value, "bar": bar, "unit": unit}


def met(line):
    sign, number = line["bar"].split()
    return {">=": operator.ge, "<=": operator.le}[sign](line["value"], float(number))


def show(rows, device, path=None, **about):
    """Print the table, and write it where `--json` says."""
    where = platform.machine()
    if device != "cpu":
        import torch

        where = torch.cuda.get_device_name() if torch.cuda.is_available() and device != "cpu" else where
    print(where + "".join(f", {name} {value}" for name, value in about.items()))
    width = max(len(line["name"]) for line in rows)
    for line in rows:
        verdict = f"   bar {line['bar']}: {'met' if met(line) else 'MISSED'}" if line["bar"] else ""
        print(f"{line['name']:{width}}  {line['value']:12.4g} {line['unit']}{verdict}")
    if path:
        path.write_text(json.dumps({"rows": rows, "device": where, **about}, indent=1) + "\n")
