"""Does an exported model answer as the model does?

    python benchmarks/exported.py --data DIR [--classes 20] [--pictures 30] [--tested 20] [--json PATH]

DIR holds one folder of pictures per class (of CUB-200, that is CUB_200_2011/images). A model learns some classes as
`engram learn` does, is exported as ONNX, and both are asked about other pictures of these classes, as they are: the
graph resizes them.
"""

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from table import parser, row, show

from engram.datasets import class_folders
from engram.images import load_image
from engram.store import ModelStore, Plan, learn_classes, predict_images


def ask_onnx(path, pictures):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return [session.run(["label"], {"pictures": picture[None]})[0][0] for picture in pictures]


def main():
    options = parser(__doc__)
    options.add_argument("--data", type=Path, required=True, metavar="DIR")
    options.add_argument("--classes", type=int, default=20, metavar="N")
    options.add_argument("--pictures", type=int, default=30, metavar="N", help="of each class, to learn from")
    options.add_argument("--tested", type=int, default=20, metavar="N", help="of each class, to ask about")
    options = options.parse_args()
    folders = class_folders(options.data)
    shuffle = np.random.default_rng(0)
    enough = [name for name, paths in folders.items() if len(paths) >= options.pictures + options.tested]
    names = shuffle.permutation(enough)[: options.classes].tolist()
    drawn = {name: shuffle.permutation(folders[name]).tolist() for name in names}
    taught = {name: paths[: options.pictures] for name, paths in drawn.items()}
    asked = [(path, name) for name, paths in drawn.items() for path in paths[options.pictures :][: options.tested]]
    paths, truth = [path for path, _ in asked], [name for _, name in asked]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        store = ModelStore(Path(folder) / "birds.engram", device="cpu")
        learn_classes(store, taught, Plan())
        model = store.read()
        expected = [answer.label for answer in predict_images(model, paths, top=1, device="cpu")]
        rows.append(row("engram predict: right", float(np.mean(np.array(expected) == truth)), "share"))
        pictures = [np.asarray(load_image(path)) for path in paths]
        out = Path(folder) / "birds.onnx"
        model.clf.export(out)
        said = ask_onnx(out, pictures)
        rows.append(row("ONNX: right", float(np.mean(np.array(said) == truth)), "share"))
        rows.append(row("ONNX: answers that differ", float(np.sum(np.array(said) != expected)), f"of {len(said)}"))
        rows.append(row("ONNX: file", out.stat().st_size / 1e6, "MB"))
    show(rows, "cpu", options.json, backbone=model.backbone.identity, classes=options.classes)


if __name__ == "__main__":
    main()
