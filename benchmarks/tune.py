#!/usr/bin/env python3
"""Try settings of a method by hand where no test data and no later class is seen: see base_split.py.

    tune.py cub200 --data DIR --backbone resnet50 --weights FILE --preset cub200-slda --try shrinkage=0.01,0.1,0.3

Every combination of the values tried is run; prints a table, the settings with the best mean over all classes first.
What decides about presets is trials.py, which tries the same number of settings of every method.
"""

import argparse
import itertools
import json
import sys
from pathlib import Path

from base_split import add_arguments, measure, read_features, split_base

from engram.bench.presets import load_preset


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    parser.add_argument("--preset", required=True)
    parser.add_argument("--try", dest="tries", action="append", default=[], metavar="NAME=VALUE,VALUE,…")
    parser.add_argument("--step", type=int, default=1, help="classes at a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="PATH")
    arguments = parser.parse_args()

    tries = []
    for text in arguments.tries:
        name, _, values = text.partition("=")
        tries.append([f"{name}={value}" for value in values.split(",")])
    features = read_features(arguments)
    split = split_base(features.train, arguments.seed)
    rows = []
    for changes in itertools.product(*tries):
        preset = load_preset(arguments.preset, changes)
        row = measure(preset, split, arguments.device, arguments.seed, arguments.step)
        rows.append({"changes": list(changes), **row})
        print(f"{' '.join(changes) or arguments.preset}: all {row['all']:.3f}", file=sys.stderr, flush=True)
    rows.sort(key=lambda row: -row["all"])
    print(f"{'base':>6}{'new':>7}{'all':>7}{'seconds':>9}  settings")
    for row in rows:
        print(f"{row['base']:6.3f}{row['new']:7.3f}{row['all']:7.3f}{row['seconds']:9.1f}  {' '.join(row['changes'])}")
    if arguments.json:
        record = {"dataset": arguments.dataset, "backbone": features.backbone, "preset": arguments.preset, "rows": rows}
        arguments.json.write_text(json.dumps(record, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
