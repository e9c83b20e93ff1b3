"""Birds by their boxes: are crops better than whole pictures, learned and answered?

    python benchmarks/crops.py --data DIR [--species 20] [--orders 3] [--backbone NAME] [--json PATH]

DIR holds CUB_200_2011/ with its bounding_boxes.txt, which people drew; here it goes through a file like MegaDetector's.
For every order, species are drawn and learned at once from the official training pictures; accuracy is on the others.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from table import parser, row, show

from engram.bench.datasets import cub200
from engram.datasets.detections import read_detections
from engram.encoders.registry import create
from engram.images.crop import Crop
from engram.images.stream import encode_all
from engram.model import Model


def write_detections(root, pictures, file):
    """CUB's boxes of some pictures as MegaDetector would write them."""
    numbers = {name: number for number, name in (line.split() for line in (root / "images.txt").open())}
    boxes = {one[0]: list(map(float, one[1:])) for one in map(str.split, (root / "bounding_boxes.txt").open())}
    images = []
    for picture in pictures:
        name = picture.relative_to(root / "images").as_posix()
        (left, top, width, height), (wide, high) = boxes[numbers[name]], Image.open(picture).size
        shares = [round(value, 4) for value in (left / wide, top / high, width / wide, height / high)]
        images.append({"file": str(picture), "detections": [{"category": "1", "conf": 1.0, "bbox": shares}]})
    content = {"info": {"format_version": "1.5"}, "detection_categories": {"1": "animal"}, "images": images}
    file.write_text(json.dumps(content))


def measure(train, test, seed, device):
    """Accuracy of features of the test pictures after learning those of the training pictures."""
    model, _ = Model.new(seed=seed).learn(*train, judge=False)
    rows = model.answer(test[0]).rows[:, 0]
    return float(np.mean(np.asarray(model.learner.labels)[rows] == test[1]))


def main():
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True, metavar="DIR")
    options.add_argument("--species", type=int, default=20, metavar="N")
    options.add_argument("--orders", type=int, default=3, metavar="N")
    options.add_argument("--backbone", default="efficientnet_lite0:joined")
    options = options.parse_args()
    birds, network = cub200(options.data), create(options.backbone, options.device)
    found = {}
    for seed in range(options.orders):
        species = set(np.random.default_rng(seed).permutation(birds.classes)[: options.species].tolist())
        splits = []
        for split in (birds.train, birds.test):
            chosen = [one for one in zip(split.images, split.labels, strict=True) if one[1] in species]
            splits.append(([path for path, _ in chosen], np.array([label for _, label in chosen])))
        with tempfile.TemporaryDirectory() as folder:
            write_detections(options.data / "CUB_200_2011", [*splits[0][0], *splits[1][0]], Path(folder, "md.json"))
            best = read_detections(Path(folder, "md.json")).surest()
        features = {
            (what, part): (encode_all(images, network).features, splits[part][1])
            for part in (0, 1)
            for what, images in {
                "whole pictures": splits[part][0],
                "crops": [Crop(path, best[path].box) for path in splits[part][0]],
            }.items()
        }
        for learned in ("whole pictures", "crops"):
            for asked in ("whole pictures", "crops"):
                accuracy = measure(features[learned, 0], features[asked, 1], seed, options.device)
                found.setdefault(f"learned from {learned}, asked about {asked}", []).append(accuracy)
    rows = [row(what, float(np.mean(all_)), f"({min(all_):.3f} to {max(all_):.3f})") for what, all_ in found.items()]
    show(rows, options.device, options.json, backbone=network.identity, species=options.species, orders=options.orders)


if __name__ == "__main__":
    main()
