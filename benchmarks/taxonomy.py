"""How much a coarser name saves where no class is likely enough: all 200 species of CUB, and their families.

    python benchmarks/taxonomy.py cub200 --features cub200.safetensors [--sure 0.5 0.7 0.9] [--json PATH]

The file is written by `engram features --export`. A species' family is the last word of its name: sparrow, warbler,
gull; some families have one species. All species are learned at once, and asked about their test pictures. An answer
counts as right if it is the species or its family. What one would try first answers every picture with a species, for
comparison.
"""

from pathlib import Path

import numpy as np
from baselines import baselines
from table import parser, row, show

from engram import IncrementalClassifier
from engram.bench.inputs import import_features
from engram.store import Namer


def family(name):
    """The last word of a name like 001.Black_footed_Albatross."""
    return name.rsplit(".", 1)[-1].split("_")[-1].lower()


def rows_of(sure, named, best, truth, parents):
    """What is answered with a threshold alone, and with families behind it."""
    answers = np.array([one[0] if one else "" for one in named])
    right = np.array([name in (species, parents[species]) for name, species in zip(answers, truth, strict=True)])
    answered, is_species = answers != "", np.isin(answers, list(parents))
    yield row(f"sure {sure}: answered with a species alone", float(np.mean(best >= sure)), "")
    yield row(f"sure {sure}: answered with a species or family", float(answered.mean()), "")
    yield row(f"sure {sure}: right among species answered", float(right[is_species].mean()), "")
    yield row(f"sure {sure}: right among families answered", float(right[answered & ~is_species].mean()), "")
    yield row(f"sure {sure}: right among all answered", float(right[answered].mean()), "")


def main():
    options = parser(__doc__)
    options.add_argument("dataset", help="cub200")
    options.add_argument("--features", type=Path, required=True, metavar="FILE")
    options.add_argument("--sure", type=float, nargs="+", default=[0.5, 0.7, 0.9], metavar="P")
    options = options.parse_args()
    inputs = import_features(options.features, options.dataset, options.device)
    clf = IncrementalClassifier(random_state=0, device=options.device).fit(inputs.train.X, inputs.train.y)
    classes = clf.classes_.tolist()
    parents = {name: family(name) for name in classes}
    probabilities, truth = clf.predict_proba(inputs.test.X), inputs.test.y.tolist()
    accuracy = float(np.mean(clf.classes_[probabilities.argmax(axis=1)] == inputs.test.y))
    rows = [row("families", len(set(parents.values())), ""), row("right if every species is answered", accuracy, "")]
    X, y = inputs.train.X.cpu().numpy(), inputs.train.y
    for name, model in baselines().items():
        share = float(np.mean(model.fit(X, y).predict(inputs.test.X.cpu().numpy()) == inputs.test.y))
        rows.append(row(f"the same by {name}", share, ""))
    for sure in options.sure:
        named = Namer(classes, parents, sure)(probabilities)
        rows += rows_of(sure, named, probabilities.max(axis=1), truth, parents)
    show(rows, options.device, options.json, dataset=options.dataset, backbone=inputs.backbone)


if __name__ == "__main__":
    main()
