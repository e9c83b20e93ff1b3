"""What do ImageNet's classes cost those that are taught beside them, and what are they worth themselves?

    python benchmarks/imagenet.py --cub FILE --cifar FILE [--taught 1 5 20 100] [--samples 20] [--draws 3] [--json PATH]

Both files are written by `engram features --export` with efficientnet_lite0:joined. Of each data set some classes that
ImageNet has by name (`SAME` lists them) are left to the head, and others are taught, from `--samples` pictures each.
Then pictures of three kinds are asked about: of taught classes; of classes of the same data set that only ImageNet has;
and of those of the other data set, which look like nothing that was taught. An answer is right if it is one of the
names that `SAME` has for the class. Beside it is the accuracy of each side alone: of whitened prototypes without the
head, of the head without taught classes. Expected calibration error is that of `unknown.py`, on as many pictures of
taught classes as of the others of the same data set.

Imprinting, for comparison, is what Coral's ImprintingEngine does with keep_classes=True: the mean feature vector of a
class, scaled to unit length, joins the rows of the head as one more, and the largest cosine is the answer.
"""

from pathlib import Path

import numpy as np
import torch
from engram.backbones.imagenet import read_head
from engram.methods.imagenet import BesideImageNet
from engram.methods.whitened import Whitened
from table import parser, row, show
from torch.nn.functional import normalize
from unknown import calibration_error

from engram.bench.inputs import import_features

MOST_LOST = "<= 0.02"
SAME = {
    "cub200": {
        "Indigo_Bunting": ["indigo bunting"], "Dark_eyed_Junco": ["junco"], "Blue_Jay": ["jay"],
        "Florida_Jay": ["jay"], "Green_Jay": ["jay"], "Ruby_throated_Hummingbird": ["hummingbird"],
        "Anna_Hummingbird": ["hummingbird"], "Rufous_Hummingbird": ["hummingbird"], "Brown_Pelican": ["pelican"],
        "White_Pelican": ["pelican"], "Red_breasted_Merganser": ["red-breasted merganser"],
        "Black_footed_Albatross": ["albatross"], "Laysan_Albatross": ["albatross"], "Sooty_Albatross": ["albatross"],
        "American_Goldfinch": ["goldfinch"], "Mallard": ["drake"],
    },
    "cifar100": {
        "apple": ["Granny Smith"], "aquarium_fish": ["goldfish"], "bee": ["bee"], "beaver": ["beaver"],
        "bear": ["brown bear", "American black bear", "ice bear", "sloth bear"],
        "bicycle": ["mountain bike", "bicycle-built-for-two"], "bowl": ["soup bowl", "mixing bowl"],
        "bottle": ["beer bottle", "wine bottle", "water bottle", "pop bottle"],
        "bus": ["minibus", "school bus", "trolleybus"], "camel": ["Arabian camel"], "castle": ["castle"],
        "chimpanzee": ["chimpanzee"], "clock": ["analog clock", "digital clock", "wall clock"],
        "cockroach": ["cockroach"], "couch": ["studio couch"], "crocodile": ["African crocodile", "American alligator"],
        "crab": ["Dungeness crab", "rock crab", "fiddler crab", "king crab", "hermit crab"],
        "cup": ["cup", "coffee mug"], "elephant": ["Indian elephant", "African elephant", "tusker"],
        "fox": ["red fox", "kit fox", "Arctic fox", "grey fox"], "hamster": ["hamster"], "kangaroo": ["wallaby"],
        "keyboard": ["computer keyboard"], "lamp": ["table lamp"], "lawn_mower": ["lawn mower"],
        "leopard": ["leopard", "snow leopard", "jaguar"], "lion": ["lion"], "mushroom": ["mushroom"],
        "lobster": ["American lobster", "spiny lobster"], "orange": ["orange"], "otter": ["otter"],
        "pickup_truck": ["pickup"], "plate": ["plate"], "porcupine": ["porcupine"],
        "rabbit": ["hare", "wood rabbit", "Angora"], "ray": ["electric ray", "stingray"], "skunk": ["skunk"],
        "shark": ["great white shark", "tiger shark", "hammerhead"], "snail": ["snail"], "streetcar": ["streetcar"],
        "sweet_pepper": ["bell pepper"], "table": ["dining table"], "tank": ["tank"], "television": ["television"],
        "telephone": ["dial telephone", "cellular telephone", "pay-phone"], "tiger": ["tiger"],
        "tractor": ["tractor"], "wardrobe": ["wardrobe"], "whale": ["grey whale", "killer whale"],
        "train": ["electric locomotive", "steam locomotive", "bullet train", "passenger car", "freight car"],
        "wolf": ["timber wolf", "white wolf", "red wolf", "coyote"],
    },
}  # fmt: skip


def short(label):
    """A species without the number before it."""
    return str(label).split(".")[-1]


class Asked:
    """Pictures, and the answers that are right for each."""

    def __init__(self, samples, same=None, classes=None):
        names = np.array([short(label) for label in samples.y])
        rows = np.flatnonzero(np.isin(names, list(same if classes is None else classes)))
        self.X = samples.X[torch.from_numpy(rows)]
        self.right = [same[name] if classes is None else [name] for name in names[rows]]

    def judge(self, answers):
        return np.array([answer in right for answer, right in zip(answers, self.right, strict=True)])


def imprint(head, X, y, asked):
    """The answers of cosines to the head's rows and to class means."""
    names = sorted(set(y))
    own = torch.stack([normalize(X[torch.from_numpy(y == name)], dim=1).mean(dim=0) for name in names])
    rows = normalize(torch.cat([own[:, -1280:], head.weight]), dim=1)
    return np.array([*names, *head.names])[(normalize(asked.X[:, -1280:], dim=1) @ rows.T).argmax(dim=1).numpy()]


def measure(head, inputs, same, others, taught, samples):
    """Accuracies and calibration errors for one draw of classes."""
    names = np.array([short(label) for label in inputs.train.y])
    rows = np.concatenate([np.flatnonzero(names == name)[:samples] for name in taught])
    X, y = inputs.train.X[torch.from_numpy(rows)], names[rows]
    alone, beside, empty = Whitened(device="cpu"), BesideImageNet(device="cpu"), BesideImageNet(device="cpu")
    for learner in (beside, empty):
        learner.adopt(head.names, head.weight, head.bias, X.shape[1])
    alone.learn(X, y)
    beside.learn(X, y)
    known, near, far = Asked(inputs.test, classes=taught), Asked(inputs.test, same), others

    def answer(asked):
        scores, rows = beside.nearest(asked.X, 1)
        return np.exp(scores[:, 0]), asked.judge(np.asarray(beside.labels)[rows[:, 0]])

    (p_known, r_known), (p_near, r_near), (_, r_far) = map(answer, (known, near, far))
    n, random = min(len(r_known), len(r_near)), np.random.default_rng(0)
    some = [random.permutation(len(r))[:n] for r in (r_known, r_near)]
    lost = known.judge(alone.predict(known.X)).mean() - r_known.mean()
    return {
        "taught, alone": lost + r_known.mean(),
        "taught, lost beside ImageNet": lost,
        "ImageNet, same data set, head alone": near.judge(empty.predict(near.X)).mean(),
        "ImageNet, same data set": r_near.mean(),
        "ImageNet, other data set, head alone": far.judge(empty.predict(far.X)).mean(),
        "ImageNet, other data set": r_far.mean(),
        "calibration error, taught": calibration_error(p_known, r_known),
        "calibration error, half and half": calibration_error(
            np.concatenate([p_known[some[0]], p_near[some[1]]]), np.concatenate([r_known[some[0]], r_near[some[1]]])
        ),
        "imprinting: taught": known.judge(imprint(head, X, y, known)).mean(),
        "imprinting: ImageNet, same data set": near.judge(imprint(head, X, y, near)).mean(),
        "imprinting: ImageNet, other data set": far.judge(imprint(head, X, y, far)).mean(),
    }


def main():
    options = parser(__doc__)
    options.add_argument("--cub", type=Path, required=True, metavar="FILE")
    options.add_argument("--cifar", type=Path, required=True, metavar="FILE")
    options.add_argument("--taught", type=int, nargs="+", default=[1, 5, 20, 100], metavar="N")
    options.add_argument("--samples", type=int, default=20, metavar="N")
    options.add_argument("--draws", type=int, default=3, metavar="N")
    options = options.parse_args()
    head = read_head("efficientnet_lite0:joined")
    files = {"cub200": options.cub, "cifar100": options.cifar}
    inputs = {name: import_features(path, name, "cpu") for name, path in files.items()}
    asked = {name: Asked(inputs[name].test, SAME[name]) for name in inputs}
    rows = []
    for name, other in (("cub200", "cifar100"), ("cifar100", "cub200")):
        free = sorted({short(label) for label in inputs[name].train.y} - SAME[name].keys())
        for n in options.taught:
            if n > len(free):
                continue
            found = []
            for draw in range(options.draws):
                taught = np.random.default_rng(draw).choice(free, n, replace=False).tolist()
                found.append(measure(head, inputs[name], SAME[name], asked[other], taught, options.samples))
            for what in found[0]:
                values = [one[what] for one in found]
                spread, bar = f"({min(values):.3f} to {max(values):.3f})", MOST_LOST if "lost" in what else ""
                rows.append(row(f"{name}, {n} taught: {what}", float(np.mean(values)), spread, bar))
    show(rows, "cpu", options.json, samples=options.samples, draws=options.draws)


if __name__ == "__main__":
    main()
